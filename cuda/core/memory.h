// Device memory, and the pinned host memory that it is copied from and to. Both come from a pool
// that has a limit and tracks its use by tag.
//
// All memory is allocated before a training step begins; a step never allocates. On the CPU both
// places are ordinary memory, so code above this layer is the same.
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

// kPinned: page-locked host memory, which the device copies at full speed and while it computes.
enum class MemoryPlace { kDevice, kPinned };

// Whether new memory is zeroed. kAny leaves it undefined, for rows that are written before they are
// read.
enum class MemoryFill { kZeros, kAny };

// A typed span of some Memory. The host must not dereference a view of GPU memory.
template <typename T>
struct MemoryView {
  T* data = nullptr;
  size_t size = 0;
};

class MemoryPool;

// An owned allocation, 256-byte aligned. The destructor returns it to its pool; all work
// on streams that uses it must have finished by then.
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

// The memory in use under one tag.
struct MemoryUse {
  std::string tag;
  MemoryPlace place;
  uint64_t bytes, bytes_max;  // current and peak
};

// Threads: any. Must outlive all memory taken from it.
class MemoryPool {
 public:
  // cap_bytes: the limit for both places together.
  MemoryPool(DeviceKind device, int gpu, uint64_t cap_bytes);
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // kResourceExhausted, with the current use by tag, if the cap or the device has too little left.
  // On the CPU, large memory that was given back is used again, or becomes part of larger memory:
  // the kernel needs longer to clear new pages than a pass needs to fill them.
  absl::StatusOr<Memory> Take(MemoryPlace place, size_t bytes, absl::string_view tag,
                              MemoryFill fill = MemoryFill::kZeros);

  uint64_t bytes() const;
  uint64_t cap_bytes() const { return cap_bytes_; }

  // Sorted by place, then by tag.
  std::vector<MemoryUse> uses() const;

 private:
  friend class Memory;
  void GiveBack(MemoryPlace place, const std::string& tag, void* data, size_t bytes);
  absl::StatusOr<void*> TakeHost(size_t bytes, MemoryFill fill)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveBackHost(void* data, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const DeviceKind device_;
  const int gpu_;
  const uint64_t cap_bytes_;
  mutable absl::Mutex mutex_;
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::pair<MemoryPlace, std::string>, std::pair<uint64_t, uint64_t>> uses_
      ABSL_GUARDED_BY(mutex_);
  // The size of each large block on the CPU that is in use, and the blocks that are kept.
  std::map<void*, size_t> large_ ABSL_GUARDED_BY(mutex_);
  std::multimap<size_t, void*> kept_ ABSL_GUARDED_BY(mutex_);
};

// Enqueue a copy of `bytes` bytes. With host memory that is not pinned the call blocks until the
// copy has finished.
void CopyToDevice(const void* host, void* device, size_t bytes, Stream& stream);
void CopyToHost(const void* device, void* host, size_t bytes, Stream& stream);
void CopyOnDevice(const void* from, void* to, size_t bytes, Stream& stream);

// Enqueues zeroing of `bytes` bytes.
void ZeroOnDevice(void* device, size_t bytes, Stream& stream);

// Copies a whole view; sizes must be equal.
template <typename T>
void CopyToDevice(MemoryView<const T> host, MemoryView<T> device, Stream& stream) {
  CopyToDevice(host.data, device.data, device.size * sizeof(T), stream);
}
template <typename T>
void CopyToHost(MemoryView<const T> device, MemoryView<T> host, Stream& stream) {
  CopyToHost(device.data, host.data, host.size * sizeof(T), stream);
}

}  // namespace cistern
