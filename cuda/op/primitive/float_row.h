// Rows of activations as floats, for CPU ops that read a row several times or accumulate in it.
// Internal to x_cpu.cc.
#pragma once

#include <algorithm>
#include <vector>

#include "cuda/op/primitive/element.h"
#include "cuda/op/primitive/op.h"

namespace cistern::op {

// A 16-bit row is widened into a copy, and rounded once when it is closed.
//
// Threads: one at a time.
template <typename T>
class FloatRow {
 public:
  explicit FloatRow(size_t n) : floats_(n) {}

  // The n values of `row`.
  const float* Read(const T* row) {
    std::copy_n(row, floats_.size(), floats_.data());
    return floats_.data();
  }
  // Returns the buffer for the new values of `row`; with kAccumulate it starts with the old values.
  // Close stores them.
  float* Open(T* row, Write write) {
    if (write == Write::kAccumulate) Read(row);
    return floats_.data();
  }
  void Close(T* row) { std::copy(floats_.begin(), floats_.end(), row); }

 private:
  std::vector<float> floats_;
};

// A float row is used in place.
template <>
class FloatRow<float> {
 public:
  explicit FloatRow(size_t) {}
  const float* Read(const float* row) { return row; }
  float* Open(float* row, Write) { return row; }
  void Close(float*) {}
};

}  // namespace cistern::op
