// The second step of preparing Criteo's logs: the values of a column, over all blocks, get their
// ids.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"

namespace cistern {

inline constexpr uint32_t kRareCriteoId = 1, kFirstCriteoId = 2;

struct CriteoIdOptions {
  uint64_t min_count = 1;  // values of fewer rows share kRareCriteoId
  uint64_t memory_bytes = uint64_t{64} << 20;
  bool is_cross = false;  // values are pairs, for values_path
};

// Values become 2, 3, 4 ... in the order in which they first occur: in blocks, and in the rows of
// one. Writes the values that have an id of their own, one a line in the order of their ids, to
// values_path, and to map_path 32-bit ids: for each block in its order, that of its value 0, 1, ...
// Returns the ids: one above the largest.
//
// Memory: memory_bytes for a table of distinct values, about 64 bytes each (the values are taken in
// as many portions, by their hash, as that needs; the portions change no id), and 2 bits for each
// distinct value of each block. Files are read three times a portion, in order.
absl::StatusOr<uint64_t> MakeCriteoIds(FileSystem& files, size_t column,
                                       const std::vector<std::string>& block_values,
                                       const CriteoIdOptions& options, const std::string& map_path,
                                       const std::string& values_path);

}  // namespace cistern
