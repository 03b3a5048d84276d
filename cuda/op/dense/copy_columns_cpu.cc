#include "cuda/op/dense/copy_columns.h"

#include <cstring>

#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/element.h"

namespace cistern::op {

namespace gpu {  // copy_columns.cu
decltype(op::CopyColumns) CopyColumns;
}  // namespace gpu

namespace {

template <typename T>
void CopyBlock(const T* x, size_t x_stride, Write write, T* y, size_t y_stride, size_t b,
               size_t n) {
  ForPieces(b, RowGrain(n), 2 * b * n, [=](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      const T* from = x + r * x_stride;
      T* to = y + r * y_stride;
      if (write == Write::kOverwrite) {
        std::memcpy(to, from, n * sizeof(T));
      } else {
#pragma omp simd
        for (size_t c = 0; c < n; ++c) to[c] += from[c];
      }
    }
  });
}

}  // namespace

void CopyColumns(ConstValues x, size_t x_stride, Write write, Values y, size_t y_stride, size_t b,
                 size_t n, Stream& stream) {
  CISTERN_RUN_ON_GPU(CopyColumns, x, x_stride, write, y, y_stride, b, n);
  if (n == 0) return;
  ForType(x.type,
          [&]<typename T>() { CopyBlock(As<T>(x), x_stride, write, As<T>(y), y_stride, b, n); });
}

}  // namespace cistern::op
