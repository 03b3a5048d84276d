// Memory traffic for elements of s bytes: s b n, with a ReLU 3 s b n; and b n / 8 floats of partial
// sums.
//
// Where alignment allows it, a thread reads 16 bytes of a row, and of every eighth row of its
// block: four such loads per array are in flight before the first is used.
#include "cuda/op/dense/bias_gradient.h"

#include "cuda/op/dense/dropout_element.h"
#include "cuda/op/primitive/pack.cuh"
#include "cuda/op/primitive/reduce.cuh"

namespace cistern::op::gpu {
namespace {

template <typename T>
inline constexpr unsigned kWide = 16 / sizeof(T);
template <typename T>
using Wide = Pack<T, kWide<T>>;

constexpr unsigned kUnderWay = 4;

// partial: [row blocks, n]. n: a multiple of kWide. blockDim: (columns / kWide, rows).
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    WideSweepKernel(const T* y, T* dy, size_t b, size_t n, float* partial) {
  const size_t begin = size_t{blockIdx.x} * kRowsOfBlock;
  const size_t end = begin + kRowsOfBlock < b ? begin + kRowsOfBlock : b;
  const size_t c = (size_t{blockIdx.y} * blockDim.x + threadIdx.x) * kWide<T>;
  float sum[kWide<T>] = {};
  for (size_t first = begin + threadIdx.y; c < n && first < end; first += kUnderWay * blockDim.y) {
    Wide<T> grad[kUnderWay], out[kUnderWay];
#pragma unroll
    for (unsigned k = 0; k < kUnderWay; ++k) {
      const size_t r = first + k * blockDim.y;
      if (r >= end) continue;
      grad[k] = Wide<T>::Load(dy + r * n + c);
      if (y != nullptr) out[k] = Wide<T>::Load(y + r * n + c);
    }
#pragma unroll
    for (unsigned k = 0; k < kUnderWay; ++k) {
      const size_t r = first + k * blockDim.y;
      if (r >= end) continue;
      if (y != nullptr) {
        Wide<T> made;
#pragma unroll
        for (unsigned e = 0; e < kWide<T>; ++e) {
          made.Set(e, BehindRelu(out[k][e], grad[k][e], 1.0f));
        }
        made.Store(dy + r * n + c);
        grad[k] = made;
      }
#pragma unroll
      for (unsigned e = 0; e < kWide<T>; ++e) sum[e] += grad[k][e];
    }
  }
  // Each thread's columns are added one at a time: the shared memory of AddOverRows is small.
#pragma unroll
  for (unsigned e = 0; e < kWide<T>; ++e) {
    float one[1] = {sum[e]};
    AddOverRows(one);
    if (threadIdx.y == 0 && c < n) partial[blockIdx.x * n + c + e] = one[0];
  }
}

template <typename T>
bool IsWide(const T* x, size_t n) {
  return n % kWide<T> == 0 && HoldsPacks(x, 16);
}

template <typename T>
void SweepOf(const T* y, T* dy, size_t b, size_t n, float* partial, Stream& stream) {
  if (IsWide(y, n) && IsWide(dy, n)) {
    const dim3 block = RowBlock(n / kWide<T>, kSumWidth);
    const dim3 grid(static_cast<unsigned>(CeilDivide(b, kRowsOfBlock)),
                    static_cast<unsigned>(CeilDivide(n / kWide<T>, block.x)));
    return Launch("BiasGradient", WideSweepKernel<T>, grid, block, 0, stream, y, dy, b, n, partial);
  }
  ColumnSums<1>("BiasGradient", b, n, partial, stream,
                [=] __device__(size_t r, size_t c, float* sum) {
                  T* at = dy + r * n + c;
                  if (y != nullptr) *at = BehindRelu(y[r * n + c], *at, 1.0f);
                  sum[0] += *at;
                });
}

}  // namespace

void BiasGradient(ConstValues y, Values dy, float* dbias, size_t b, size_t n, float* scratch,
                  Stream& stream) {
  ForType(dy.type, [&]<typename T>() { SweepOf(As<T>(y), As<T>(dy), b, n, scratch, stream); });
  AddBlocks("BiasGradient", scratch, 1, CeilDivide(b, kRowsOfBlock), n, dbias, nullptr, stream);
}

}  // namespace cistern::op::gpu
