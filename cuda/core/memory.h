// Memory of a device and memory that it copies from and to: taken from a pool that has a limit and
// knows what each part is for.
//
// Everything is taken before a step begins; nothing in a step does. On the CPU both places are
// ordinary memory, so that code above is the same.
//
//   CISTERN_ASSIGN_OR_RETURN(Memory rows, pool.Take(MemoryPlace::kDevice, bytes, "pass table"));
//   CopyToDevice(staged.view<float>(), rows.view<float>(), stream);
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/base/status.h"
#include "cuda/core/stream.h"

namespace cistern {

// kPinned: memory of the host that the device copies at full speed and while it computes.
enum class MemoryPlace { kDevice, kPinned };

// Elements of some Memory. The host must not look through a view of a GPU's memory.
template <typename T>
struct MemoryView {
  T* data = nullptr;
  size_t size = 0;
};

class MemoryPool;

// Some memory, 256-byte aligned and zeroed, given back to its pool by the destructor. The stream
// must be done with it by then.
class Memory {
 public:
  Memory() = default;
  Memory(Memory&& other) noexcept { swap(other); }
  Memory& operator=(Memory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Memory();

  size_t bytes() const { return bytes_; }
  void* data() { return data_; }
  const void* data() const { return data_; }
  template <typename T>
  MemoryView<T> view() {
    return {static_cast<T*>(data_), bytes_ / sizeof(T)};
  }
  template <typename T>
  MemoryView<const T> view() const {
    return {static_cast<const T*>(data_), bytes_ / sizeof(T)};
  }
  void swap(Memory& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(place_, other.place_);
    std::swap(tag_, other.tag_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

 private:
  friend class MemoryPool;

  MemoryPool* pool_ = nullptr;
  MemoryPlace place_ = MemoryPlace::kDevice;
  std::string tag_;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// What is out under one tag.
struct MemoryUse {
  std::string tag;
  MemoryPlace place;
  uint64_t bytes, bytes_max;  // now, and at most at any time
};

// Threads: any. Must live longer than what it gave out.
class MemoryPool {
 public:
  // cap_bytes: of both places together.
  MemoryPool(DeviceKind device, int gpu, uint64_t cap_bytes);
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // kResourceExhausted, with what holds how much, if the cap or the device has not so much left.
  absl::StatusOr<Memory> Take(MemoryPlace place, size_t bytes, absl::string_view tag);

  uint64_t bytes() const;
  uint64_t cap_bytes() const { return cap_bytes_; }

  // By place, then tag.
  std::vector<MemoryUse> uses() const;

 private:
  friend class Memory;
  void GiveBack(MemoryPlace place, const std::string& tag, void* data, size_t bytes);

  const DeviceKind device_;
  const int gpu_;
  const uint64_t cap_bytes_;
  mutable absl::Mutex mutex_;
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::pair<MemoryPlace, std::string>, std::pair<uint64_t, uint64_t>> uses_
      ABSL_GUARDED_BY(mutex_);
};

// Enqueue a copy of `bytes` bytes. From or to memory that is not pinned they wait for the copy.
void CopyToDevice(const void* host, void* device, size_t bytes, Stream& stream);
void CopyToHost(const void* device, void* host, size_t bytes, Stream& stream);
void CopyOnDevice(const void* from, void* to, size_t bytes, Stream& stream);

// Enqueues bytes of zero.
void ZeroOnDevice(void* device, size_t bytes, Stream& stream);

// The whole of a view; sizes must be the same.
template <typename T>
void CopyToDevice(MemoryView<const T> host, MemoryView<T> device, Stream& stream) {
  CopyToDevice(host.data, device.data, device.size * sizeof(T), stream);
}
template <typename T>
void CopyToHost(MemoryView<const T> device, MemoryView<T> host, Stream& stream) {
  CopyToHost(device.data, host.data, host.size * sizeof(T), stream);
}

}  // namespace cistern
