// Bytes that must move: Product 4 (factors + 1) a float of y; ProductBackward 4 (factors + 1), and
// 4 more where it accumulates. factors FLOPs.
#include "cuda/op/product.h"

#include "cuda/op/map.cuh"

namespace cistern::op::gpu {
namespace {

// Pointers that travel in a kernel's arguments; more factors take several launches.
constexpr size_t kMaxFactors = 16;

struct Factors {
  const float* x[kMaxFactors];
  unsigned size;
};

// The factors from number *next on but for number `by`, as many as fit; *next moves behind them.
Factors TakeFactors(const float* const* x, size_t factors, size_t by, size_t* next) {
  Factors taken{};
  for (; *next < factors && taken.size < kMaxFactors; ++*next) {
    if (*next != by) taken.x[taken.size++] = x[*next];
  }
  return taken;
}

__device__ inline float Times(float value, const Factors& factors, size_t i) {
  for (unsigned f = 0; f < factors.size; ++f) value *= factors.x[f][i];
  return value;
}

}  // namespace

void Product(const float* const* x, size_t factors, float* y, size_t count, Stream& stream) {
  size_t next = 0;
  const Factors first = TakeFactors(x, factors, factors, &next);
  Map("Product", count, Write::kOverwrite, y, stream,
      [=] __device__(size_t i) { return Times(1.0f, first, i); });
  while (next < factors) {
    const Factors more = TakeFactors(x, factors, factors, &next);
    Map("Product", count, Write::kOverwrite, y, stream,
        [=] __device__(size_t i) { return Times(y[i], more, i); });
  }
}

void ProductBackward(const float* const* x, size_t factors, size_t by, const float* dy, Write write,
                     float* dx, size_t count, Stream& stream) {
  size_t next = 0;
  const Factors others = TakeFactors(x, factors, by, &next);
  if (next < factors) {
    stream.Record(absl::UnimplementedError(absl::StrCat("the gradient of a product of ", factors,
                                                        " tensors: on a GPU there may be ",
                                                        kMaxFactors + 1)));
    return;
  }
  Map("ProductBackward", count, write, dx, stream,
      [=] __device__(size_t i) { return Times(dy[i], others, i); });
}

}  // namespace cistern::op::gpu
