// How many rows a memory cache holds: about a share of the rows of a table (spec/003 section 1.2,
// PSLib's sparse_table_cache_rate).
#pragma once

#include <algorithm>
#include <cstdint>

namespace cistern {

// The most shown rows that each shard of a server contributes: max(1, floor(floor(rows * rate) /
// shards)). 10 million rows on a server with 130 shards and PSLib's rate of 0.00055 give 42.
//
// rows: of the table on this server. rate: 0 to 1. shards: of the server, above 0.
inline uint64_t CachedRowsOfShard(uint64_t rows, double rate, uint32_t shards) {
  const auto cached = static_cast<uint64_t>(static_cast<double>(rows) * rate);
  return std::max<uint64_t>(1, cached / shards);
}

}  // namespace cistern
