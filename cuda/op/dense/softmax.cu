// Memory traffic for b n elements of s bytes: Softmax 2 s (the second and third read of a row hit
// the cache), MaskedSoftmax (2 + 1 / heads) s, backward 3 s (4 s where it accumulates). Two
// exponentials per element in Softmax, which is cheaper than storing the first.
#include "cuda/op/dense/softmax.h"

#include <cmath>

#include "cuda/op/primitive/map_packs.cuh"
#include "cuda/op/primitive/reduce.cuh"

namespace cistern::op::gpu {
namespace {

// The exponents of row r, a function of the column.
template <typename T>
struct PlainExponents {
  float factor;
  const T* x;
  struct Row {
    float factor;
    const T* x;
    __device__ float operator()(size_t c) const { return factor * float{x[c]}; }
  };
  __device__ Row Of(size_t r, size_t, size_t n) const { return {factor, x + r * n}; }
};

// The least penalty of a row is left out: it cancels, and would cost digits.
template <typename T>
struct MaskedExponents {
  float factor;
  const T *x, *mask;
  size_t heads, rows;
  struct Row {
    float factor, most;
    const T *x, *mask;
    __device__ float operator()(size_t c) const {
      return factor * float{x[c]} - kMaskPenalty * (most - float{mask[c]});
    }
  };
  __device__ Row Of(size_t r, size_t columns, size_t n) const {
    Row row = {factor, -INFINITY, x + r * n, mask + (r / (heads * rows) * rows + r % rows) * n};
    for (size_t c = threadIdx.x; c < columns; c += blockDim.x) {
      row.most = fmaxf(row.most, float{row.mask[c]});
    }
    row.most = LargestOverRow(row.most);
    return row;
  }
};

// A row beyond the last has no columns, so that all threads of a warp take part in the shuffles.
template <typename T, typename Exponents>
__global__ void __launch_bounds__(kBlockThreads)
    SoftmaxKernel(Exponents exponents, T* y, size_t b, size_t n) {
  const size_t r = size_t{blockIdx.x} * blockDim.y + threadIdx.y;
  const size_t columns = r < b ? n : 0;
  const auto exponent = exponents.Of(r, columns, n);
  T* to = y + r * n;
  float largest = -INFINITY;
  for (size_t c = threadIdx.x; c < columns; c += blockDim.x) largest = fmaxf(largest, exponent(c));
  largest = LargestOverRow(largest);
  float sum = 0.0f;
  for (size_t c = threadIdx.x; c < columns; c += blockDim.x) sum += expf(exponent(c) - largest);
  const float share = 1.0f / SumOverRow(sum);
  for (size_t c = threadIdx.x; c < columns; c += blockDim.x) {
    to[c] = expf(exponent(c) - largest) * share;
  }
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    SoftmaxBackwardKernel(float factor, const T* y, const T* dy, bool accumulate, T* dx, size_t b,
                          size_t n) {
  const size_t r = size_t{blockIdx.x} * blockDim.y + threadIdx.y;
  const size_t columns = r < b ? n : 0;
  const T *out = y + r * n, *g = dy + r * n;
  T* to = dx + r * n;
  float dot = 0.0f;
  for (size_t c = threadIdx.x; c < columns; c += blockDim.x) dot += float{out[c]} * float{g[c]};
  dot = SumOverRow(dot);
  for (size_t c = threadIdx.x; c < columns; c += blockDim.x) {
    const float grad = factor * float{out[c]} * (float{g[c]} - dot);
    to[c] = accumulate ? RoundedSum(to[c], grad) : grad;
  }
}

dim3 SoftmaxGrid(size_t b, dim3 block) {
  return dim3(static_cast<unsigned>(CeilDivide(b, block.y)));
}

}  // namespace

void Softmax(float factor, ConstValues x, Values y, size_t b, size_t n, Stream& stream) {
  if (b == 0 || n == 0) return;
  const dim3 block = RowBlock(n, kWarp);
  ForType(x.type, [&]<typename T>() {
    Launch("Softmax", SoftmaxKernel<T, PlainExponents<T>>, SoftmaxGrid(b, block), block, 0, stream,
           PlainExponents<T>{factor, As<T>(x)}, As<T>(y), b, n);
  });
}

void MaskedSoftmax(float factor, ConstValues x, ConstValues mask, Values y, size_t b, size_t heads,
                   size_t rows, size_t n, Stream& stream) {
  const size_t all = b * heads * rows;
  if (all == 0 || n == 0) return;
  const dim3 block = RowBlock(n, kWarp);
  ForType(x.type, [&]<typename T>() {
    const MaskedExponents<T> exponents = {factor, As<T>(x), As<T>(mask), heads, rows};
    Launch("MaskedSoftmax", SoftmaxKernel<T, MaskedExponents<T>>, SoftmaxGrid(all, block), block, 0,
           stream, exponents, As<T>(y), all, n);
  });
}

void SoftmaxBackward(float factor, ConstValues y, ConstValues dy, Write write, Values dx, size_t b,
                     size_t n, Stream& stream) {
  if (b == 0 || n == 0) return;
  const dim3 block = RowBlock(n, kWarp);
  ForType(y.type, [&]<typename T>() {
    Launch("SoftmaxBackward", SoftmaxBackwardKernel<T>, SoftmaxGrid(b, block), block, 0, stream,
           factor, As<T>(y), As<T>(dy), write == Write::kAccumulate, As<T>(dx), b, n);
  });
}

}  // namespace cistern::op::gpu
