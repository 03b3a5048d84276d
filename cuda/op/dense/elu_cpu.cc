#include "cuda/op/dense/elu.h"

#include <cmath>

#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/element.h"

namespace cistern::op {

namespace gpu {  // elu.cu
decltype(op::Elu) Elu;
decltype(op::EluBackward) EluBackward;
}  // namespace gpu

namespace {

constexpr size_t kExpCost = 16;  // an exponential, relative to a load and a store

template <typename T>
void EluOf(const T* x, float alpha, T* y, size_t count) {
  ForPieces(count, kElementGrain, kExpCost * count, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const float in = x[i];
      y[i] = in < 0.0f ? alpha * std::expm1(in) : in;
    }
  });
}

template <typename T>
void EluBackwardOf(const T* x, float alpha, const T* dy, Write write, T* dx, size_t count) {
  ForPieces(count, kElementGrain, kExpCost * count, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const float in = x[i], g = dy[i];
      const float grad = in < 0.0f ? alpha * std::exp(in) * g : g;
      dx[i] = write == Write::kAccumulate ? dx[i] + grad : grad;
    }
  });
}

}  // namespace

void Elu(ConstValues x, float alpha, Values y, size_t count, Stream& stream) {
  CISTERN_RUN_ON_GPU(Elu, x, alpha, y, count);
  ForType(x.type, [&]<typename T>() { EluOf(As<T>(x), alpha, As<T>(y), count); });
}

void EluBackward(ConstValues x, float alpha, ConstValues dy, Write write, Values dx, size_t count,
                 Stream& stream) {
  CISTERN_RUN_ON_GPU(EluBackward, x, alpha, dy, write, dx, count);
  ForType(x.type, [&]<typename T>() {
    EluBackwardOf(As<T>(x), alpha, As<T>(dy), write, As<T>(dx), count);
  });
}

}  // namespace cistern::op
