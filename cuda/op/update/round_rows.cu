// Memory traffic per row: 8 bytes (key) and 8 per rounded cell. Eight cells take one draw, whose
// ten rounds are about 60 integer instructions.
#include "cuda/op/update/round_rows.h"

#include "cuda/op/primitive/launch.cuh"

namespace cistern::op::gpu {
namespace {

// A thread rounds eight cells; `parts` adjacent threads a row.
__global__ void __launch_bounds__(kBlockThreads)
    RoundRowsKernel(CellRounding rounding, const Key* keys, float* values, size_t stride,
                    size_t rows, uint32_t parts) {
  const size_t i = size_t{blockIdx.x} * kBlockThreads + threadIdx.x;
  const size_t row = i / parts;
  if (row >= rows) return;
  RoundCells(rounding, keys[row], values + row * stride, static_cast<uint32_t>(i % parts), parts);
}

}  // namespace

void RoundRows(const CellRounding& rounding, const Key* keys, float* values, size_t stride,
               size_t rows, Stream& stream) {
  const uint32_t parts = (rounding.end - rounding.first + 7) / 8;
  const auto blocks = static_cast<unsigned>(CeilDivide(rows * parts, kBlockThreads));
  Launch("RoundRows", RoundRowsKernel, dim3(blocks), dim3(kBlockThreads), 0, stream, rounding, keys,
         values, stride, rows, parts);
}

}  // namespace cistern::op::gpu
