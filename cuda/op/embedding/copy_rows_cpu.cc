#include "cuda/op/embedding/copy_rows.h"

#include <algorithm>
#include <cstring>

#include "cuda/op/primitive/cpu.h"

namespace cistern::op {

namespace gpu {  // copy_rows.cu
decltype(op::CopyRows) CopyRows;
}  // namespace gpu

void CopyRows(const void* from, const uint32_t* from_rows, void* to, const uint32_t* to_rows,
              size_t bytes, size_t count, Stream& stream) {
  CISTERN_RUN_ON_GPU(CopyRows, from, from_rows, to, to_rows, bytes, count);
  if (bytes == 0) return;
  const auto* source = static_cast<const char*>(from);
  auto* target = static_cast<char*>(to);
  const size_t floats = CeilDiv(bytes, sizeof(float));
  // Rows of a large table are anywhere: they are fetched this many rows ahead.
  constexpr size_t kAhead = 8, kLine = 64, kMostFetched = 8 * kLine;
  ForPieces(count, RowGrain(floats), 2 * count * floats, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (from_rows != nullptr && i + kAhead < end) {
        const char* next = source + from_rows[i + kAhead] * bytes;
        for (size_t b = 0; b < std::min(bytes, kMostFetched); b += kLine) {
          __builtin_prefetch(next + b);
        }
      }
      const size_t source_row = from_rows == nullptr ? i : from_rows[i];
      const size_t target_row = to_rows == nullptr ? i : to_rows[i];
      std::memcpy(target + target_row * bytes, source + source_row * bytes, bytes);
    }
  });
}

}  // namespace cistern::op
