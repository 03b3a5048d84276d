#include "cuda/op/embedding/copy_rows.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "cuda/op/primitive/cpu.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace cistern::op {
namespace {

// Copies a row past the caches: nobody reads it soon, and its old contents need not be fetched.
// Other threads see it after FinishStreams.
//
// to: aligned to 32 bytes; bytes: a multiple of 32.
inline void StreamRow(const char* from, char* to, size_t bytes) {
#if defined(__AVX2__)
  for (size_t b = 0; b < bytes; b += 32) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + b),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + b)));
  }
#else
  std::memcpy(to, from, bytes);
#endif
}

inline void FinishStreams() {
#if defined(__AVX2__)
  _mm_sfence();
#endif
}

bool IsStreamable(const void* to, size_t bytes) {
  return bytes % 32 == 0 && reinterpret_cast<uintptr_t>(to) % 32 == 0;
}

}  // namespace

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
  constexpr size_t kAhead = 8, kLine = 64, kMaxFetched = 8 * kLine;
  const bool streams = IsStreamable(to, bytes);
  ForPieces(count, RowGrain(floats), 2 * count * floats, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (from_rows != nullptr && i + kAhead < count) {
        const char* next = source + from_rows[i + kAhead] * bytes;
        for (size_t b = 0; b < std::min(bytes, kMaxFetched); b += kLine) {
          __builtin_prefetch(next + b);
        }
      }
      const size_t source_row = from_rows == nullptr ? i : from_rows[i];
      const size_t target_row = to_rows == nullptr ? i : to_rows[i];
      const char* const row = source + source_row * bytes;
      if (streams) {
        StreamRow(row, target + target_row * bytes, bytes);
      } else {
        std::memcpy(target + target_row * bytes, row, bytes);
      }
    }
    if (streams) FinishStreams();
  });
}

}  // namespace cistern::op
