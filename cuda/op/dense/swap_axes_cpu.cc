#include "cuda/op/dense/swap_axes.h"

#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/element.h"

namespace cistern::op {

namespace gpu {  // swap_axes.cu
decltype(op::SwapAxes) SwapAxes;
}  // namespace gpu

namespace {

template <typename T>
void SwapAxesOf(const T* x, Write write, T* y, size_t outer, size_t m, size_t n, size_t inner) {
  const size_t rows = outer * m * n;
  ForPieces(rows, RowGrain(inner), 2 * rows * inner, [=](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      const size_t o = r / (n * m), j = r / m % n, i = r % m;
      const T* from = x + ((o * m + i) * n + j) * inner;
      T* to = y + r * inner;
      for (size_t c = 0; c < inner; ++c) {
        to[c] = write == Write::kAccumulate ? T(to[c] + from[c]) : from[c];
      }
    }
  });
}

}  // namespace

void SwapAxes(ConstValues x, Write write, Values y, size_t outer, size_t m, size_t n, size_t inner,
              Stream& stream) {
  CISTERN_RUN_ON_GPU(SwapAxes, x, write, y, outer, m, n, inner);
  ForType(x.type, [&]<typename T>() { SwapAxesOf(As<T>(x), write, As<T>(y), outer, m, n, inner); });
}

}  // namespace cistern::op
