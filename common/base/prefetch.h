// Brings a row into the processor's caches before it is used.
#pragma once

#include <algorithm>
#include <cstddef>

namespace cistern {

// write: 1 if the row is overwritten. Only the beginning of a long row: the processor fetches the
// rest.
template <int write>
inline void PrefetchRow(const void* row, size_t bytes) {
  constexpr size_t kLine = 64, kMost = 8 * kLine;
  const char* at = static_cast<const char*>(row);
  for (size_t i = 0; i < std::min(bytes, kMost); i += kLine) __builtin_prefetch(at + i, write);
}

}  // namespace cistern
