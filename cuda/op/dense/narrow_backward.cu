// Memory traffic for elements of s bytes: 2 s b n, s b k for each 64 columns (from the cache), and
// b / 512 (k + 1) n floats of partial sums. FLOPs: 2 b (kMaxNarrowInputs + 1) n.
#include "cuda/op/dense/narrow_backward.h"

#include "cuda/op/dense/dropout_element.h"
#include "cuda/op/primitive/pack.cuh"
#include "cuda/op/primitive/reduce.cuh"

namespace cistern::op::gpu {
namespace {

constexpr unsigned kNarrowRows = 512;  // of a block, as NarrowBackwardScratchFloats assumes
constexpr unsigned kNarrowStep = kBlockThreads / kWarp;  // rows that a block reads at a time
template <typename T>  // rows of a thread whose loads are in flight together
constexpr unsigned kNarrowTogether = 16 / sizeof(T);

// threadIdx.x runs over kWidth columns each, threadIdx.y over rows. The inputs of a tile of rows
// are in shared memory, zero from k on; each thread multiplies them with its columns.
// weight_parts: [row blocks, k, n]. bias_parts: [row blocks, n].
template <unsigned kWidth, typename T>
__global__ void __launch_bounds__(kBlockThreads, 3)
    NarrowBackwardKernel(const T* x, const T* y, const T* dy, size_t b, unsigned k, size_t n,
                         float* weight_parts, float* bias_parts) {
  constexpr unsigned kTogether = kNarrowTogether<T>, kTile = kTogether * kNarrowStep;
  constexpr unsigned kRowsOfPass = kBlockThreads / kMaxNarrowInputs;
  __shared__ float in[kTile][kMaxNarrowInputs];
  using Columns = Pack<T, kWidth>;
  const size_t begin = size_t{blockIdx.x} * kNarrowRows;
  const auto rows = static_cast<unsigned>(begin + kNarrowRows < b ? kNarrowRows : b - begin);
  const size_t c = (size_t{blockIdx.y} * kWarp + threadIdx.x) * kWidth;
  const unsigned thread = threadIdx.y * kWarp + threadIdx.x;
  const unsigned shared_row = thread / kMaxNarrowInputs, e_of_thread = thread % kMaxNarrowInputs;
  const T* from = x + (begin + shared_row) * k + e_of_thread;
  size_t at = (begin + threadIdx.y) * n + c;
  float weight[kMaxNarrowInputs][kWidth] = {}, bias[kWidth] = {};
  for (unsigned first = 0; first < rows; first += kTile) {
    Columns out[kTogether] = {}, grad[kTogether] = {};  // zero past the last row
#pragma unroll
    for (unsigned j = 0; j < kTogether; ++j, at += kNarrowStep * n) {
      if (first + threadIdx.y + j * kNarrowStep >= rows || c >= n) continue;
      out[j] = Columns::Load(y + at);
      grad[j] = Columns::Load(dy + at);
    }
    __syncthreads();  // the last tile has been read
#pragma unroll
    for (unsigned r = shared_row; r < kTile; r += kRowsOfPass, from += kRowsOfPass * k) {
      in[r][e_of_thread] = first + r < rows && e_of_thread < k ? float{*from} : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (unsigned j = 0; j < kTogether; ++j) {
      const float* inputs = in[threadIdx.y + j * kNarrowStep];
#pragma unroll
      for (unsigned v = 0; v < kWidth; ++v) {
        const float g = BehindRelu(out[j][v], grad[j][v], 1.0f);
        bias[v] += g;
#pragma unroll
        for (unsigned e = 0; e < kMaxNarrowInputs; ++e) weight[e][v] += inputs[e] * g;
      }
    }
  }
  // One sum at a time: the shared memory of AddOverRows is small.
  const auto store = [&](float sum, float* to) {
    float one[1] = {sum};
    AddOverRows(one);
    if (threadIdx.y == 0 && c < n) *to = one[0];
  };
#pragma unroll
  for (unsigned v = 0; v < kWidth; ++v) {
    store(bias[v], bias_parts + blockIdx.x * n + c + v);
#pragma unroll
    for (unsigned e = 0; e < kMaxNarrowInputs; ++e) {
      if (e < k) store(weight[e][v], weight_parts + (blockIdx.x * size_t{k} + e) * n + c + v);
    }
  }
}

template <unsigned kWidth, typename T>
void LaunchNarrow(const T* x, const T* y, const T* dy, size_t b, size_t k, size_t n,
                  float* weight_parts, float* bias_parts, Stream& stream) {
  const dim3 grid(static_cast<unsigned>(CeilDivide(b, kNarrowRows)),
                  static_cast<unsigned>(CeilDivide(n, kWarp * kWidth)));
  Launch("NarrowBackward", NarrowBackwardKernel<kWidth, T>, grid, dim3(kWarp, kNarrowStep), 0,
         stream, x, y, dy, b, static_cast<unsigned>(k), n, weight_parts, bias_parts);
}

}  // namespace

void NarrowBackward(ConstValues x, ConstValues y, Values dy, float* dweight, float* dbias, size_t b,
                    size_t k, size_t n, float* scratch, Stream& stream) {
  const size_t blocks = CeilDivide(b, kNarrowRows);
  float* const bias_parts = scratch + blocks * k * n;
  ForType(dy.type, [&]<typename T>() {
    const bool even =
        n % 2 == 0 && HoldsPacks(y.data, 2 * sizeof(T)) && HoldsPacks(dy.data, 2 * sizeof(T));
    const auto launch = even ? LaunchNarrow<2, T> : LaunchNarrow<1, T>;
    launch(As<T>(x), As<T>(y), As<T>(dy), b, k, n, scratch, bias_parts, stream);
  });
  const char* op = "NarrowBackward";
  AddBlocks(op, scratch, 1, blocks, k * n, dweight, nullptr, stream);
  if (dbias != nullptr) AddBlocks(op, bias_parts, 1, blocks, n, dbias, nullptr, stream);
}

}  // namespace cistern::op::gpu
