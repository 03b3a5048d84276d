// Opens the data of a model's configuration as a source of passes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/value/value_layout.h"
#include "cuda/core/device_context.h"
#include "worker/data/feed/feed.h"
#include "worker/data/source/pass_source.h"
#include "worker/group/process_group.h"
#include "worker/model/config/model_config.h"

namespace cistern {

// Opens the training and evaluation data of a run of this model and reads the first sample of each,
// so that bad data fails the run before it starts rather than hours later. kInvalidArgument: a file
// is missing or has another shape; kDataLoss, kOutOfRange: invalid content, or no samples.
absl::Status CheckTrainingData(const model::ModelConfig& config);

// The number of samples of the training data, an epoch, if it ends and they are known without
// reading them.
std::optional<uint64_t> SamplesOfEpoch(const model::ModelConfig& config);

// What to tell a user whose training data has fewer streams than there are workers; empty if it has
// enough, is read in the order of its files, or cannot be read.
std::string FewStreamsWarning(const model::ModelConfig& config, uint64_t workers);

// The memory limits of a pass.
struct PassMemory {
  uint64_t bytes = 0;         // of rows, and on a CPU of batches
  bool device_bound = false;  // the device's memory sets `bytes`, not the configuration
  uint64_t batch_bytes = 0;   // on a GPU: of batches, which are in host memory
};
// On a CPU, cistern.pass_memory_mb limits rows and batches together. On a GPU it limits the
// batches, and cistern.device_memory_mb the rows: by default, and at most, a quarter of the pool's
// free memory after the chunks that carry rows. Four parts need memory at the same time: the pass
// in training, the next pass, its key collector, and a pass in evaluation. Call it after the model
// has its memory.
PassMemory PassMemoryOn(const DeviceContext& device, const model::ModelConfig& config);

// Of training data that never ends (cistern.stream).
struct FeedCalls {
  std::function<bool()> stops;         // whether this worker wants the data to end; called often
  data::FeedStatus* status = nullptr;  // outlives the source
};

// Opens the passes of the training data from `start`: limited by max_iter or num_epochs, shuffled
// if the model asks for it, cut where a snapshot is due. device: trains the passes, outlives the
// source, and collects the keys if it is a GPU. group: the workers that share each batch, outlives
// the source; null: a single worker. bad_data: counts what cistern.on_bad_data leaves out, outlives
// the source; null: a bad file is an error.
absl::StatusOr<std::unique_ptr<data::PassSource>> OpenTrainingData(
    const model::ModelConfig& config, const PassMemory& memory, DeviceContext& device,
    group::ProcessGroup* group, const data::PassCursor& start = {},
    data::BadData* bad_data = nullptr, data::ReadCounts* counts = nullptr,
    const FeedCalls& feed = {});

// The label values that the model's loss accepts.
data::LabelRule LabelRuleOf(const model::ModelConfig& config);

// Opens the passes of evaluation data, in file order, read once, without segments.
// labels: the accepted values. files: file lists or data files, read in order. max_batches: 0 =
// all. start: the end of an earlier pass of the same data, or its beginning. open: opens the
// samples instead of `files`; null: the files.
absl::StatusOr<std::unique_ptr<data::PassSource>> OpenEvaluationData(
    const model::ModelConfig& config, const PassMemory& memory, DeviceContext& device,
    group::ProcessGroup* group, data::LabelRule labels, const std::vector<std::string>& files,
    uint64_t max_batches, const data::PassCursor& start = {},
    data::PassSource::OpenReader open = nullptr);

// Returns the next pass of a source opened with `group`, its rows distributed among the workers;
// null at the end. The weights of samples to train are scaled (sample_weights.h).
enum class PassUse { kTrain, kEvaluate };
absl::StatusOr<std::unique_ptr<data::Pass>> NextPass(data::PassSource& source,
                                                     const model::ModelConfig& config,
                                                     group::ProcessGroup* group, PassUse use);

}  // namespace cistern
