// The second step of preparing Criteo's logs: assigns ids to the values of a column, over all
// blocks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"

namespace cistern::data {

inline constexpr uint32_t kRareCriteoId = 1, kFirstCriteoId = 2;

struct CriteoIdOptions {
  uint64_t min_count = 1;  // values in fewer rows share kRareCriteoId
  uint64_t memory_bytes = uint64_t{64} << 20;
  bool is_cross = false;  // values are pairs; for the text in values_path
};

// Assigns ids 2, 3, 4 ... in the order of first occurrence: by block, then by row. Writes two
// files. values_path: the values with an id of their own, one per line, ordered by id. map_path:
// 32-bit ids; for each block in order, the ids of its values 0, 1, ... Returns the number of ids:
// the largest id plus one.
//
// Memory: memory_bytes for a hash table of distinct values, about 64 bytes each, plus 2 bits for
// each distinct value of each block. If the values need more than memory_bytes, they are processed
// in portions, split by hash; portions do not change the ids. Reads the files sequentially, three
// times per portion.
absl::StatusOr<uint64_t> MakeCriteoIds(FileSystem& files, size_t column,
                                       const std::vector<std::string>& block_values,
                                       const CriteoIdOptions& options, const std::string& map_path,
                                       const std::string& values_path);

}  // namespace cistern::data
