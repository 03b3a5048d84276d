// Memory traffic per element of s bytes: Logistic 2 s, backward 3 s (4 s where it accumulates). One
// exponential and one division per element, about 15 FLOPs.
#include "cuda/op/dense/logistic.h"

#include "cuda/op/dense/logistic_formula.h"
#include "cuda/op/primitive/map_packs.cuh"

namespace cistern::op::gpu {
namespace {

template <typename T>
void LogisticOf(const T* x, T* y, size_t count, Stream& stream) {
  MapArrays(
      "Logistic", count, Write::kOverwrite, y, stream,
      [=] __device__(float in) { return LogisticAt(in).above; }, ArrayOf<T>{x});
}

template <typename T>
void LogisticBackwardOf(const T* x, const T* dy, Write write, T* dx, size_t count, Stream& stream) {
  MapArrays(
      "LogisticBackward", count, write, dx, stream,
      [=] __device__(float in, float g) {
        const LogisticShares s = LogisticAt(in);
        return s.above * s.below * g;
      },
      ArrayOf<T>{x}, ArrayOf<T>{dy});
}

}  // namespace

void Logistic(ConstValues x, Values y, size_t count, Stream& stream) {
  ForType(x.type, [&]<typename T>() { LogisticOf(As<T>(x), As<T>(y), count, stream); });
}

void LogisticBackward(ConstValues x, ConstValues dy, Write write, Values dx, size_t count,
                      Stream& stream) {
  ForType(x.type, [&]<typename T>() {
    LogisticBackwardOf(As<T>(x), As<T>(dy), write, As<T>(dx), count, stream);
  });
}

}  // namespace cistern::op::gpu
