#include "cuda/op/dense/narrow_backward.h"

#include <algorithm>

#include "cuda/op/dense/bias_gradient.h"
#include "cuda/op/dense/fully_connected.h"
#include "cuda/op/primitive/cpu.h"

namespace cistern::op {

namespace gpu {  // narrow_backward.cu
decltype(op::NarrowBackward) NarrowBackward;
}  // namespace gpu

void NarrowBackward(ConstValues x, ConstValues y, Values dy, float* dweight, float* dbias, size_t b,
                    size_t k, size_t n, float* scratch, Stream& stream) {
  CISTERN_RUN_ON_GPU(NarrowBackward, x, y, dy, dweight, dbias, b, k, n, scratch);
  float* const unread = scratch + BiasGradientScratchFloats(b, n);
  BiasGradient(y, dy, dbias != nullptr ? dbias : unread, b, n, scratch, stream);
  FullyConnectedBackward(x, nullptr, dy, Write::kOverwrite, nullptr, dweight, b, k, n, scratch,
                         stream);
}

// The partial sums of a GPU's blocks of rows, of k weights and a bias for each column,
// or what the ops of the CPU need.
size_t NarrowBackwardScratchFloats(ElementType type, size_t b, size_t k, size_t n) {
  return std::max({(b / 512 + 1) * (k + 1) * n, BiasGradientScratchFloats(b, n) + n,
                   FullyConnectedScratchFloats(type, b, k, n)});
}

}  // namespace cistern::op
