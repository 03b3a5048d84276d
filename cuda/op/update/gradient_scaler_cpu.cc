#include "cuda/op/update/gradient_scaler.h"

#include <cmath>
#include <cstring>

#include "cuda/op/primitive/cpu.h"
#include "cuda/op/update/gradient_scaler_formula.h"

namespace cistern::op {

namespace gpu {  // gradient_scaler.cu
decltype(op::UpdateGradientScaler) UpdateGradientScaler;
decltype(op::CopyIfUpdatesAllowed) CopyIfUpdatesAllowed;
}  // namespace gpu

void UpdateGradientScaler(const double* sums, size_t embeddings, const StepRule& rule,
                          GradientScaler* scaler, Stream& stream) {
  CISTERN_RUN_ON_GPU(UpdateGradientScaler, sums, embeddings, rule, scaler);
  UpdateScaler(sums, embeddings, rule, scaler);
}

void CopyIfUpdatesAllowed(const GradientScaler* scaler, const float* from, float* to, size_t count,
                          Stream& stream) {
  CISTERN_RUN_ON_GPU(CopyIfUpdatesAllowed, scaler, from, to, count);
  if (scaler->updates_allowed != 0 && count > 0) std::memcpy(to, from, count * sizeof(float));
}

}  // namespace cistern::op
