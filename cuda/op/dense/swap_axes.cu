// Memory traffic per element of s bytes: 2 s (3 s where it accumulates).
#include "cuda/op/dense/swap_axes.h"

#include "cuda/op/primitive/map_packs.cuh"

namespace cistern::op {
namespace gpu {
namespace {

// An input of MapMatrices: row (o, j, i) of [outer, n, m] is row (o, i, j) of x.
template <typename T>
struct SwappedRows {
  using Element = T;
  RowsOf<T> rows;
  size_t m, n;
  bool Holds(unsigned count) const { return rows.Holds(count); }
  template <unsigned kCount>
  __device__ Pack<T, kCount> Load(Place at) const {
    const size_t i = at.r % m, j = at.r / m % n, o = at.r / m / n;
    return rows.template Load<kCount>({(o * m + i) * n + j, at.c});
  }
};

}  // namespace
}  // namespace gpu

template <typename T>
inline constexpr unsigned kMatrices<gpu::SwappedRows<T>> = 3;  // as RepeatedRows

namespace gpu {
namespace {

template <typename T>
void SwapAxesOf(const T* x, Write write, T* y, size_t outer, size_t m, size_t n, size_t inner,
                Stream& stream) {
  MapMatrices(
      "SwapAxes", outer * m * n, inner, write, y, inner, stream,
      [=] __device__(float value) { return value; }, SwappedRows<T>{{x, inner}, m, n});
}

}  // namespace

void SwapAxes(ConstValues x, Write write, Values y, size_t outer, size_t m, size_t n, size_t inner,
              Stream& stream) {
  if (outer * m * n == 0 || inner == 0) return;
  ForType(x.type,
          [&]<typename T>() { SwapAxesOf(As<T>(x), write, As<T>(y), outer, m, n, inner, stream); });
}

}  // namespace gpu
}  // namespace cistern::op
