// Whole arrays of activations as floats, for CPU ops that pass them to a library. Internal to
// x_cpu.cc.
//
// 16-bit arrays are widened into memory allocated for the call. This is slow; it specifies what a
// GPU does without widening.
#pragma once

#include <vector>

#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/element.h"

namespace cistern::op {

class WideArray {
 public:
  WideArray(ConstValues x, size_t count) : floats_(static_cast<const float*>(x.data)) {
    if (x.type == ElementType::kFloat) return;
    copy_.resize(count);
    floats_ = copy_.data();
    ForType(x.type, [&]<typename T>() {
      const T* from = As<T>(x);
      float* to = copy_.data();
      ForPieces(count, kElementGrain, 2 * count,
                [=](size_t begin, size_t end) { std::copy(from + begin, from + end, to + begin); });
    });
  }
  WideArray(const WideArray&) = delete;
  const float* floats() const { return floats_; }

 private:
  const float* floats_;
  std::vector<float> copy_;
};

// A float buffer for an array that a library computes: with kAccumulate it starts with the array's
// values. Round stores them.
class WideResult {
 public:
  WideResult(Values x, size_t count, Write write) : to_(x), floats_(static_cast<float*>(x.data)) {
    if (x.type == ElementType::kFloat) return;
    copy_.resize(count);
    floats_ = copy_.data();
    if (write == Write::kOverwrite) return;
    ForType(x.type, [&]<typename T>() { std::copy_n(As<T>(x), count, copy_.data()); });
  }
  WideResult(const WideResult&) = delete;
  float* floats() { return floats_; }

  void Round() {
    if (copy_.empty()) return;
    ForType(to_.type, [&]<typename T>() {
      T* to = As<T>(to_);
      const float* from = floats_;
      const size_t count = copy_.size();
      ForPieces(count, kElementGrain, 2 * count,
                [=](size_t begin, size_t end) { std::copy(from + begin, from + end, to + begin); });
    });
  }

 private:
  const Values to_;
  float* floats_;
  std::vector<float> copy_;
};

}  // namespace cistern::op
