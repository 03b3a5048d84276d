// The rows of one shard, put together from the files of a commit: a base, and the deltas after it.
//
// Threads: any thread; the readers outlive what is made of them.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "server/checkpoint/row_file.h"
#include "server/checkpoint/shard_image.h"

namespace cistern {

// Puts the files of a manifest into the order in which they are applied.
void OrderByCommit(std::vector<v1::RowFile>* files);

// The sections of one shard that count, oldest first: from its newest base on.
struct ShardSections {
  std::vector<const RowFileReader*> files;
  std::vector<const RowSection*> sections;  // of files[i]
};
// files: in the order of OrderByCommit.
ShardSections SectionsOf(const std::vector<std::unique_ptr<RowFileReader>>& files, TableId table,
                         ShardIndex shard);

// Visits each key once, in ascending order, with the value of the newest file that has it. An error
// of `visit` is passed on.
absl::Status MergeRows(const ShardSections& shard, const ValueLayout& layout,
                       const std::function<absl::Status(const RowFileReader::Cursor& row)>& visit);

// kDataLoss unless the merged rows are as many as the newest section recorded, and of its digest.
absl::Status CheckTotals(const ShardSections& shard, const ShardTotals& merged);

}  // namespace cistern
