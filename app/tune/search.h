// What a search tries, when it stops a trial early, and the file that remembers it all.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/model/config/model_variant.h"

namespace cistern::app {

// The values to choose from. An empty list keeps the model's value, except for learning rates,
// which are then drawn between a tenth of the model's and ten times it.
struct TuneSpace {
  std::vector<double> learning_rates;
  std::vector<uint32_t> dims, depths;
};
// Half, one, two and four times the model's dim; from one layer fewer than its depth to two more.
TuneSpace DefaultSpace(const model::ModelKnobs& model);

// The knobs of a trial: trial 1 is the unchanged model; the others are drawn at random, as a
// function of seed and trial alone. Only knobs that the model has are set.
model::ModelKnobs KnobsOfTrial(const model::ModelKnobs& model, const TuneSpace& space,
                               uint64_t seed, uint64_t trial);

enum class TrialEnd { kFinished, kStopped, kFailed };  // kStopped: by the median rule
// "finished", "stopped", "failed".
const char* TrialEndName(TrialEnd end);

struct Trial {
  uint64_t number = 0;  // from 1
  model::ModelKnobs knobs;
  TrialEnd end = TrialEnd::kFinished;
  std::map<uint64_t, double> curve;    // evaluation AUC by number of evaluation, from 1
  std::optional<double> auc, logloss;  // of the best evaluation
  double seconds = 0;
  std::string message;  // failed: why

  // Adds an evaluation.
  void Take(double reached, std::optional<double> logloss_then);
  // Adds those of a run that was cut off, from its metrics.jsonl; none if it cannot be read.
  void TakeEvaluations(FileSystem& files, const std::string& run);
  // The best AUC of the first `evaluations` evaluations.
  std::optional<double> BestOf(uint64_t evaluations) const;
};

// The median stopping rule (Golovin et al. 2017): whether a trial stops after its last evaluation,
// because its best AUC is below the median of those that the other trials had after as many
// evaluations. Needs three of them.
bool IsBelowMedian(const Trial& trial, const std::vector<Trial>& others);

// FOLDER/tune.jsonl: a line that says what is tuned, then one for each trial that ended.
//
// Threads: one at a time.
class TuneLog {
 public:
  static std::string PathIn(const std::string& folder);
  // kInvalidArgument, with a fix: the folder holds a search.
  static absl::Status ExistsError(const std::string& folder);
  // files: outlives the log. task: what trials depend on. A file of the same task continues: its
  // trials are in trials(). kInvalidArgument, with a fix: a file of another task, or one that
  // exists without `resume`.
  static absl::StatusOr<TuneLog> Open(FileSystem& files, const std::string& folder,
                                      const nlohmann::ordered_json& task, bool resume,
                                      bool overwrite);

  const std::vector<Trial>& trials() const { return trials_; }
  // Adds a trial to the file.
  absl::Status Add(const Trial& trial);

 private:
  TuneLog(FileSystem& files, std::string path) : files_(&files), path_(std::move(path)) {}
  absl::Status Write() const;

  FileSystem* files_;
  std::string path_;
  nlohmann::ordered_json task_;
  std::vector<Trial> trials_;
};

// "learning rate 0.001, dim 8, depth 2".
std::string KnobsText(const model::ModelKnobs& knobs);
// OUT/trial-003.
std::string TrialFolder(const std::string& out, uint64_t trial);
// The trial with the highest AUC; null: none has one.
const Trial* BestOf(const std::vector<Trial>& trials);

// Removes the durable state of every trial below `out`, so that no later trial continues from it.
absl::Status RemoveStates(FileSystem& files, const std::string& out);

}  // namespace cistern::app
