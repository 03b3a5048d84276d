#include "cuda/op/dense/product_logit.h"

#include "cuda/op/dense/product_logit_formula.h"
#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/element.h"

namespace cistern::op {

namespace gpu {  // product_logit.cu
decltype(op::ProductLogit) ProductLogit;
decltype(op::ProductLogitBackward) ProductLogitBackward;
}  // namespace gpu

namespace {

constexpr size_t kProductLogitCost = 48;  // exponentials and logarithms, relative to a load

template <typename T>
void ProductLogitOf(const T* a, const T* b, T* y, size_t count) {
  ForPieces(count, kElementGrain, kProductLogitCost * count, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) y[i] = ProductLogitAt(a[i], b[i]);
  });
}

template <typename T>
void ProductLogitBackwardOf(const T* x, const T* other, const T* dy, Write write, T* dx,
                            size_t count) {
  ForPieces(count, kElementGrain, kProductLogitCost * count, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const float grad = ProductLogitSlopeAt(x[i], other[i]) * dy[i];
      dx[i] = write == Write::kAccumulate ? dx[i] + grad : grad;
    }
  });
}

}  // namespace

void ProductLogit(ConstValues a, ConstValues b, Values y, size_t count, Stream& stream) {
  CISTERN_RUN_ON_GPU(ProductLogit, a, b, y, count);
  ForType(a.type, [&]<typename T>() { ProductLogitOf(As<T>(a), As<T>(b), As<T>(y), count); });
}

void ProductLogitBackward(ConstValues x, ConstValues other, ConstValues dy, Write write, Values dx,
                          size_t count, Stream& stream) {
  CISTERN_RUN_ON_GPU(ProductLogitBackward, x, other, dy, write, dx, count);
  ForType(x.type, [&]<typename T>() {
    ProductLogitBackwardOf(As<T>(x), As<T>(other), As<T>(dy), write, As<T>(dx), count);
  });
}

}  // namespace cistern::op
