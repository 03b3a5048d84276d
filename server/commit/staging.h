// What the workers of one pass have pushed to one server, until it is committed or dropped.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "server/commit/staged_push.h"
#include "server/table/table_store.h"

namespace cistern {

// Sequences of each worker, with the repeats and holes in them found, and their values in the order
// in which they are written.
//
// Threads: one at a time; PassStage guards it.
class Staging {
 public:
  // How far a push may run ahead of the first one that is missing.
  static constexpr uint64_t kWindow = 1024;

  uint64_t bytes() const { return bytes_; }

  // Whether (worker, sequence) is here: kAlreadyExists if a push with the same hash is (a repeat),
  // kInvalidArgument if another one is, kAborted if it is beyond the window, kOutOfRange beyond
  // what its worker sealed, OK if it may be added.
  absl::Status CheckSequence(uint32_t worker, uint64_t sequence, uint64_t body_hash) const;
  // Adds a push whose sequence was checked.
  void Add(uint32_t worker, uint64_t sequence, StagedPush push);

  // PassStage::Seal without the check of the pass.
  absl::Status Seal(uint32_t worker, uint64_t push_count);

  // PassStage::Prepare without the check of the pass.
  absl::Status Check(const TableStore& store, ThreadPool& pool, uint32_t worker_num,
                     uint64_t* rows) const;
  // Writes everything in (worker, sequence) order. Must have passed Check.
  void Write(TableStore& store, ThreadPool& pool) const;
  // The part of Write that concerns dense table `id`.
  void WriteDense(TableId id, DenseTable& table) const;

  // The sparse pushes of each table, and the dense ones of one, in (worker, sequence) order.
  std::vector<std::vector<ValueBlock>> SparseBlocks(size_t table_num) const;
  std::vector<const StagedPush*> DensePushes(TableId table) const;

 private:
  struct Worker {
    std::map<uint64_t, StagedPush> pushes;  // by sequence
    uint64_t first_missing = 0;
    bool sealed = false;
    uint64_t sealed_num = 0;
  };

  // Of workers 0 .. worker_num - 1: kFailedPrecondition if one has pushed and not sealed, kAborted
  // if one has done neither.
  absl::Status CheckSealed(uint32_t worker_num) const;

  std::map<uint32_t, Worker> workers_;
  uint64_t bytes_ = 0;
};

}  // namespace cistern
