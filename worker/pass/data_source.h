// From a model's configuration to passes of its data.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/value/value_layout.h"
#include "cuda/core/device_context.h"
#include "worker/data/source/pass_source.h"
#include "worker/group/process_group.h"
#include "worker/model/config/model_config.h"

namespace cistern {

// Opens the data that a training run of this model will read, training and evaluation, and reads
// the first sample of each: a run that would be refused for them, at once or hours later, is
// refused before anything starts. kInvalidArgument: a file that is missing or of another shape;
// kDataLoss, kOutOfRange: what is in them, or that nothing is.
absl::Status CheckTrainingData(const ModelConfig& config);

// What a pass may take.
struct PassMemory {
  uint64_t bytes = 0;
  bool device_bound = false;  // less than cistern.pass_memory_mb, because the device has no more
};
// cistern.pass_memory_mb; on a GPU at most a quarter of what its pool has left beside the chunks
// that carry rows: the pass that trains, the next one, what collects its keys, and a pass that is
// evaluated are there at the same time. Asked for once the model has its memory.
PassMemory PassMemoryOn(const DeviceContext& device, const ModelConfig& config);

// Passes of the training data from `start` on: by max_iter or num_epochs, shuffled where the model
// says so, cut where a snapshot is due. device: which they are for, and which outlives them; on a
// GPU it collects their keys. group: the workers that have a part of each batch, which outlives
// them too; null: this one is alone.
absl::StatusOr<std::unique_ptr<PassSource>> OpenTrainingData(const ModelConfig& config,
                                                             const PassMemory& memory,
                                                             DeviceContext& device,
                                                             ProcessGroup* group,
                                                             const PassCursor& start = {});

// What the model's loss takes for a label.
LabelRule LabelRuleOf(const ModelConfig& config);

// Passes of evaluation data, in file order, read once, without segments.
// labels: what they may be. files: file lists or data files, one after the other. max_batches: 0 =
// all. start: the end of an earlier pass of the same data, or its beginning.
absl::StatusOr<std::unique_ptr<PassSource>> OpenEvaluationData(
    const ModelConfig& config, const PassMemory& memory, DeviceContext& device, ProcessGroup* group,
    LabelRule labels, const std::vector<std::string>& files, uint64_t max_batches,
    const PassCursor& start = {});

// The next pass of a source that was opened with `group`, its rows shared out among the workers;
// null at the end.
enum class PassUse { kTrain, kEvaluate };
absl::StatusOr<std::unique_ptr<Pass>> NextPass(PassSource& source, const ModelConfig& config,
                                               ProcessGroup* group, PassUse use);

}  // namespace cistern
