// Reads the rows of one commit from its files, for tools. It contacts no server and changes nothing
// in the folder.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "common/base/thread_pool.h"
#include "server/checkpoint/shard_rows.h"
#include "server/checkpoint/state_folder.h"
#include "server/table/table_store.h"

namespace cistern::server {

// Every returned row is checked against its file, every file against the manifest, and every shard
// against the digest that its newest file recorded. Errors are kDataLoss with the path.
//
// Threads: any thread.
class CommitReader {
 public:
  // Opens every file that `manifest` (of `folder`) names. kFailedPrecondition: the folder is one
  // server's alone (local state), and there are others.
  static absl::StatusOr<std::unique_ptr<CommitReader>> Open(const StateFolder& folder,
                                                            const v1::Manifest& manifest);

  const v1::Manifest& manifest() const { return manifest_; }

  // Visits the rows of a shard (of manifest().shard_num()), each key once, in ascending order. The
  // digest is known only at the end.
  // value: full_floats cells, valid until visit returns.
  absl::Status ReadShard(
      TableId table, ShardIndex shard, ShardTotals* totals,
      const std::function<absl::Status(Key, const float* value, bool has_embedx)>& visit) const;
  // Writes those cells of a dense table that are in the range of `table`.
  absl::Status ReadDense(TableId id, DenseTable& table) const;

  // Creates the tables of `store`, which is empty and may have any placement, and fills it with
  // what its server would hold. If shard_num differs, every server of that placement reads every
  // row.
  absl::Status ReadInto(TableStore& store, ThreadPool& pool) const;

 private:
  CommitReader(std::string path, const v1::Manifest& manifest)
      : path_(std::move(path)), manifest_(manifest) {}
  // Reads the rows of `shard` that `table` owns.
  absl::Status ReadShardInto(TableId id, ShardIndex shard, SparseTable& table) const;

  const std::string path_;  // of the state folder
  const v1::Manifest manifest_;
  std::vector<ValueLayout> layouts_;
  std::vector<std::unique_ptr<RowFileReader>> files_;
};

}  // namespace cistern::server
