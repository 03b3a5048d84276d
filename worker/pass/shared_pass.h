// What workers that make their passes side by side tell each other once they have cut one: who
// holds which row, and which rows each batch takes from whom. After that a step of training knows
// all that it has to exchange.
#pragma once

#include <vector>

#include "common/base/status.h"
#include "worker/data/source/batch.h"
#include "worker/group/process_group.h"

namespace cistern {

struct ExchangeOptions {
  // Training: the batches get their segments, or a GPU makes them where it has collected the keys.
  bool segments = true;
  // By input: the keys of the batches are wanted (SparseBatch::keys), beside their rows.
  std::vector<bool> keep_keys;
  // By input: occurrences and clicks of rows are counted. Not of keys that a GPU has collected.
  std::vector<bool> count_clicks;
};

// Gives the batches what they take from and give to each worker (Batch::exchanged), where every key
// of the pass has its owner (Pass::owned). Pass::keys become those that this worker owns, in the
// order in which it learned of them: batch by batch, worker by worker. A pure function of the parts
// of the pass.
absl::Status ExchangeRows(ProcessGroup& group, const ExchangeOptions& options, Pass* pass);

}  // namespace cistern
