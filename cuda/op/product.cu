// Bytes that must move, for elements of s bytes: Product s (factors + 1) an element of y;
// ProductBackward s (factors + 1), and s more where it accumulates. factors FLOPs.
#include "cuda/op/product.h"

#include "cuda/op/map.cuh"

namespace cistern::op::gpu {
namespace {

// Pointers that travel in a kernel's arguments.
constexpr size_t kMaxFactors = 17;

template <typename T>
struct Factors {
  const T* x[kMaxFactors];
  unsigned size;
};

// All factors but number `by`.
template <typename T>
Factors<T> FactorsBut(const ConstValues* x, size_t factors, size_t by) {
  Factors<T> taken{};
  for (size_t f = 0; f < factors; ++f) {
    if (f != by) taken.x[taken.size++] = As<T>(x[f]);
  }
  return taken;
}

template <typename T>
__device__ inline float Times(float value, const Factors<T>& factors, size_t i) {
  for (unsigned f = 0; f < factors.size; ++f) value *= float{factors.x[f][i]};
  return value;
}

bool TooMany(size_t factors, Stream& stream) {
  if (factors <= kMaxFactors) return false;
  stream.Record(absl::UnimplementedError(
      absl::StrCat("a product of ", factors, " tensors: on a GPU there may be ", kMaxFactors)));
  return true;
}

template <typename T>
void ProductOf(const ConstValues* x, size_t factors, T* y, size_t count, Stream& stream) {
  const Factors<T> all = FactorsBut<T>(x, factors, factors);
  Map("Product", count, Write::kOverwrite, y, stream,
      [=] __device__(size_t i) { return Times(1.0f, all, i); });
}

template <typename T>
void BackwardOf(const Factors<T>& others, const T* dy, Write write, T* dx, size_t count,
                Stream& stream) {
  Map("ProductBackward", count, write, dx, stream,
      [=] __device__(size_t i) { return Times(float{dy[i]}, others, i); });
}

}  // namespace

void Product(const ConstValues* x, size_t factors, Values y, size_t count, Stream& stream) {
  if (TooMany(factors, stream)) return;
  ForType(y.type, [&]<typename T>() { ProductOf(x, factors, As<T>(y), count, stream); });
}

void ProductBackward(const ConstValues* x, size_t factors, size_t by, ConstValues dy, Write write,
                     Values dx, size_t count, Stream& stream) {
  if (TooMany(factors, stream)) return;
  ForType(dy.type, [&]<typename T>() {
    BackwardOf(FactorsBut<T>(x, factors, by), As<T>(dy), write, As<T>(dx), count, stream);
  });
}

}  // namespace cistern::op::gpu
