// The weights of a dense layer as the product for prediction reads them.
#pragma once

#include <vector>

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// A copy of weights on the CPU, in panels. Without one, every product copies them.
//
// Threads: immutable; any thread.
class PackedWeights {
 public:
  PackedWeights() = default;  // empty
  // weight: [k, n].
  PackedWeights(const float* weight, size_t k, size_t n);

  // The panels; null if empty.
  const float* panels() const { return lines_.empty() ? nullptr : lines_.front().floats; }

 private:
  struct alignas(64) Line {
    float floats[16];
  };
  std::vector<Line> lines_;
};

// FullyConnectedInfer (fully_connected.h) on the CPU and in floats: the same bits. n > 1. packed:
// those of `weight`.
void FullyConnectedInferPacked(const float* x, const float* weight, const PackedWeights& packed,
                               const float* bias, bool relu, float* y, size_t b, size_t k,
                               size_t n);

}  // namespace cistern::op
