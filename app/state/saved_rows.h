// Reads the rows of a commit or of a saved model into tables of this process.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/thread_pool.h"
#include "common/io/file_system.h"
#include "common/saved_model/rows_place.h"
#include "proto/checkpoint.pb.h"
#include "server/table/table_store.h"
#include "worker/export/committed_model.h"

namespace cistern::app {

// The rows of one state, visited shard by shard.
//
// Threads: one at a time.
class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual const v1::Schema& schema() const = 0;
  virtual uint32_t shard_num() const = 0;
  virtual CommittedVersion version() const = 0;
  // The name for messages: "saved/state, commit 12".
  virtual std::string name() const = 0;
  // Which state it is, with the row count and the digest of each table; nullopt if they are not
  // recorded.
  virtual std::optional<v1::IncrementState> state() const = 0;

  // Visits the rows of a shard (of shard_num()), each key once, in no particular order. Holds
  // hardly more than a row in memory. kDataLoss, with the file name: the file is corrupt, which may
  // show after all rows were visited.
  // value: full_floats cells, as a table holds them.
  using Visit = std::function<absl::Status(Key, const float* value, bool has_embedx)>;
  virtual absl::Status ScanShard(TableId table, ShardIndex shard, const Visit& visit) const = 0;
  // Reads a whole dense table, [rows, columns]; empty if it was never written. kDataLoss as above.
  virtual absl::StatusOr<std::vector<float>> ReadDense(TableId table) const = 0;
};

// A commit or a saved model.
class SavedRows : public RowSource {
 public:
  // The steps that deferred updates of the rows must be applied up to; unset: they are applied.
  virtual v1::StepClock clock() const = 0;

  // Fills an empty store, whose shard map has shard_num() shards, with the rows that its server
  // would hold. kDataLoss, with the file name: the file is corrupt.
  virtual absl::Status Read(server::TableStore& store, ThreadPool& pool) const = 0;

  // place: a commit of a state (a data_dir or state folder), or the folder of a saved model.
  // kInvalidArgument, with a fix, if it is neither.
  static absl::StatusOr<std::unique_ptr<SavedRows>> Open(FileSystem& files, const RowsPlace& place);
};

// The state of `rows`, read into memory as a whole. Errors as Read.
absl::StatusOr<std::unique_ptr<CommittedModel>> ReadCommittedModel(const SavedRows& rows,
                                                                   ThreadPool& pool);

}  // namespace cistern::app
