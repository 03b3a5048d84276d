#include "cuda/op/dense/logistic.h"

#include "cuda/op/dense/logistic_formula.h"
#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/element.h"

namespace cistern::op {

namespace gpu {  // logistic.cu
decltype(op::Logistic) Logistic;
decltype(op::LogisticBackward) LogisticBackward;
}  // namespace gpu

namespace {

constexpr size_t kLogisticCost = 16;  // an exponential, relative to a load and a store

template <typename T>
void LogisticOf(const T* x, T* y, size_t count) {
  ForPieces(count, kElementGrain, kLogisticCost * count, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) y[i] = LogisticAt(x[i]).above;
  });
}

template <typename T>
void LogisticBackwardOf(const T* x, const T* dy, Write write, T* dx, size_t count) {
  ForPieces(count, kElementGrain, kLogisticCost * count, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const LogisticShares s = LogisticAt(x[i]);
      const float grad = s.above * s.below * dy[i];
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
