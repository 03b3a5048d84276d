// Memory traffic for elements of s bytes: s b n, with a ReLU 3 s b n; and b n / 8 floats of partial
// sums.
#include "cuda/op/dense/bias_gradient.h"

#include "cuda/op/dense/dropout_element.h"
#include "cuda/op/primitive/wide_sums.cuh"

namespace cistern::op::gpu {
namespace {

template <typename T>
struct SweepTerms {
  static constexpr unsigned kColumns = kWide<T>;
  struct Loaded {
    Wide<T> grad, out;
  };
  const T* y;  // or null
  T* dy;

  __device__ void Load(size_t, size_t at, Loaded* loaded) const {
    loaded->grad = Wide<T>::Load(dy + at);
    if (y != nullptr) loaded->out = Wide<T>::Load(y + at);
  }
  __device__ void Add(Loaded& loaded, size_t at, size_t, float* sum) const {
    if (y != nullptr) {
      Wide<T> made;
#pragma unroll
      for (unsigned e = 0; e < kColumns; ++e) {
        made.Set(e, BehindRelu(loaded.out[e], loaded.grad[e], 1.0f));
      }
      made.Store(dy + at);
      loaded.grad = made;
    }
#pragma unroll
    for (unsigned e = 0; e < kColumns; ++e) sum[e] += loaded.grad[e];
  }
};

template <typename T>
void SweepOf(const T* y, T* dy, size_t b, size_t n, float* partial, Stream& stream) {
  if (IsWide(y, n) && IsWide(dy, n)) {
    return WideSums("BiasGradient", b, n, partial, stream, SweepTerms<T>{y, dy});
  }
  ColumnSums<1>("BiasGradient", b, n, partial, stream,
                [=] __device__(size_t r, size_t c, float* sum) {
                  T* at = dy + r * n + c;
                  if (y != nullptr) *at = BehindRelu(y[r * n + c], *at, 1.0f);
                  sum[0] += *at;
                });
}

}  // namespace

void BiasGradient(ConstValues y, Values dy, float* dbias, size_t b, size_t n, float* scratch,
                  Stream& stream) {
  ForType(dy.type, [&]<typename T>() { SweepOf(As<T>(y), As<T>(dy), b, n, scratch, stream); });
  AddBlocks("BiasGradient", scratch, 1, CeilDivide(b, kRowsOfBlock), n, dbias, nullptr, stream);
}

}  // namespace cistern::op::gpu
