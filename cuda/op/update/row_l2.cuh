// L2 gradients of rows. Internal to x.cu.
#pragma once

#include "cuda/op/primitive/pack.cuh"
#include "cuda/op/primitive/reduce.cuh"

namespace cistern::op {

inline constexpr size_t kRowsOfL2Partial = 128;  // as the sizes of scratch in x.h assume

// Rows per thread, whose loads are in flight together.
inline constexpr unsigned kL2RowsPerThread = 4;

// Each block adds the gradients of kRowsOfL2Partial rows and sums the squares of their weights.
// `lanes` threads, a power of two, share a row; each takes packs of kWidth weights.
// place(c): the place of weight c in a row; weights c .. c + kWidth are neighbours.
template <unsigned kWidth, typename Place>
__global__ void __launch_bounds__(kBlockThreads)
    RowL2Kernel(DeviceFactor l2, const uint32_t* rows, const float* values, size_t stride,
                float* grads, double* partial, size_t distinct, unsigned width, unsigned lanes,
                Place place) {
  using Floats = Pack<float, kWidth>;
  constexpr unsigned kRows = kL2RowsPerThread;
  const size_t begin = size_t{blockIdx.x} * kRowsOfL2Partial;
  const size_t end = begin + kRowsOfL2Partial < distinct ? begin + kRowsOfL2Partial : distinct;
  const unsigned step = kBlockThreads / lanes;  // rows that the block reads at once
  const float factor = l2.product();
  double sum = 0;
  for (size_t first = begin + threadIdx.x / lanes; first < end; first += kRows * step) {
    for (unsigned c = threadIdx.x % lanes * kWidth; c < width; c += lanes * kWidth) {
      Floats w[kRows], g[kRows];
#pragma unroll
      for (unsigned k = 0; k < kRows; ++k) {
        const size_t i = first + k * step;
        if (i >= end) continue;
        w[k] = Floats::Load(values + rows[i] * stride + place(c));
        g[k] = Floats::Load(grads + i * width + c);
      }
#pragma unroll
      for (unsigned k = 0; k < kRows; ++k) {
        const size_t i = first + k * step;
        if (i >= end) continue;
#pragma unroll
        for (unsigned v = 0; v < kWidth; ++v) {
          g[k].Set(v, g[k][v] + factor * w[k][v]);
          sum += double{w[k][v]} * double{w[k][v]};
        }
        g[k].Store(grads + i * width + c);
      }
    }
  }
  sum = BlockSum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// grads [distinct, width] += l2 * the weights of `rows`; *square_sum = the sum of their squares, if
// it is wanted. partial: [CeilDivide(distinct, kRowsOfL2Partial)] doubles.
template <unsigned kWidth, typename Place>
void AddL2OfRows(const char* op, DeviceFactor l2, const uint32_t* rows, const float* values,
                 size_t stride, float* grads, float* partial, double* square_sum, size_t distinct,
                 size_t width, Stream& stream, const Place& place) {
  const size_t pieces = CeilDivide(distinct, kRowsOfL2Partial);
  auto* sums = reinterpret_cast<double*>(partial);
  const unsigned lanes = PowerOfTwo(CeilDivide(width, size_t{kWidth}), kWarp);
  Launch(op, RowL2Kernel<kWidth, Place>, dim3(static_cast<unsigned>(pieces)), dim3(kBlockThreads),
         0, stream, l2, rows, values, stride, grads, sums, distinct, static_cast<unsigned>(width),
         lanes, place);
  if (square_sum != nullptr) AddPieces(op, sums, pieces, 1.0, square_sum, stream);
}

}  // namespace cistern::op
