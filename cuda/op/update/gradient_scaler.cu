// Memory traffic: CopyIfUpdatesAllowed 8 bytes per float.
#include "cuda/op/update/gradient_scaler.h"

#include "cuda/op/primitive/map.cuh"
#include "cuda/op/update/gradient_scaler_formula.h"

namespace cistern::op::gpu {
namespace {

__global__ void __launch_bounds__(1) UpdateScalerKernel(const double* sums, size_t embeddings,
                                                        StepRule rule, GradientScaler* scaler) {
  UpdateScaler(sums, embeddings, rule, scaler);
}

__global__ void __launch_bounds__(kBlockThreads)
    CopyKernel(const GradientScaler* scaler, const float* from, float* to, size_t count) {
  const size_t i = size_t{blockIdx.x} * kBlockThreads + threadIdx.x;
  if (i < count && scaler->updates_allowed != 0) to[i] = from[i];
}

}  // namespace

void UpdateGradientScaler(const double* sums, size_t embeddings, const StepRule& rule,
                          GradientScaler* scaler, Stream& stream) {
  Launch("UpdateGradientScaler", UpdateScalerKernel, dim3(1), dim3(1), 0, stream, sums, embeddings,
         rule, scaler);
}

void CopyIfUpdatesAllowed(const GradientScaler* scaler, const float* from, float* to, size_t count,
                          Stream& stream) {
  Launch("CopyIfUpdatesAllowed", CopyKernel,
         dim3(static_cast<unsigned>(CeilDivide(count, kBlockThreads))), dim3(kBlockThreads), 0,
         stream, scaler, from, to, count);
}

}  // namespace cistern::op::gpu
