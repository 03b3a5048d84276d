// The rows of one commit, read from its files by a tool: no server is asked, and nothing in the
// folder is changed.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "common/base/thread_pool.h"
#include "server/checkpoint/shard_rows.h"
#include "server/checkpoint/state_folder.h"
#include "server/table/table_store.h"

namespace cistern {

// Every row that is given out was checked against its file, that against the manifest, and each
// shard against the digest that its newest file recorded. Errors are kDataLoss with the path.
//
// Threads: any thread.
class CommitReader {
 public:
  // Opens every file that `manifest` (of `folder`) names.
  static absl::StatusOr<std::unique_ptr<CommitReader>> Open(const StateFolder& folder,
                                                            const v1::Manifest& manifest);

  const v1::Manifest& manifest() const { return manifest_; }

  // Visits the rows of a shard (of manifest().shard_num()), each key once, in ascending order; the
  // digest is known only at the end. value: full_floats cells, valid until visit returns.
  absl::Status ReadShard(
      TableId table, ShardIndex shard, ShardTotals* totals,
      const std::function<absl::Status(Key, const float* value, bool full)>& visit) const;
  // Writes the cells of a dense table that lie in the range of `table`.
  absl::Status ReadDense(TableId id, DenseTable& table) const;

  // Makes `store`, which is empty and of any placement, what its server would hold: its tables are
  // created. Where shard_num is another one, every server of that placement reads every row.
  absl::Status ReadInto(TableStore& store, ThreadPool& pool) const;

 private:
  CommitReader(std::string path, const v1::Manifest& manifest)
      : path_(std::move(path)), manifest_(manifest) {}
  // The rows of `shard` that `table` owns.
  absl::Status ReadShardInto(TableId id, ShardIndex shard, SparseTable& table) const;

  const std::string path_;  // of the state folder
  const v1::Manifest manifest_;
  std::vector<ValueLayout> layouts_;
  std::vector<std::unique_ptr<RowFileReader>> files_;
};

}  // namespace cistern
