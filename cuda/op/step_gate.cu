// Bytes that must move: ScaleByGate 8 a float where the norm is clipped, else 4 in all; CopyIfOpen
// 8 a float.
#include "cuda/op/step_gate.h"

#include "cuda/op/map.cuh"
#include "cuda/op/step_verdict.h"

namespace cistern::op::gpu {
namespace {

__global__ void __launch_bounds__(1)
    JudgeKernel(const double* sums, size_t embeddings, StepRule rule, StepGate* gate) {
  Judge(sums, embeddings, rule, gate);
}

__global__ void __launch_bounds__(kBlockThreads)
    ScaleKernel(const StepGate* gate, float* x, size_t count) {
  const float factor = gate->factor;
  if (factor == 1.0f) return;
  const size_t first = size_t{blockIdx.x} * (kBlockThreads * kPerThread) + threadIdx.x;
#pragma unroll
  for (unsigned k = 0; k < kPerThread; ++k) {
    const size_t i = first + k * kBlockThreads;
    if (i < count) x[i] *= factor;
  }
}

__global__ void __launch_bounds__(kBlockThreads)
    CopyKernel(const StepGate* gate, const float* from, float* to, size_t count) {
  const size_t i = size_t{blockIdx.x} * kBlockThreads + threadIdx.x;
  if (i < count && gate->open != 0) to[i] = from[i];
}

unsigned BlocksOf(size_t count, unsigned per_block) {
  return static_cast<unsigned>(CeilDivide(count, per_block));
}

}  // namespace

void JudgeStep(const double* sums, size_t embeddings, const StepRule& rule, StepGate* gate,
               Stream& stream) {
  Launch("JudgeStep", JudgeKernel, dim3(1), dim3(1), 0, stream, sums, embeddings, rule, gate);
}

void ScaleByGate(const StepGate* gate, float* x, size_t count, Stream& stream) {
  Launch("ScaleByGate", ScaleKernel, dim3(BlocksOf(count, kBlockThreads * kPerThread)),
         dim3(kBlockThreads), 0, stream, gate, x, count);
}

void CopyIfOpen(const StepGate* gate, const float* from, float* to, size_t count, Stream& stream) {
  Launch("CopyIfOpen", CopyKernel, dim3(BlocksOf(count, kBlockThreads)), dim3(kBlockThreads), 0,
         stream, gate, from, to, count);
}

}  // namespace cistern::op::gpu
