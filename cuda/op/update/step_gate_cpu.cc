#include "cuda/op/update/step_gate.h"

#include <cmath>
#include <cstring>

#include "cuda/op/primitive/cpu.h"
#include "cuda/op/update/step_verdict.h"

namespace cistern::op {

namespace gpu {  // step_gate.cu
decltype(op::JudgeStep) JudgeStep;
decltype(op::CopyIfOpen) CopyIfOpen;
}  // namespace gpu

void JudgeStep(const double* sums, size_t embeddings, const StepRule& rule, StepGate* gate,
               Stream& stream) {
  CISTERN_RUN_ON_GPU(JudgeStep, sums, embeddings, rule, gate);
  Judge(sums, embeddings, rule, gate);
}

void CopyIfOpen(const StepGate* gate, const float* from, float* to, size_t count, Stream& stream) {
  CISTERN_RUN_ON_GPU(CopyIfOpen, gate, from, to, count);
  if (gate->open != 0 && count > 0) std::memcpy(to, from, count * sizeof(float));
}

}  // namespace cistern::op
