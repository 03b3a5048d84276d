// Bytes that must move, a float of the block: 8, or 12 where it accumulates.
#include "cuda/op/copy_columns.h"

#include "cuda/op/map.cuh"

namespace cistern::op::gpu {

void CopyColumns(const float* x, size_t x_stride, Write write, float* y, size_t y_stride, size_t b,
                 size_t n, Stream& stream) {
  MapRows("CopyColumns", b, n, write, y, y_stride, stream,
          [=] __device__(size_t r, size_t c) { return x[r * x_stride + c]; });
}

}  // namespace cistern::op::gpu
