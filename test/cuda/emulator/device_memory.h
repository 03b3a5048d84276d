// The memory of the emulated GPU. The host cannot access it except while a kernel or a copy runs.
#pragma once

#include <cstddef>
#include <mutex>

namespace cistern::emulator {

inline constexpr size_t kMemoryBytes = size_t{2} << 30;  // the device's memory

// Excludes other threads from enqueueing, running and allocating. Recursive.
std::unique_lock<std::recursive_mutex> LockDevice();

// Makes the device's memory accessible while it exists. Holds the lock.
class OpenMemory {
 public:
  OpenMemory();
  ~OpenMemory();
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;
};

// Null if there is not enough memory left. Guards of NaN surround each allocation: a read of a
// guard shows in the sums, and a write to one stops the process when the memory is freed.
void* TakeDevice(size_t bytes);
void* TakePinned(size_t bytes);
// False if no allocation begins at `data`.
bool GiveBack(void* data);

// Whether `data` is in device memory or in pinned memory.
bool IsDeviceOrPinned(const void* data);

}  // namespace cistern::emulator
