// Bytes that must move: CopyIfOpen 8 a float.
#include "cuda/op/update/step_gate.h"

#include "cuda/op/primitive/map.cuh"
#include "cuda/op/update/step_verdict.h"

namespace cistern::op::gpu {
namespace {

__global__ void __launch_bounds__(1)
    JudgeKernel(const double* sums, size_t embeddings, StepRule rule, StepGate* gate) {
  Judge(sums, embeddings, rule, gate);
}

__global__ void __launch_bounds__(kBlockThreads)
    CopyKernel(const StepGate* gate, const float* from, float* to, size_t count) {
  const size_t i = size_t{blockIdx.x} * kBlockThreads + threadIdx.x;
  if (i < count && gate->open != 0) to[i] = from[i];
}

}  // namespace

void JudgeStep(const double* sums, size_t embeddings, const StepRule& rule, StepGate* gate,
               Stream& stream) {
  Launch("JudgeStep", JudgeKernel, dim3(1), dim3(1), 0, stream, sums, embeddings, rule, gate);
}

void CopyIfOpen(const StepGate* gate, const float* from, float* to, size_t count, Stream& stream) {
  Launch("CopyIfOpen", CopyKernel, dim3(static_cast<unsigned>(CeilDivide(count, kBlockThreads))),
         dim3(kBlockThreads), 0, stream, gate, from, to, count);
}

}  // namespace cistern::op::gpu
