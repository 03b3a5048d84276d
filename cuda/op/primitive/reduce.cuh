// Sums in a fixed order, without atomics. Internal to x.cu.
//
// As on the CPU, a sum is cut into pieces that depend only on the shape. The sums of the pieces are
// partial results in scratch, which a second kernel adds. Within a block, threads add along a tree
// fixed by their indices. Two runs therefore give the same bits, on any GPU.
#pragma once

#include "cuda/op/primitive/map.cuh"

namespace cistern::op {

// Every lane gets the sum over its warp.
template <typename T>
__device__ inline T WarpSum(T value) {
#pragma unroll
  for (unsigned offset = kWarp / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(kFullWarp, value, static_cast<int>(offset));
  }
  return value;
}

// Sum and largest over a row that blockDim.x threads, a power of two up to a warp, share. Each of
// them gets the result.
__device__ inline float SumOverRow(float value) {
  for (unsigned offset = blockDim.x / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(kFullWarp, value, static_cast<int>(offset));
  }
  return value;
}
__device__ inline float LargestOverRow(float value) {
  for (unsigned offset = blockDim.x / 2; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kFullWarp, value, static_cast<int>(offset)));
  }
  return value;
}

// Thread 0 gets the sum over a block of kBlockThreads threads (one dimension).
template <typename T>
__device__ inline T BlockSum(T value) {
  __shared__ T warp_sums[kBlockThreads / kWarp];
  value = WarpSum(value);
  if (threadIdx.x % kWarp == 0) warp_sums[threadIdx.x / kWarp] = value;
  __syncthreads();
  T sum = 0;
  if (threadIdx.x == 0) {
    for (unsigned w = 0; w < kBlockThreads / kWarp; ++w) sum += warp_sums[w];
  }
  __syncthreads();
  return sum;
}

template <int kTogether, typename Term>
__global__ void __launch_bounds__(kBlockThreads)
    PieceSumsKernel(size_t count, size_t grain, Term term, double* partial) {
  const size_t begin = size_t{blockIdx.x} * grain;
  const size_t end = begin + grain < count ? begin + grain : count;
  double sum = 0;
#pragma unroll kTogether
  for (size_t i = begin + threadIdx.x; i < end; i += kBlockThreads) sum += term(i);
  sum = BlockSum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

static __global__ void __launch_bounds__(kBlockThreads)
    AddPiecesKernel(const double* partial, size_t pieces, double factor, double* out) {
  double sum = 0;
  for (size_t k = threadIdx.x; k < pieces; k += kBlockThreads) sum += partial[k];
  sum = BlockSum(sum);
  if (threadIdx.x == 0) *out = factor * sum;
}

// *out = factor * the sum of partial[0, pieces).
inline void AddPieces(const char* op, const double* partial, size_t pieces, double factor,
                      double* out, Stream& stream) {
  Launch(op, AddPiecesKernel, dim3(1), dim3(kBlockThreads), 0, stream, partial, pieces, factor,
         out);
}

// *out = factor * the sum of term(i), a double, over i < count, in pieces of `grain`.
// partial: [CeilDivide(count, grain)] doubles. kTogether: terms per thread whose loads are in
// flight together, if a term is only a load.
template <int kTogether = 1, typename Term>
void SumInPieces(const char* op, size_t count, size_t grain, double factor, float* partial,
                 double* out, Stream& stream, const Term& term) {
  const size_t pieces = CeilDivide(count, grain);
  auto* sums = reinterpret_cast<double*>(partial);
  Launch(op, PieceSumsKernel<kTogether, Term>, dim3(static_cast<unsigned>(pieces)),
         dim3(kBlockThreads), 0, stream, count, grain, term, sums);
  AddPieces(op, sums, pieces, factor, out, stream);
}

// Rows per partial sum, as on the CPU (cpu.h).
inline constexpr size_t kRowsOfBlock = 64;

// Adds sum[0 .. kSums) over the threads with the same threadIdx.x, which share a column. The thread
// with threadIdx.y = 0 gets the result.
template <int kSums, typename T>
__device__ inline void AddOverRows(T (&sum)[kSums]) {
  __shared__ T shared[kSums][kBlockThreads];
  const unsigned at = threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll
  for (int s = 0; s < kSums; ++s) shared[s][at] = sum[s];
  for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y >= half) continue;
#pragma unroll
    for (int s = 0; s < kSums; ++s) shared[s][at] += shared[s][at + half * blockDim.x];
  }
#pragma unroll
  for (int s = 0; s < kSums; ++s) sum[s] = shared[s][at];
  __syncthreads();
}

template <int kSums, typename Add>
__global__ void __launch_bounds__(kBlockThreads)
    ColumnSumsKernel(size_t b, size_t n, Add add, float* partial) {
  const size_t begin = size_t{blockIdx.x} * kRowsOfBlock;
  const size_t end = begin + kRowsOfBlock < b ? begin + kRowsOfBlock : b;
  const size_t c = size_t{blockIdx.y} * blockDim.x + threadIdx.x;
  float sum[kSums] = {};
  if (c < n) {
#pragma unroll 8
    for (size_t r = begin + threadIdx.y; r < end; r += blockDim.y) add(r, c, sum);
  }
  AddOverRows(sum);
  if (threadIdx.y > 0 || c >= n) return;
#pragma unroll
  for (int s = 0; s < kSums; ++s) partial[(s * size_t{gridDim.x} + blockIdx.x) * n + c] = sum[s];
}

// Threads of a block that adds the rows of partial results, and columns that they share: few, so
// that many blocks and threads read at the same time.
inline constexpr unsigned kAddThreads = 1024, kAddWidth = 8;

// out(s, c) = the sum over the `blocks` rows of partial(s), in double; s = blockIdx.y.
static __global__ void __launch_bounds__(kAddThreads)
    AddBlocksKernel(const float* partial, size_t blocks, size_t n, float* out0, float* out1) {
  __shared__ double sums[kAddThreads];
  const float* from = partial + blockIdx.y * blocks * n;
  const size_t c = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const unsigned at = threadIdx.y * blockDim.x + threadIdx.x;
  double sum = 0;
  if (c < n) {
#pragma unroll 8
    for (size_t k = threadIdx.y; k < blocks; k += blockDim.y) sum += from[k * n + c];
  }
  sums[at] = sum;
  for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y < half) sums[at] += sums[at + half * blockDim.x];
  }
  if (threadIdx.y == 0 && c < n) (blockIdx.y == 0 ? out0 : out1)[c] = static_cast<float>(sums[at]);
}

inline constexpr unsigned kSumWidth = 32;  // columns per block in sums over rows

// out0 and, with sums = 2, out1: the sums over the rows of partial [sums, blocks, n].
inline void AddBlocks(const char* op, const float* partial, unsigned sums, size_t blocks, size_t n,
                      float* out0, float* out1, Stream& stream) {
  const unsigned width = PowerOfTwo(n, kAddWidth);
  const dim3 block(width, PowerOfTwo(blocks, kAddThreads / width));
  Launch(op, AddBlocksKernel, dim3(static_cast<unsigned>(CeilDivide(n, block.x)), sums), block, 0,
         stream, partial, blocks, n, out0, out1);
}

// partial(s, k, c) = sum over the rows r of block k of what add(r, c, sum) adds to sum[s].
// partial: [kSums, CeilDivide(b, kRowsOfBlock), n].
template <int kSums, typename Add>
void ColumnSums(const char* op, size_t b, size_t n, float* partial, Stream& stream,
                const Add& add) {
  const dim3 block = RowBlock(n, kSumWidth);
  const dim3 grid(static_cast<unsigned>(CeilDivide(b, kRowsOfBlock)),
                  static_cast<unsigned>(CeilDivide(n, block.x)));
  Launch(op, ColumnSumsKernel<kSums, Add>, grid, block, 0, stream, b, n, add, partial);
}

}  // namespace cistern::op
