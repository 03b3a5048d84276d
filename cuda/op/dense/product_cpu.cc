#include "cuda/op/dense/product.h"

#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/float_row.h"

namespace cistern::op {

namespace gpu {  // product.cu
decltype(op::Product) Product;
decltype(op::ProductBackward) ProductBackward;
}  // namespace gpu

namespace {

template <typename T>
void ProductOf(const ConstValues* x, size_t factors, T* y, size_t count) {
  ForPieces(count, kElementGrain, (factors + 1) * count, [=](size_t begin, size_t end) {
    FloatRow<T> row(end - begin);
    float* product = row.Open(y + begin, Write::kOverwrite);
    const T* first = As<T>(x[0]) + begin;
    std::copy(first, first + (end - begin), product);
    for (size_t f = 1; f < factors; ++f) {
      const T* factor = As<T>(x[f]) + begin;
#pragma omp simd
      for (size_t i = 0; i < end - begin; ++i) product[i] *= factor[i];
    }
    row.Close(y + begin);
  });
}

template <typename T>
void ProductBackwardOf(const ConstValues* x, size_t factors, size_t by, const T* dy, Write write,
                       T* dx, size_t count) {
  ForPieces(count, kElementGrain, (factors + 1) * count, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      float grad = dy[i];
      for (size_t f = 0; f < factors; ++f) grad *= f == by ? 1.0f : float{As<T>(x[f])[i]};
      dx[i] = write == Write::kAccumulate ? dx[i] + grad : grad;
    }
  });
}

}  // namespace

void Product(const ConstValues* x, size_t factors, Values y, size_t count, Stream& stream) {
  CISTERN_RUN_ON_GPU(Product, x, factors, y, count);
  ForType(y.type, [&]<typename T>() { ProductOf(x, factors, As<T>(y), count); });
}

void ProductBackward(const ConstValues* x, size_t factors, size_t by, ConstValues dy, Write write,
                     Values dx, size_t count, Stream& stream) {
  CISTERN_RUN_ON_GPU(ProductBackward, x, factors, by, dy, write, dx, count);
  ForType(dy.type, [&]<typename T>() {
    ProductBackwardOf(x, factors, by, As<T>(dy), write, As<T>(dx), count);
  });
}

}  // namespace cistern::op
