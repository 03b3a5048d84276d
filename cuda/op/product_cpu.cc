#include "cuda/op/product.h"

#include "cuda/op/cpu.h"

namespace cistern::op {

namespace gpu {  // product.cu
decltype(op::Product) Product;
decltype(op::ProductBackward) ProductBackward;
}  // namespace gpu

void Product(const float* const* x, size_t factors, float* y, size_t count, Stream& stream) {
  CISTERN_RUN_ON_GPU(Product, x, factors, y, count);
  ForPieces(count, kElementGrain, (factors + 1) * count, [=](size_t begin, size_t end) {
    std::copy(x[0] + begin, x[0] + end, y + begin);
    for (size_t f = 1; f < factors; ++f) {
      const float* factor = x[f];
#pragma omp simd
      for (size_t i = begin; i < end; ++i) y[i] *= factor[i];
    }
  });
}

void ProductBackward(const float* const* x, size_t factors, size_t by, const float* dy, Write write,
                     float* dx, size_t count, Stream& stream) {
  CISTERN_RUN_ON_GPU(ProductBackward, x, factors, by, dy, write, dx, count);
  ForPieces(count, kElementGrain, (factors + 1) * count, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      float grad = dy[i];
      for (size_t f = 0; f < factors; ++f) grad *= f == by ? 1.0f : x[f][i];
      dx[i] = write == Write::kAccumulate ? dx[i] + grad : grad;
    }
  });
}

}  // namespace cistern::op
