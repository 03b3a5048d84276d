// Memory traffic for N = b slots dim elements of s bytes: Multiply s N + s b slots;
// MultiplyBackward s N + 2 s b slots if the second read of dy hits the cache, else 2 s N. 1 and 4
// FLOPs per element of dy.
#include "cuda/op/dense/multiply.h"

#include "cuda/op/primitive/map_packs.cuh"
#include "cuda/op/primitive/reduce.cuh"

namespace cistern::op::gpu {
namespace {

// A group of `lanes` threads, a power of two up to a warp, computes one dx(i, s).
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    DotKernel(const float* weight, const T* dy, bool accumulate, T* dx, size_t count, size_t slots,
              size_t dim) {
  const size_t at = size_t{blockIdx.x} * blockDim.y + threadIdx.y;  // i * slots + s
  const T* g = dy + at * dim;
  float dot = 0.0f;
  if (at < count) {
    const float* w = weight + at % slots * dim;
    for (size_t e = threadIdx.x; e < dim; e += blockDim.x) dot += g[e] * w[e];
  }
  for (unsigned offset = blockDim.x / 2; offset > 0; offset /= 2) {
    dot += __shfl_xor_sync(kFullWarp, dot, static_cast<int>(offset));
  }
  if (threadIdx.x == 0 && at < count) dx[at] = accumulate ? dx[at] + dot : dot;
}

template <typename T>
void MultiplyForwardOf(const T* x, const float* weight, T* y, size_t b, size_t slots, size_t dim,
                       Stream& stream) {
  MapMatrices(
      "Multiply", b, slots * dim, Write::kOverwrite, y, slots * dim, stream,
      [=] __device__(float feature, float w) { return feature * w; },
      RepeatedElements<T>{{x, slots}, dim}, ColumnsOf<float>{weight});
}

template <typename T>
void MultiplyBackwardOf(const T* x, const float* weight, const T* dy, Write dx_write, T* dx,
                        float* dweight, size_t b, size_t slots, size_t dim, float* scratch,
                        Stream& stream) {
  const size_t n = slots * dim;
  ColumnSums<1>("MultiplyBackward: dweight", b, n, scratch, stream,
                [=] __device__(size_t r, size_t c, float* sum) {
                  sum[0] += dy[r * n + c] * x[r * slots + c / dim];
                });
  AddBlocks("MultiplyBackward: dweight", scratch, 1, CeilDivide(b, kRowsOfBlock), n, dweight,
            nullptr, stream);
  if (dx == nullptr) return;
  const dim3 block = RowBlock(dim, kWarp);
  Launch("MultiplyBackward: dx", DotKernel<T>,
         dim3(static_cast<unsigned>(CeilDivide(b * slots, block.y))), block, 0, stream, weight, dy,
         dx_write == Write::kAccumulate, dx, b * slots, slots, dim);
}

}  // namespace

void Multiply(ConstValues x, const float* weight, Values y, size_t b, size_t slots, size_t dim,
              Stream& stream) {
  ForType(x.type, [&]<typename T>() {
    MultiplyForwardOf(As<T>(x), weight, As<T>(y), b, slots, dim, stream);
  });
}

void MultiplyBackward(ConstValues x, const float* weight, ConstValues dy, Write dx_write, Values dx,
                      float* dweight, size_t b, size_t slots, size_t dim, float* scratch,
                      Stream& stream) {
  ForType(x.type, [&]<typename T>() {
    MultiplyBackwardOf(As<T>(x), weight, As<T>(dy), dx_write, As<T>(dx), dweight, b, slots, dim,
                       scratch, stream);
  });
}

}  // namespace cistern::op::gpu
