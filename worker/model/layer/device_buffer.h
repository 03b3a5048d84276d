// An array in the memory of the device on which ops run.
#pragma once

#include <cstddef>
#include <utility>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "cuda/core/device_context.h"

namespace cistern::model {

// Grows and never shrinks, so that a step allocates memory only if it is larger than every step
// before it.
//
// Threads: one at a time.
template <typename T>
class DeviceBuffer {
 public:
  // Makes room for `size` elements. If it must grow, it waits for the stream, which may be using
  // the contents, and the contents are zero afterwards. kResourceExhausted as MemoryPool::Take.
  absl::Status Grow(size_t size, DeviceContext& device, absl::string_view tag) {
    if (size <= size_) return absl::OkStatus();
    if (size_ > 0) CISTERN_RETURN_IF_ERROR(device.stream().Wait());
    size_ = 0;
    memory_ = Memory();  // frees the old memory before allocating more
    CISTERN_ASSIGN_OR_RETURN(memory_,
                             device.pool().Take(MemoryPlace::kDevice, size * sizeof(T), tag));
    size_ = size;
    return absl::OkStatus();
  }
  size_t size() const { return size_; }
  T* data() { return static_cast<T*>(memory_.data()); }
  const T* data() const { return static_cast<const T*>(memory_.data()); }
  void swap(DeviceBuffer& other) {
    memory_.swap(other.memory_);
    std::swap(size_, other.size_);
  }

 private:
  Memory memory_;
  size_t size_ = 0;
};

using DeviceFloats = DeviceBuffer<float>;

}  // namespace cistern::model
