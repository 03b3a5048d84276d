// Plans the row exchange of a pass that several workers share: the owner of each row, and the rows
// that each batch takes from each worker. A training step thus knows all its exchanges in advance.
#pragma once

#include <vector>

#include "common/base/status.h"
#include "worker/data/source/batch.h"
#include "worker/group/process_group.h"

namespace cistern {

struct ExchangeOptions {
  // For training: gives the batches their segments, unless a GPU that collected the keys makes
  // them.
  bool segments = true;
  // By input: keep the keys of the batches (HostSparseBatch::keys) in addition to their rows.
  std::vector<bool> keep_keys;
  // By input: count occurrences and clicks of rows. Not for keys that a GPU has collected.
  std::vector<bool> count_clicks;
};

// Fills in the rows that each batch takes from and gives to each worker (HostBatch::exchanged) and
// the owner of every key (Pass::owned). Reduces Pass::keys to the keys that this worker owns, in
// the order of arrival: batch by batch, worker by worker. A pure function of the parts of the pass.
absl::Status ExchangeRows(group::ProcessGroup& group, const ExchangeOptions& options,
                          data::Pass* pass);

}  // namespace cistern
