// Scores the passes of a stream before they are trained, and corrects their mean afterwards.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "worker/client/parameter_client.h"
#include "worker/model/config/model_config.h"
#include "worker/model/graph/model.h"
#include "worker/pass/pass_pipeline.h"
#include "worker/train/evaluator.h"
#include "worker/train/position.h"

namespace cistern {

// Threads: one at a time.
class StreamScorer {
 public:
  // Arguments: as of Evaluator. Null if the model trains on no stream, or if nothing can be scored,
  // because a table defers updates.
  static std::unique_ptr<StreamScorer> Create(const model::ModelConfig& config,
                                              ParameterClient& client, model::Model& model,
                                              model::RowStage& stage, DeviceContext& device,
                                              group::ProcessGroup* group);

  // How good the model is on a pass that it has not seen. nullopt: nobody asks
  // (cistern.stream.score). draw: the number of samples before the pass.
  absl::StatusOr<std::optional<PassScore>> Score(const ReadyPass& ready, uint64_t draw);
  // After a pass was trained: moves the last bias so that the mean prediction on
  // its last batches is the share of positives that the stream has (StreamShare), if
  // cistern.calibrate is set. These batches weigh most in what it taught, and a pass without a
  // click teaches that there are none. Returns what there is to warn of.
  absl::StatusOr<std::optional<std::string>> Calibrate(const ReadyPass& ready,
                                                       std::optional<StreamShare>* share);
  // The first batch of `pass` that Calibrate scores; their number if it will not. A run does not
  // stop between two of these: it would score the rest of them alone when it continues, and end
  // with other bits.
  size_t FirstCalibrated(const data::Pass& pass) const;

 private:
  static constexpr uint64_t kCalibratedSamples = 65536;  // of a pass, at most

  StreamScorer(const model::ModelConfig& config, ParameterClient& client, model::Model& model,
               model::RowStage& stage, DeviceContext& device, group::ProcessGroup* group);

  const model::ModelConfig& config_;
  model::Model& model_;
  Evaluator evaluator_;
};

}  // namespace cistern
