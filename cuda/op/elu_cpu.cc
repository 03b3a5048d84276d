#include "cuda/op/elu.h"

#include <cmath>

#include "cuda/op/cpu.h"

namespace cistern::op {

namespace gpu {  // elu.cu
decltype(op::Elu) Elu;
decltype(op::EluBackward) EluBackward;
}  // namespace gpu

namespace {

constexpr size_t kExpCost = 16;  // an exponential beside a load and a store

}  // namespace

void Elu(const float* x, float alpha, float* y, size_t count, Stream& stream) {
  CISTERN_RUN_ON_GPU(Elu, x, alpha, y, count);
  ForPieces(count, kElementGrain, kExpCost * count, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) y[i] = x[i] < 0.0f ? alpha * std::expm1(x[i]) : x[i];
  });
}

void EluBackward(const float* x, float alpha, const float* dy, Write write, float* dx, size_t count,
                 Stream& stream) {
  CISTERN_RUN_ON_GPU(EluBackward, x, alpha, dy, write, dx, count);
  ForPieces(count, kElementGrain, kExpCost * count, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const float grad = x[i] < 0.0f ? alpha * std::exp(x[i]) * dy[i] : dy[i];
      dx[i] = write == Write::kAccumulate ? dx[i] + grad : grad;
    }
  });
}

}  // namespace cistern::op
