// Bytes that must move, for N = b slots dim: FmOrder2 4 N + 4 b dim; backward 8 N + 4 b dim (12 N
// where it accumulates), its second read of x is from the cache. 3 FLOPs a float of x each.
#include "cuda/op/fm_order2.h"

#include "cuda/op/map.cuh"

namespace cistern::op::gpu {
namespace {

// A thread makes dx(i, s, e) for all s.
__global__ void __launch_bounds__(kBlockThreads, 5)
    BackwardKernel(const float* x, const float* dy, bool accumulate, float* dx, size_t b,
                   size_t slots, size_t dim) {
  const size_t i = size_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (i >= b) return;
  const size_t step = size_t{gridDim.y} * blockDim.x;
  for (size_t e = size_t{blockIdx.y} * blockDim.x + threadIdx.x; e < dim; e += step) {
    const float* in = x + i * slots * dim + e;
    float* out = dx + i * slots * dim + e;
    float sum = 0.0f;
#pragma unroll 4
    for (size_t s = 0; s < slots; ++s) sum += in[s * dim];
    const float g = dy[i * dim + e];
#pragma unroll 4
    for (size_t s = 0; s < slots; ++s) {
      const float grad = g * (sum - in[s * dim]);
      out[s * dim] = accumulate ? out[s * dim] + grad : grad;
    }
  }
}

}  // namespace

void FmOrder2(const float* x, float* y, size_t b, size_t slots, size_t dim, Stream& stream) {
  MapRows("FmOrder2", b, dim, Write::kOverwrite, y, dim, stream,
          [=] __device__(size_t r, size_t c) {
            const float* in = x + r * slots * dim + c;
            float sum = 0.0f, squares = 0.0f;
#pragma unroll 4
            for (size_t s = 0; s < slots; ++s) {
              sum += in[s * dim];
              squares += in[s * dim] * in[s * dim];
            }
            return 0.5f * (sum * sum - squares);
          });
}

void FmOrder2Backward(const float* x, const float* dy, Write write, float* dx, size_t b,
                      size_t slots, size_t dim, Stream& stream) {
  const dim3 block = RowBlock(dim);
  const dim3 grid(static_cast<unsigned>(CeilDivide(b, block.y)),
                  static_cast<unsigned>(std::min(CeilDivide(dim, block.x), kMaxGridY)));
  Launch("FmOrder2Backward", BackwardKernel, grid, block, 0, stream, x, dy,
         write == Write::kAccumulate, dx, b, slots, dim);
}

}  // namespace cistern::op::gpu
