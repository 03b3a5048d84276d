// The distribution of a dense table's rows over the servers.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cistern {

struct DenseRange {
  uint64_t begin = 0, end = 0;
};

// The rows that server `rank` of `server_num` owns: [r * per, min((r + 1) * per, rows)) with
// per = rows / n + 1 (spec/003 section 1.5). The range may be empty.
inline DenseRange DenseRangeOf(uint64_t rows, uint32_t rank, uint32_t server_num) {
  const uint64_t per = rows / server_num + 1;
  return {std::min(rows, rank * per), std::min(rows, (rank + uint64_t{1}) * per)};
}

}  // namespace cistern
