// What workers that make their passes side by side tell each other while they make them: how much
// of the data is the next pass, who holds which row, and which rows each batch takes from whom.
// After that a step of training knows all that it has to exchange.
#pragma once

#include <memory>
#include <vector>

#include "common/status.h"
#include "worker/pass/batch.h"
#include "worker/pass/pass_source.h"
#include "worker/team/team.h"

namespace cistern {

// A pass takes of every worker what it takes of the largest one, and its keys as if no two workers
// had the same. team outlives it, and is used by the thread of the PassSource.
std::unique_ptr<PassPartners> PartnersOf(Team& team);

struct ExchangeOptions {
  // Training: the batches get their segments.
  bool segments = true;
  // By input: the keys of the batches are wanted (SparseBatch::keys), beside their rows.
  std::vector<bool> keep_keys;
  // By input: occurrences and clicks of rows are counted.
  std::vector<bool> count_clicks;
};

// Gives every key of the pass one owner among the workers, and the batches what they take from and
// give to each (Batch::exchanged). Pass::keys become those that this worker holds, in the order in
// which the workers asked for them: worker by worker. A pure function of the parts of the pass.
absl::Status ExchangeRows(Team& team, const ExchangeOptions& options, Pass* pass);

}  // namespace cistern
