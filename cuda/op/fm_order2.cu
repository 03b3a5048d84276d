// Bytes that must move, for N = b slots dim elements of s bytes: FmOrder2 s N + s b dim; backward
// 2 s N + s b dim (3 s N where it accumulates), its second read of x is from the cache. 3 FLOPs an
// element of x each.
#include "cuda/op/fm_order2.h"

#include "cuda/op/map.cuh"

namespace cistern::op::gpu {
namespace {

// A thread makes dx(i, s, e) for all s.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads, 5)
    BackwardKernel(const T* x, const T* dy, bool accumulate, T* dx, size_t b, size_t slots,
                   size_t dim) {
  const size_t i = size_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (i >= b) return;
  const size_t step = size_t{gridDim.y} * blockDim.x;
  for (size_t e = size_t{blockIdx.y} * blockDim.x + threadIdx.x; e < dim; e += step) {
    const T* in = x + i * slots * dim + e;
    T* out = dx + i * slots * dim + e;
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

template <typename T>
void ForwardOf(const T* x, T* y, size_t b, size_t slots, size_t dim, Stream& stream) {
  MapRows("FmOrder2", b, dim, Write::kOverwrite, y, dim, stream,
          [=] __device__(size_t r, size_t c) {
            const T* in = x + r * slots * dim + c;
            float sum = 0.0f, squares = 0.0f;
#pragma unroll 4
            for (size_t s = 0; s < slots; ++s) {
              const float value = in[s * dim];
              sum += value;
              squares += value * value;
            }
            return 0.5f * (sum * sum - squares);
          });
}

}  // namespace

void FmOrder2(ConstValues x, Values y, size_t b, size_t slots, size_t dim, Stream& stream) {
  ForType(x.type, [&]<typename T>() { ForwardOf(As<T>(x), As<T>(y), b, slots, dim, stream); });
}

void FmOrder2Backward(ConstValues x, ConstValues dy, Write write, Values dx, size_t b, size_t slots,
                      size_t dim, Stream& stream) {
  const dim3 block = RowBlock(dim);
  const dim3 grid(static_cast<unsigned>(CeilDivide(b, block.y)),
                  static_cast<unsigned>(std::min(CeilDivide(dim, block.x), kMaxGridY)));
  ForType(x.type, [&]<typename T>() {
    Launch("FmOrder2Backward", BackwardKernel<T>, grid, block, 0, stream, As<T>(x), As<T>(dy),
           write == Write::kAccumulate, As<T>(dx), b, slots, dim);
  });
}

}  // namespace cistern::op::gpu
