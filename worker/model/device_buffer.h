// Floats in the memory of the device that ops run on.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "common/check.h"

namespace cistern {

// Zeroed, aligned to a cache line. Grows and never shrinks, so that a step allocates only when it
// is larger than every step before it.
//
// Threads: one at a time.
class DeviceBuffer {
 public:
  static constexpr size_t kAlignment = 64;

  // Makes room for `floats`; the contents are lost if it has to grow.
  void Grow(size_t floats) {
    if (floats <= size_) return;
    const size_t bytes = (floats * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
    floats_.reset(static_cast<float*>(std::aligned_alloc(kAlignment, bytes)));
    CISTERN_CHECK(floats_ != nullptr);
    std::memset(floats_.get(), 0, bytes);
    size_ = floats;
  }
  size_t size() const { return size_; }
  float* data() { return floats_.get(); }
  const float* data() const { return floats_.get(); }
  void swap(DeviceBuffer& other) {
    floats_.swap(other.floats_);
    std::swap(size_, other.size_);
  }

 private:
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  std::unique_ptr<float, Free> floats_;
  size_t size_ = 0;
};

}  // namespace cistern
