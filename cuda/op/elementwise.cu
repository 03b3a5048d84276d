// Bytes that must move, for count floats: Fill 4, Scale 8, Accumulate 12, Add 12 each; at most one
// FLOP each.
#include "cuda/op/elementwise.h"

#include "cuda/op/map.cuh"

namespace cistern::op::gpu {

void Fill(float value, float* x, size_t count, Stream& stream) {
  Map("Fill", count, Write::kOverwrite, x, stream, [=] __device__(size_t) { return value; });
}

void Scale(float factor, float* x, size_t count, Stream& stream) {
  Map("Scale", count, Write::kOverwrite, x, stream,
      [=] __device__(size_t i) { return x[i] * factor; });
}

void Accumulate(const float* x, float* y, size_t count, Stream& stream) {
  Map("Accumulate", count, Write::kAccumulate, y, stream,
      [=] __device__(size_t i) { return x[i]; });
}

void Add(const float* a, const float* b, float* y, size_t count, Stream& stream) {
  Map("Add", count, Write::kOverwrite, y, stream, [=] __device__(size_t i) { return a[i] + b[i]; });
}

}  // namespace cistern::op::gpu
