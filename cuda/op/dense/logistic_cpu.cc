#include "cuda/op/dense/logistic.h"

#include <cmath>

#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/element.h"

namespace cistern::op {

namespace gpu {  // logistic.cu
decltype(op::Logistic) Logistic;
decltype(op::LogisticBackward) LogisticBackward;
}  // namespace gpu

namespace {

constexpr size_t kLogisticCost = 16;  // an exponential, relative to a load and a store

// With e = exp(-|x|), which never overflows: s(|x|) = 1 / (1 + e) and s(-|x|) = e / (1 + e).
template <typename T>
void LogisticOf(const T* x, T* y, size_t count) {
  ForPieces(count, kElementGrain, kLogisticCost * count, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const float in = x[i], e = std::exp(-std::abs(in));
      y[i] = (in < 0.0f ? e : 1.0f) / (1.0f + e);
    }
  });
}

template <typename T>
void LogisticBackwardOf(const T* x, const T* dy, Write write, T* dx, size_t count) {
  ForPieces(count, kElementGrain, kLogisticCost * count, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const float e = std::exp(-std::abs(float{x[i]}));
      const float grad = e / ((1.0f + e) * (1.0f + e)) * dy[i];
      dx[i] = write == Write::kAccumulate ? dx[i] + grad : grad;
    }
  });
}

}  // namespace

void Logistic(ConstValues x, Values y, size_t count, Stream& stream) {
  CISTERN_RUN_ON_GPU(Logistic, x, y, count);
  ForType(x.type, [&]<typename T>() { LogisticOf(As<T>(x), As<T>(y), count); });
}

void LogisticBackward(ConstValues x, ConstValues dy, Write write, Values dx, size_t count,
                      Stream& stream) {
  CISTERN_RUN_ON_GPU(LogisticBackward, x, dy, write, dx, count);
  ForType(x.type,
          [&]<typename T>() { LogisticBackwardOf(As<T>(x), As<T>(dy), write, As<T>(dx), count); });
}

}  // namespace cistern::op
