// The position of a training run after a pass: all worker state that is not on the servers.
//
// A durable commit carries it in its manifest (ParameterClient::CommitOptions.worker_state), so
// that rows and position are committed together or not at all: a run that starts from a manifest
// resumes after exactly the samples that its rows have seen.
//
// A position holds no random state: first values, dropout and the order of samples are pure
// functions of the seed and of a key, a step, or an index in the data (common/base/philox.h). It
// holds no dense parameters or optimizer state either: these are rows of the servers' tables.
//
// The text form is one JSON object (docs/formats.md), in which floats keep their exact bits.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/base/types.h"
#include "worker/data/source/pass_cursor.h"
#include "worker/model/config/model_config.h"
#include "worker/model/graph/precision.h"
#include "worker/train/plateau.h"
#include "worker/train/run_figures.h"
#include "worker/train/stream_share.h"

namespace cistern {

// The sum of losses since the last report.
struct LossSum {
  double sum = 0;
  uint64_t count = 0;
  void Add(double loss) {
    sum += loss;
    ++count;
  }
  std::optional<double> Mean() const {
    return count == 0 ? std::nullopt : std::optional<double>(sum / static_cast<double>(count));
  }
  bool operator==(const LossSum&) const = default;
};

// The figures of a stream's pass before it was trained. Absent values: as in Score, and for labels
// that are weighted or several.
struct PassScore {
  Score score;
  uint64_t samples = 0;  // that were scored
  std::optional<double> auc_error, calibration_ratio;
  bool operator==(const PassScore&) const = default;
};

// The best epoch (cistern.keep_best), whose state BestState keeps in a folder named by the pass.
struct BestEpoch {
  PassId pass = 0;
  Score score;
  bool operator==(const BestEpoch&) const = default;
};

// The limits that ended a run, to decide whether other limits let it continue.
struct RunLimits {
  uint64_t max_iter = 0;
  uint32_t num_epochs = 0;
  uint32_t patience = 0;
  double auc_threshold = 1;
  // Whether a run that `others` ended continues under these limits.
  bool AllowsMoreThan(const RunLimits& others) const;
  bool operator==(const RunLimits&) const = default;
};
RunLimits LimitsOf(const model::ModelConfig& config);

// The end of a run whose final rows are those of its best epoch instead of its last pass.
struct RunEnd : RunFigures {
  RunLimits limits;
  bool operator==(const RunEnd&) const = default;
};

struct Position : RunFigures {
  // Optimizer steps of earlier runs on the same rows. steps() continues from them (Adam's bias
  // correction, the learning rate's schedule, dropout); iterations start at 0.
  uint64_t steps_before = 0;
  data::PassCursor cursor;
  // The pass was the last of an epoch. The work at the end of an epoch follows the commit, and is
  // repeated after a resume.
  bool epoch_ended = false;
  uint64_t pass_rows = 0;  // the number of distinct keys of the pass
  Plateau::State plateau;
  uint64_t skipped_steps = 0;   // due to cistern.not_finite, or a too large loss scale
  model::LossScale loss_scale;  // if it is dynamic
  LossSum since_train_line, since_pass_line;
  std::optional<PassScore> pass_score;      // until the line of the pass is written; streams only
  double epoch_samples = 0;                 // mean over completed epochs; 0: no completed epoch
  std::optional<StreamShare> stream_share;  // of a stream that is calibrated
  // The streams (cistern.stream) that the run left for other data, and where it is in each.
  std::map<std::string, std::string> left_streams;  // source -> DataPlace::slice
  uint64_t data_samples = 0;  // of the data set, if they are known without reading it; else 0
  // The kernels of the run's matrix products (Stream::ProductKernels). With another kernel, a
  // resumed run is not the uninterrupted one bit for bit.
  std::map<std::string, std::string> product_kernels;
  std::optional<uint64_t> scored_iteration;
  std::optional<BestEpoch> best;
  std::optional<RunEnd> finished;  // the run ended later and returned to this pass (best epoch)
  // The values of the model file that determine the training (ModelConfig::values).
  std::map<std::string, std::string> config;

  uint64_t steps() const { return steps_before + iterations; }
  bool operator==(const Position&) const = default;
};

std::string FormatPosition(const Position& position);
// kDataLoss: not JSON, another format, or a field that is missing, unknown or of a wrong type.
absl::StatusOr<Position> ParsePosition(const std::string& text);

// The entry of ModelConfig::values that holds the hash of the data's recipe, if it has one. A run
// continues with data of the same recipe only.
inline constexpr char kRecipeValue[] = "recipe";

// The entry of ModelConfig::values that names the stream of a run, if it trains on one.
inline constexpr char kStreamValue[] = "cistern.stream.source";

// The values of a model file for Position::config: all except those that only determine how long to
// train, what to report and when, and where passes are cut or committed.
std::map<std::string, std::string> TrainingValues(const model::ModelConfig& config);
// kInvalidArgument if the run stopped inside an epoch that `config` does not allow any more.
absl::Status CheckEpochs(const Position& position, const model::ModelConfig& config);
// OK if a run with `config` can resume from `position`; else kInvalidArgument, with the difference.
// more: the data may be another.
absl::Status CheckSameTraining(const Position& position, const model::ModelConfig& config,
                               bool more = false);
// kInvalidArgument if the run at `position` reads a data set of another size. data_samples: as in
// Position.
absl::Status CheckSameSize(const Position& position, const model::ModelConfig& config,
                           uint64_t data_samples);
// Whether the run at `position` reads the data of `config`, as far as its name and size tell.
bool ReadsSameData(const Position& position, const model::ModelConfig& config,
                   uint64_t data_samples);

}  // namespace cistern
