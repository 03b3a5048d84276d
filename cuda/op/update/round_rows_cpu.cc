#include "cuda/op/update/round_rows.h"

#include "cuda/op/primitive/cpu.h"

namespace cistern::op {

namespace gpu {  // round_rows.cu
decltype(op::RoundRows) RoundRows;
}  // namespace gpu

void RoundRows(const CellRounding& rounding, const Key* keys, float* values, size_t stride,
               size_t rows, Stream& stream) {
  if (rows == 0 || rounding.first == rounding.end) return;
  CISTERN_RUN_ON_GPU(RoundRows, rounding, keys, values, stride, rows);
  constexpr size_t kRowsOfPiece = 128;
  const size_t cells = rounding.end - rounding.first;
  ForPieces(rows, kRowsOfPiece, rows * cells * 8, [=](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) RoundCells(rounding, keys[r], values + r * stride);
  });
}

}  // namespace cistern::op
