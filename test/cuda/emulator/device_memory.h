// The memory of the emulated GPU: the host cannot touch it but where a kernel or a copy runs.
#pragma once

#include <cstddef>
#include <mutex>

namespace cistern::emulator {

inline constexpr size_t kMemoryBytes = size_t{2} << 30;  // that the device has

// No other thread enqueues, runs or takes anything. One thread may hold several.
std::unique_lock<std::recursive_mutex> LockDevice();

// While one lives the device's memory is open. It holds the lock.
class OpenMemory {
 public:
  OpenMemory();
  ~OpenMemory();
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;
};

// Null: there is not so much left. Around each piece lie guards of NaN: what reads one shows in the
// sums, and what writes one stops the process when the memory is given back.
void* TakeDevice(size_t bytes);
void* TakePinned(size_t bytes);
// False: nothing that was taken begins there.
bool GiveBack(void* data);

// Part of the device's memory, or of memory that was pinned.
bool IsDeviceOrPinned(const void* data);

}  // namespace cistern::emulator
