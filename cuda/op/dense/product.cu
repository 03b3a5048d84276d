// Memory traffic for elements of s bytes: Product s (factors + 1) per element of y; ProductBackward
// s (factors + 1), and s more where it accumulates. `factors` FLOPs.
#include "cuda/op/dense/product.h"

#include <algorithm>

#include "cuda/op/primitive/map_packs.cuh"

namespace cistern::op::gpu {
namespace {

// The number of pointers passed as kernel arguments; in the backward pass dy is a factor too.
constexpr size_t kMaxFactors = 17;

// The products of factors, in order, as an input of MapArrays.
template <typename T>
struct FactorsOf {
  using Element = T;
  const T* x[kMaxFactors + 1];
  unsigned size;

  template <unsigned kCount>
  struct Products {
    float product[kCount];
    __device__ float operator[](unsigned e) const { return product[e]; }
  };
  bool Holds(unsigned count) const {
    return std::all_of(x, x + size, [=](const T* f) { return ArrayOf<T>{f}.Holds(count); });
  }
  template <unsigned kCount>
  __device__ Products<kCount> Load(size_t i) const {
    Products<kCount> all;
#pragma unroll
    for (unsigned e = 0; e < kCount; ++e) all.product[e] = 1.0f;
#pragma unroll 2
    for (unsigned f = 0; f < size; ++f) {
      const auto factor = Pack<T, kCount>::Load(x[f] + i);
#pragma unroll
      for (unsigned e = 0; e < kCount; ++e) all.product[e] *= factor[e];
    }
    return all;
  }
};

// All factors except factor `by`, preceded by `first` unless it is null.
template <typename T>
FactorsOf<T> FactorsBut(const T* first, const ConstValues* x, size_t factors, size_t by) {
  FactorsOf<T> taken{};
  if (first != nullptr) taken.x[taken.size++] = first;
  for (size_t f = 0; f < factors; ++f) {
    if (f != by) taken.x[taken.size++] = As<T>(x[f]);
  }
  return taken;
}

bool TooMany(size_t factors, Stream& stream) {
  if (factors <= kMaxFactors) return false;
  stream.Record(absl::UnimplementedError(
      absl::StrCat("a product of ", factors, " tensors: on a GPU the maximum is ", kMaxFactors)));
  return true;
}

template <typename T>
void MapProduct(const char* op, const FactorsOf<T>& factors, Write write, T* y, size_t count,
                Stream& stream) {
  MapArrays(
      op, count, write, y, stream, [=] __device__(float product) { return product; }, factors);
}

}  // namespace

void Product(const ConstValues* x, size_t factors, Values y, size_t count, Stream& stream) {
  if (TooMany(factors, stream)) return;
  ForType(y.type, [&]<typename T>() {
    MapProduct("Product", FactorsBut<T>(nullptr, x, factors, factors), Write::kOverwrite, As<T>(y),
               count, stream);
  });
}

void ProductBackward(const ConstValues* x, size_t factors, size_t by, ConstValues dy, Write write,
                     Values dx, size_t count, Stream& stream) {
  if (TooMany(factors, stream)) return;
  ForType(dy.type, [&]<typename T>() {
    MapProduct("ProductBackward", FactorsBut(As<T>(dy), x, factors, by), write, As<T>(dx), count,
               stream);
  });
}

}  // namespace cistern::op::gpu
