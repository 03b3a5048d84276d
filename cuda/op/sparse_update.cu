// Bytes that must move, a row: SparseUpdate 4 + 12 dim + 8 for each cell of state (Adam: 4 + 28
// dim); AddRowL2 4 + 12 dim. Rows lie anywhere: less than 32 bytes of one cost 32. Up to about 15
// FLOPs a weight.
#include "cuda/op/sparse_update.h"

#include "common/check.h"
#include "cuda/op/reduce.cuh"

namespace cistern::op::gpu {
namespace {

constexpr unsigned kMaxStateFields = 2;  // Adam: m and v
constexpr unsigned kRowsPerThread = 4;   // whose loads are in flight together
constexpr size_t kRowsOfPartial = 128;   // what AddRowL2ScratchFloats has room for

// threadIdx.x runs over the weights of a row, threadIdx.y over rows. Each weight's step is its own:
// ApplyRule is given one weight with its fields of state side by side.
__global__ void __launch_bounds__(kBlockThreads)
    UpdateKernel(RuleParams rule, float step_size, unsigned fields, const uint32_t* rows,
                 const float* grads, float* weights, float* states, size_t stride, size_t distinct,
                 size_t dim, const StepGate* gate) {
  if (!IsOpen(gate)) return;
  const float factor = FactorOf(gate);
  const size_t first = size_t{blockIdx.x} * kRowsPerThread * blockDim.y + threadIdx.y;
  for (size_t e = threadIdx.x; e < dim; e += blockDim.x) {
    size_t at[kRowsPerThread];
    float g[kRowsPerThread], w[kRowsPerThread], s[kRowsPerThread][kMaxStateFields];
#pragma unroll
    for (unsigned k = 0; k < kRowsPerThread; ++k) {
      const size_t i = first + k * blockDim.y;
      at[k] = i < distinct ? rows[i] * stride + e : 0;
    }
#pragma unroll
    for (unsigned k = 0; k < kRowsPerThread; ++k) {
      const size_t i = first + k * blockDim.y;
      if (i >= distinct) continue;
      g[k] = Rescaled(grads[i * dim + e], factor);
      w[k] = weights[at[k]];
#pragma unroll
      for (unsigned f = 0; f < kMaxStateFields; ++f) {
        if (f < fields) s[k][f] = states[at[k] + f * dim];
      }
    }
#pragma unroll
    for (unsigned k = 0; k < kRowsPerThread; ++k) {
      if (first + k * blockDim.y >= distinct) continue;
      ApplyRule(rule, step_size, 1, &g[k], &w[k], s[k]);
      weights[at[k]] = w[k];
#pragma unroll
      for (unsigned f = 0; f < kMaxStateFields; ++f) {
        if (f < fields) states[at[k] + f * dim] = s[k][f];
      }
    }
  }
}

// A thread makes the step of a whole row: for a rule whose weights share their state.
__global__ void __launch_bounds__(kBlockThreads, 5)
    UpdateRowKernel(RuleParams rule, float step_size, const uint32_t* rows, float* grads,
                    float* weights, float* states, size_t stride, size_t distinct, uint32_t dim,
                    const StepGate* gate) {
  const size_t i = size_t{blockIdx.x} * kBlockThreads + threadIdx.x;
  if (i >= distinct || !IsOpen(gate)) return;
  const size_t at = rows[i] * stride;
  const float factor = FactorOf(gate);
  float* grad = grads + i * dim;
  for (uint32_t e = 0; e < dim && factor != 1.0f; ++e) grad[e] *= factor;
  ApplyRule(rule, step_size, dim, grad, weights + at, states + at);
}

// A block adds the gradients of kRowsOfPartial rows, and their squares; `lanes` threads, a power of
// two, to a row.
__global__ void __launch_bounds__(kBlockThreads)
    RowL2Kernel(DeviceFactor l2, const uint32_t* rows, const float* weights, size_t stride,
                float* grads, double* partial, size_t distinct, size_t dim, unsigned lanes) {
  const size_t begin = size_t{blockIdx.x} * kRowsOfPartial;
  const size_t end = begin + kRowsOfPartial < distinct ? begin + kRowsOfPartial : distinct;
  const unsigned lane = threadIdx.x % lanes;
  const float factor = l2.product();
  double sum = 0;
  for (size_t i = begin + threadIdx.x / lanes; i < end; i += kBlockThreads / lanes) {
    const float* w = weights + rows[i] * stride;
    for (size_t e = lane; e < dim; e += lanes) {
      grads[i * dim + e] += factor * w[e];
      sum += double{w[e]} * double{w[e]};
    }
  }
  sum = BlockSum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

}  // namespace

void SparseUpdate(const RuleParams& rule, float step_size, const uint32_t* rows, float* grads,
                  float* weights, float* states, size_t stride, size_t distinct, size_t dim,
                  const StepGate* gate, Stream& stream) {
  if (rule.kind == RuleKind::kAdagradShared) {
    const auto blocks = static_cast<unsigned>(CeilDivide(distinct, kBlockThreads));
    return Launch("SparseUpdate", UpdateRowKernel, dim3(blocks), dim3(kBlockThreads), 0, stream,
                  rule, step_size, rows, grads, weights, states, stride, distinct,
                  static_cast<uint32_t>(dim), gate);
  }
  const unsigned fields = RuleStateFloats(rule.kind, 1);
  CISTERN_CHECK(fields <= kMaxStateFields);
  const dim3 block = RowBlock(dim);
  const auto blocks = static_cast<unsigned>(CeilDivide(distinct, kRowsPerThread * block.y));
  Launch("SparseUpdate", UpdateKernel, dim3(blocks), block, 0, stream, rule, step_size, fields,
         rows, grads, weights, states, stride, distinct, dim, gate);
}

void AddRowL2(DeviceFactor l2, const uint32_t* rows, const float* weights, size_t stride,
              float* grads, double* square_sum, size_t distinct, size_t dim, float* scratch,
              Stream& stream) {
  const size_t pieces = CeilDivide(distinct, kRowsOfPartial);
  auto* partial = reinterpret_cast<double*>(scratch);
  Launch("AddRowL2", RowL2Kernel, dim3(static_cast<unsigned>(pieces)), dim3(kBlockThreads), 0,
         stream, l2, rows, weights, stride, grads, partial, distinct, dim,
         PowerOfTwo(dim, kBlockThreads));
  if (square_sum != nullptr) AddPieces("AddRowL2", partial, pieces, 1.0, square_sum, stream);
}

}  // namespace cistern::op::gpu
