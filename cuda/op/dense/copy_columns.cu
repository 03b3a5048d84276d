// Memory traffic per element of s bytes in the block: 2 s, or 3 s where it accumulates.
#include "cuda/op/dense/copy_columns.h"

#include "cuda/op/primitive/map_packs.cuh"

namespace cistern::op::gpu {
namespace {

template <typename T>
void CopyBlock(const T* x, size_t x_stride, Write write, T* y, size_t y_stride, size_t b, size_t n,
               Stream& stream) {
  MapMatrices(
      "CopyColumns", b, n, write, y, y_stride, stream, [=] __device__(float in) { return in; },
      RowsOf<T>{x, x_stride});
}

}  // namespace

void CopyColumns(ConstValues x, size_t x_stride, Write write, Values y, size_t y_stride, size_t b,
                 size_t n, Stream& stream) {
  ForType(x.type, [&]<typename T>() {
    CopyBlock(As<T>(x), x_stride, write, As<T>(y), y_stride, b, n, stream);
  });
}

}  // namespace cistern::op::gpu
