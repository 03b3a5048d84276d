// All tables of one server.
#pragma once

#include <memory>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "common/value/shard_map.h"
#include "proto/checkpoint.pb.h"
#include "server/table/dense_table.h"
#include "server/table/sparse_table.h"

namespace cistern::server {

// Threads: call Create once, before anything else uses the store (the service ensures that).
// Afterwards the vectors never change, and tables guard themselves.
class TableStore {
 public:
  // tiered: rows of sparse tables may be in files (sparse_table.h).
  TableStore(const ShardMap& map, uint32_t rank, bool tiered = false)
      : map_(map), rank_(rank), tiered_(tiered) {}

  // Creates every table, or none. A repeated call with the same schema is OK and changes nothing;
  // another schema is kFailedPrecondition, which names the difference.
  absl::Status Create(const v1::Schema& schema);

  const v1::Schema& schema() const { return schema_; }
  uint64_t schema_hash() const { return schema_hash_; }
  const ShardMap& shard_map() const { return map_; }
  uint32_t rank() const { return rank_; }
  bool tiered() const { return tiered_; }

  // kNotFound if the table does not exist.
  absl::StatusOr<SparseTable*> sparse(TableId id) const;
  absl::StatusOr<DenseTable*> dense(TableId id) const;
  const std::vector<std::unique_ptr<SparseTable>>& sparse_tables() const { return sparse_; }
  const std::vector<std::unique_ptr<DenseTable>>& dense_tables() const { return dense_; }

  // The training step of the committed pass. Rows of tables with deferred updates
  // (common/value/step_clock.h) are brought up to this step when they leave the server.
  v1::StepClock clock() const;
  void set_clock(const v1::StepClock& clock);

  // The days of the passes up to the committed one, for tables that expire rows by day
  // (common/value/pass_days.h).
  v1::PassDays days() const;
  void set_days(const v1::PassDays& days);

  // Removes every row of every table, and resets the clock and the days; the schema stays.
  void Clear();

 private:
  const ShardMap map_;
  const uint32_t rank_;
  const bool tiered_;
  v1::Schema schema_;
  uint64_t schema_hash_ = 0;
  std::vector<std::unique_ptr<SparseTable>> sparse_;
  std::vector<std::unique_ptr<DenseTable>> dense_;
  mutable absl::Mutex clock_mutex_;
  v1::StepClock clock_ ABSL_GUARDED_BY(clock_mutex_);
  v1::PassDays days_ ABSL_GUARDED_BY(clock_mutex_);
};

}  // namespace cistern::server
