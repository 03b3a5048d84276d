// Memory traffic per element of s bytes: ProductLogit 3 s, backward 4 s (5 s where it accumulates).
// Two exponentials and two logarithms per element, about 60 FLOPs.
#include "cuda/op/dense/product_logit.h"

#include "cuda/op/dense/product_logit_formula.h"
#include "cuda/op/primitive/map_packs.cuh"

namespace cistern::op::gpu {
namespace {

template <typename T>
void ProductLogitOf(const T* a, const T* b, T* y, size_t count, Stream& stream) {
  MapArrays(
      "ProductLogit", count, Write::kOverwrite, y, stream,
      [=] __device__(float one, float two) { return ProductLogitAt(one, two); }, ArrayOf<T>{a},
      ArrayOf<T>{b});
}

template <typename T>
void ProductLogitBackwardOf(const T* x, const T* other, const T* dy, Write write, T* dx,
                            size_t count, Stream& stream) {
  MapArrays(
      "ProductLogitBackward", count, write, dx, stream,
      [=] __device__(float in, float second, float g) {
        return ProductLogitSlopeAt(in, second) * g;
      },
      ArrayOf<T>{x}, ArrayOf<T>{other}, ArrayOf<T>{dy});
}

}  // namespace

void ProductLogit(ConstValues a, ConstValues b, Values y, size_t count, Stream& stream) {
  ForType(a.type,
          [&]<typename T>() { ProductLogitOf(As<T>(a), As<T>(b), As<T>(y), count, stream); });
}

void ProductLogitBackward(ConstValues x, ConstValues other, ConstValues dy, Write write, Values dx,
                          size_t count, Stream& stream) {
  ForType(x.type, [&]<typename T>() {
    ProductLogitBackwardOf(As<T>(x), As<T>(other), As<T>(dy), write, As<T>(dx), count, stream);
  });
}

}  // namespace cistern::op::gpu
