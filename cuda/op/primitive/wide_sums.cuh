// Sums over the rows of a matrix whose rows consist of whole packs of 16 bytes. Internal to x.cu.
//
// A thread adds one pack of columns of every eighth row of its block, and has the packs of four
// rows in flight before it uses the first. The order of the sums is fixed, as in reduce.cuh.
#pragma once

#include "cuda/op/primitive/pack.cuh"
#include "cuda/op/primitive/reduce.cuh"

namespace cistern::op {

template <typename T>
inline constexpr unsigned kWide = 16 / sizeof(T);
template <typename T>
using Wide = Pack<T, kWide<T>>;

inline constexpr unsigned kRowsUnderWay = 4;

// Whether the rows of x [b, n] consist of whole packs.
template <typename T>
bool IsWide(const T* x, size_t n) {
  return n % kWide<T> == 0 && HoldsPacks(x, 16);
}

// partial: [row blocks, n]. blockDim: (packs of columns, rows).
template <typename Terms>
__global__ void __launch_bounds__(kBlockThreads)
    WideSumsKernel(size_t b, size_t n, Terms terms, float* partial) {
  constexpr unsigned kCount = Terms::kColumns;
  const size_t begin = size_t{blockIdx.x} * kRowsOfBlock;
  const size_t end = begin + kRowsOfBlock < b ? begin + kRowsOfBlock : b;
  const size_t c = (size_t{blockIdx.y} * blockDim.x + threadIdx.x) * kCount;
  float sum[kCount] = {};
  const size_t step = blockDim.y * n;
  size_t at = (begin + threadIdx.y) * n + c;  // the place of row `first`
  for (size_t first = begin + threadIdx.y; c < n && first < end;
       first += kRowsUnderWay * blockDim.y, at += kRowsUnderWay * step) {
    typename Terms::Loaded loaded[kRowsUnderWay];
#pragma unroll
    for (unsigned k = 0; k < kRowsUnderWay; ++k) {
      if (first + k * blockDim.y < end)
        terms.Load(first + k * blockDim.y, at + k * step, &loaded[k]);
    }
#pragma unroll
    for (unsigned k = 0; k < kRowsUnderWay; ++k) {
      if (first + k * blockDim.y < end) terms.Add(loaded[k], at + k * step, c, sum);
    }
  }
  // Each thread's columns are added one at a time: the shared memory of AddOverRows is small.
#pragma unroll
  for (unsigned e = 0; e < kCount; ++e) {
    float one[1] = {sum[e]};
    AddOverRows(one);
    if (threadIdx.y == 0 && c < n) partial[blockIdx.x * n + c + e] = one[0];
  }
}

// partial(k, c) = the sum over the rows r of block k of what terms.Add adds to sum[e], for column
// c + e. n: a multiple of Terms::kColumns. terms.Load(r, r n + c, &loaded) loads what
// terms.Add(loaded, r n + c, c, sum) uses.
template <typename Terms>
void WideSums(const char* op, size_t b, size_t n, float* partial, Stream& stream,
              const Terms& terms) {
  const dim3 block = RowBlock(n / Terms::kColumns, kSumWidth);
  const dim3 grid(static_cast<unsigned>(CeilDivide(b, kRowsOfBlock)),
                  static_cast<unsigned>(CeilDivide(n / Terms::kColumns, block.x)));
  Launch(op, WideSumsKernel<Terms>, grid, block, 0, stream, b, n, terms, partial);
}

}  // namespace cistern::op
