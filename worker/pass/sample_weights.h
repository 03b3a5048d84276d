// The weights of samples, from data files to batches.
//
// With cistern.sample_weights a file holds the weight of a sample as the last of its labels. It
// travels there through readers, streams and shuffles, which need not know it. Here it becomes
// HostBatch::weight, before anything reads the labels.
#pragma once

#include "common/base/status.h"
#include "worker/data/source/batch.h"
#include "worker/group/process_group.h"

namespace cistern {

// Moves the last label of each sample to HostBatch::weight.
void TakeWeights(data::Pass* pass);

// Multiplies the weights of each batch by one factor, so that their mean over the samples of all
// workers is 1: the loss is then sum(w * l) / sum(w). Weights that are all equal become exactly 1;
// those of a batch whose weights are all 0 stay 0. group: null for a single worker; its sums are
// added by rank.
absl::Status ScaleWeights(group::ProcessGroup* group, data::Pass* pass);

}  // namespace cistern
