// Assembles the rows of one shard from the files of a commit: a base and the deltas after it.
//
// Threads: any thread. The readers must outlive everything built from them.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "server/checkpoint/row_file.h"
#include "server/checkpoint/shard_image.h"

namespace cistern::server {

// Sorts the files of a manifest into the order in which they apply.
void OrderByCommit(std::vector<v1::RowFile>* files);

// The sections of one shard that count, oldest first, starting with its newest base.
struct ShardSections {
  std::vector<const RowFileReader*> files;
  std::vector<const RowSection*> sections;  // of files[i]
};
// files: in OrderByCommit order.
ShardSections SectionsOf(const std::vector<std::unique_ptr<RowFileReader>>& files, TableId table,
                         ShardIndex shard);
ShardSections SectionsOf(absl::Span<const RowFileReader* const> files, TableId table,
                         ShardIndex shard);

// Visits each key once, in ascending order, with the value from the newest file that has it, unless
// that file removes it. An error of `visit` is returned.
absl::Status MergeRows(const ShardSections& shard, const ValueLayout& layout,
                       const std::function<absl::Status(const RowFileReader::Cursor& row)>& visit);

// kDataLoss unless the merged rows match the row count and the digest that the newest section
// recorded.
absl::Status CheckTotals(const ShardSections& shard, const ShardTotals& merged);

}  // namespace cistern::server
