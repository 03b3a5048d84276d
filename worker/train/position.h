// Where a training run stands after a pass: all of the worker's state that is not on the servers.
//
// A durable commit carries it in its manifest (ParameterClient::CommitOptions.worker_state), so
// rows and position become the state together or not at all: a run that starts from a manifest goes
// on after exactly the samples that its rows have seen.
//
// There is no random state here: first values, dropout and the order of samples are pure functions
// of the seed and of a key, a step, or a place in the data (common/base/philox.h). Nor are there
// dense parameters or optimizer state: they are rows of the servers' tables.
//
// As text it is one JSON object (docs/formats.md). Floats keep their bits.
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
#include "worker/model/metric/metric_name.h"
#include "worker/train/plateau.h"

namespace cistern {

// Losses of the steps since something was last reported.
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

// What an evaluation found; absent: none, or (AUC) one class only. auc and logloss steer the run;
// the others are only reported. Why one is undefined is said once, by the evaluation.
struct Score {
  std::optional<double> auc, logloss;
  MetricValues others;
  bool operator==(const Score&) const = default;
};

// The epoch whose state is kept (cistern.keep_best), in a folder that BestState names by its pass.
struct BestEpoch {
  PassId pass = 0;
  Score score;
  bool operator==(const BestEpoch&) const = default;
};

// The settings that ended a run, for telling whether others would let it go on.
struct RunLimits {
  uint64_t max_iter = 0;
  uint32_t num_epochs = 0;
  uint32_t patience = 0;
  double auc_threshold = 1;
  // Whether a run that these limits ended goes on under `others`.
  bool AllowsMoreThan(const RunLimits& others) const;
  bool operator==(const RunLimits&) const = default;
};
RunLimits LimitsOf(const ModelConfig& config);

// How a run ended whose final rows are not those of its last pass, but of its best epoch.
struct RunEnd {
  RunLimits limits;
  std::string stopped_by;
  uint64_t iterations = 0, samples = 0, epochs = 0, passes = 0;  // of the whole run
  double loss = 0;
  Score score;
  bool operator==(const RunEnd&) const = default;
};

struct Position {
  // Optimizer steps that earlier runs made on the same rows: steps (Adam's bias correction, the
  // learning rate's schedule, dropout) count on from them; iterations start at 0.
  uint64_t steps_before = 0;
  uint64_t iterations = 0, samples = 0, epochs = 0, passes = 0;
  PassCursor cursor;
  // The pass was the last of an epoch: what an epoch's end does comes after the commit, and again
  // after a resume.
  bool epoch_ended = false;
  uint64_t pass_rows = 0;  // distinct keys of the pass
  Plateau::State plateau;
  double loss = 0;             // of the last step that was not skipped
  uint64_t skipped_steps = 0;  // cistern.not_finite, or a loss scale that was too large
  LossScale loss_scale;        // where it is dynamic
  LossSum since_train_line, since_pass_line;
  double epoch_samples = 0;  // mean of the epochs that ended; 0: none has
  Score score;               // of the last evaluation
  std::optional<uint64_t> scored_iteration;
  std::optional<BestEpoch> best;
  std::string stopped_by;          // the run ended inside or with this pass; empty: it goes on
  std::optional<RunEnd> finished;  // the run is over; it went on after this pass, and came back
  // Values of the model file that decide what is trained (ModelConfig::values).
  std::map<std::string, std::string> config;

  uint64_t steps() const { return steps_before + iterations; }
  bool operator==(const Position&) const = default;
};

std::string FormatPosition(const Position& position);
// kDataLoss: not JSON, another format, a field that is missing, unknown or of another type.
absl::StatusOr<Position> ParsePosition(const std::string& text);

// What Position::config holds of a model file: everything but what only says how long to train,
// what to report and when, and where passes are cut or committed.
std::map<std::string, std::string> TrainingValues(const ModelConfig& config);
// OK if a run with `config` may go on from `position`; kInvalidArgument names what differs first.
absl::Status CheckSameTraining(const Position& position, const ModelConfig& config);

}  // namespace cistern
