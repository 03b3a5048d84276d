#include "app/tune/tune.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "app/data/table_file.h"
#include "app/run/run_folder.h"
#include "common/base/hash.h"
#include "common/base/hash_text.h"
#include "common/io/new_file.h"
#include "worker/model/graph/model_summary.h"
#include "worker/model/layer/layer_list.h"

namespace cistern::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kMaxTrials = 10000;

// One search: its model, its space, and the trials so far.
class Tuning {
 public:
  Tuning(const TuneOptions& options, const TuneCalls& calls)
      : options_(options), calls_(calls), end_(absl::Now() + options.time) {}
  absl::StatusOr<TuneResult> Run();

 private:
  // Reads the model that is varied.
  absl::Status ReadModel();
  // Checks what was given, and adds defaults.
  absl::Status FillSpace();
  // Values for which the model's layers would not fit each other are left out.
  void NarrowSpace();
  bool IsPossible(const model::ModelKnobs& knobs) const;
  absl::Status OpenLog();
  // The state of a trial that has ended would hold all rows once more.
  void RemoveState(uint64_t number);
  absl::StatusOr<TrainRunOptions> WriteVariant(const Trial& trial);
  absl::StatusOr<TrainRunResult> Train(const TrainRunOptions& train,
                                       const std::function<bool(const Progress&)>& goes_on) const;
  absl::Status RunTrial(uint64_t number);
  void Fail(const absl::Status& why, Trial* trial) const;
  void Note(const std::string& line) const {
    if (calls_.note) calls_.note(line);
  }
  bool interrupted() const { return calls_.interrupted != nullptr && calls_.interrupted->load(); }
  bool IsOutOfTime() const { return absl::Now() >= end_; }
  bool HasEnded(uint64_t number) const {
    return std::any_of(log_->trials().begin(), log_->trials().end(),
                       [&](const Trial& trial) { return trial.number == number; });
  }

  const TuneOptions& options_;
  const TuneCalls& calls_;
  const absl::Time end_;
  mutable LocalFileSystem files_;
  std::string model_file_;  // path, for messages
  Json model_;
  model::ModelKnobs knobs_;  // of model_
  TuneSpace space_;
  bool has_warned_ = false;  // the warnings are in the log of a trial
  std::optional<TuneLog> log_;
};

absl::Status Tuning::ReadModel() {
  ModelOptions model;
  model.config = options_.model.config;
  model.set = options_.model.set;
  std::string unused;
  CISTERN_RETURN_IF_ERROR(ResolveRunFolder(&model, &unused));
  CISTERN_ASSIGN_OR_RETURN(const model::ModelConfig config, ReadModelConfig(model));
  CISTERN_RETURN_IF_ERROR(model::Summarize(config).status());
  if (config.data.eval_source.empty()) {
    return WithOptions(
        WithFix(absl::InvalidArgumentError(absl::StrCat(
                    model.config, ": there is no evaluation data to compare trials with")),
                "name some in the model file"),
        {"set=layers.0.eval_source=FILE"});
  }
  // Trials are compared after each epoch, and each keeps its best one.
  if (config.solver.max_iter == 0) {
    model.set.push_back("cistern.eval_every_epoch=true");
    model.set.push_back("cistern.keep_best=true");
  }
  CISTERN_ASSIGN_OR_RETURN(const std::string text, ReadModelFile(model));
  model_file_ = model.config;
  model_ = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  knobs_ = model::KnobsOf(model_, model::LayerGrammars());
  return absl::OkStatus();
}

absl::Status Tuning::FillSpace() {
  space_ = DefaultSpace(knobs_);
  space_.learning_rates = options_.space.learning_rates;
  if (!options_.space.dims.empty()) {
    if (!knobs_.dim) {
      return WithOptions(absl::InvalidArgumentError("the model has no embedding vectors"), {"dim"});
    }
    space_.dims = options_.space.dims;
  }
  if (!options_.space.depths.empty()) {
    if (!knobs_.depth) {
      return WithOptions(absl::InvalidArgumentError("the model has no hidden layers"), {"depth"});
    }
    space_.depths = options_.space.depths;
  }
  return absl::OkStatus();
}

bool Tuning::IsPossible(const model::ModelKnobs& knobs) const {
  const absl::StatusOr<Json> variant = model::WithKnobs(model_, knobs, model::LayerGrammars());
  if (!variant.ok()) return false;
  const absl::StatusOr<model::ModelConfig> config =
      model::ParseModelConfig(variant->dump(), model_file_, {}, model::LayerGrammars());
  return config.ok() && model::Summarize(*config).ok();
}

void Tuning::NarrowSpace() {
  const auto narrow = [&](const char* what, std::optional<uint32_t> model::ModelKnobs::*knob,
                          std::vector<uint32_t>* values) {
    if (!(knobs_.*knob)) return;
    std::vector<uint32_t> possible;
    for (const uint32_t value : *values) {
      model::ModelKnobs knobs = knobs_;
      knobs.*knob = value;
      if (IsPossible(knobs)) possible.push_back(value);
    }
    if (possible.size() < values->size()) {
      Note(absl::StrCat("note: ", what, " ", absl::StrJoin(*values, ", "),
                        ": the layers of the model fit each other only for ",
                        possible.empty() ? "its own" : absl::StrJoin(possible, ", ")));
    }
    *values = possible;
  };
  narrow("dim", &model::ModelKnobs::dim, &space_.dims);
  narrow("depth", &model::ModelKnobs::depth, &space_.depths);
}

absl::Status Tuning::OpenLog() {
  Json task;
  task["format"] = 1;
  task["input"] = options_.input;
  task["model"] = HashText(HashBytes(model_.dump()));
  task["seed"] = options_.seed;
  task["learning_rates"] = space_.learning_rates;
  task["dims"] = space_.dims;
  task["depths"] = space_.depths;
  CISTERN_RETURN_IF_ERROR(files_.MakeFolders(options_.out));
  // A search that begins continues no trial of an earlier one.
  if (options_.overwrite) CISTERN_RETURN_IF_ERROR(RemoveStates(files_, options_.out));
  CISTERN_ASSIGN_OR_RETURN(
      log_, TuneLog::Open(files_, options_.out, task, options_.resume, options_.overwrite));
  return absl::OkStatus();
}

void Tuning::RemoveState(uint64_t number) {
  const absl::Status removed = RemoveTree(files_, TrialFolder(options_.out, number) + "/state");
  if (!removed.ok()) Note(absl::StrCat("note: ", removed.message()));
}

// Writes the model file of a trial. A trial that was cut off continues from its last commit.
absl::StatusOr<TrainRunOptions> Tuning::WriteVariant(const Trial& trial) {
  CISTERN_ASSIGN_OR_RETURN(const Json variant,
                           model::WithKnobs(model_, trial.knobs, model::LayerGrammars()));
  TrainRunOptions train;
  train.out = TrialFolder(options_.out, trial.number);
  train.model.config = train.out + ".json";
  train.model.threads = options_.model.threads;
  train.model.device = options_.model.device;
  if (!std::exchange(has_warned_, true)) train.warnings = options_.warnings;
  CISTERN_RETURN_IF_ERROR(WriteWhole(files_, train.model.config, variant.dump(2) + "\n"));
  CISTERN_ASSIGN_OR_RETURN(train.resume, files_.Exists(train.out + "/state"));
  train.resume &= options_.resume;
  train.overwrite = !train.resume;
  return train;
}

absl::StatusOr<TrainRunResult> Tuning::Train(
    const TrainRunOptions& train, const std::function<bool(const Progress&)>& goes_on) const {
  CISTERN_ASSIGN_OR_RETURN(const model::ModelConfig config, ReadModelConfig(train.model));
  if (calls_.train) return calls_.train(config, train, goes_on);
  TrainRunCalls calls;
  calls.note = calls_.note;
  calls.progress = goes_on;
  calls.interrupted = calls_.interrupted;
  return TrainRun(config, train, calls);
}

void Tuning::Fail(const absl::Status& why, Trial* trial) const {
  trial->end = TrialEnd::kFailed;
  trial->message = std::string(why.message());
  trial->auc.reset();
  Note(absl::StrCat("note: trial ", trial->number, " failed: ", trial->message));
}

absl::Status Tuning::RunTrial(uint64_t number) {
  Trial trial;
  trial.number = number;
  trial.knobs = KnobsOfTrial(knobs_, space_, options_.seed, number);
  Note(absl::StrFormat("trial %d of %d: %s", number, options_.trials, KnobsText(trial.knobs)));
  CISTERN_ASSIGN_OR_RETURN(const TrainRunOptions train, WriteVariant(trial));
  bool below = false;
  const auto goes_on = [&](const Progress& progress) {
    if (progress.event == report::RunEvent::kResume) trial.TakeEvaluations(files_, train.out);
    if (progress.event == report::RunEvent::kEval && progress.auc) {
      trial.Take(*progress.auc, progress.logloss);
      below = IsBelowMedian(trial, log_->trials());
    }
    return !below && !IsOutOfTime();
  };
  const absl::Time start = absl::Now();
  const absl::StatusOr<TrainRunResult> run = Train(train, goes_on);
  // Cut off, by a signal or by the end of the time: it is not a trial yet.
  if (interrupted() || (run.ok() && run->summary.interrupted() && !below)) return absl::OkStatus();
  trial.seconds = std::round(absl::ToDoubleSeconds(absl::Now() - start) * 100) / 100;
  if (!run.ok()) {
    Fail(run.status(), &trial);
  } else {
    trial.end = below ? TrialEnd::kStopped : TrialEnd::kFinished;
    if (!trial.auc && run->summary.score.auc) {  // evaluated at the end only
      trial.auc = run->summary.score.auc;
      trial.logloss = run->summary.score.logloss;
    }
  }
  CISTERN_RETURN_IF_ERROR(log_->Add(trial));
  RemoveState(number);
  return absl::OkStatus();
}

absl::StatusOr<TuneResult> Tuning::Run() {
  CISTERN_RETURN_IF_ERROR(ReadModel());
  CISTERN_RETURN_IF_ERROR(FillSpace());
  NarrowSpace();
  CISTERN_RETURN_IF_ERROR(OpenLog());
  TuneResult result;
  for (uint64_t number = 1; number <= options_.trials && !interrupted(); ++number) {
    if (HasEnded(number)) {
      RemoveState(number);  // left by a kill just before its removal
      continue;
    }
    result.out_of_time = IsOutOfTime();
    if (result.out_of_time) break;
    CISTERN_RETURN_IF_ERROR(RunTrial(number));
    result.out_of_time = IsOutOfTime() && number < options_.trials;
  }
  result.trials = log_->trials();
  result.interrupted = interrupted();
  return result;
}

}  // namespace

absl::Status TuneResult::outcome() const {
  if (interrupted) {
    return absl::CancelledError(absl::StrCat("interrupted after ", trials.size(), " trials"));
  }
  if (BestOf(trials) != nullptr) return absl::OkStatus();
  if (!trials.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("no trial has an AUC: ", trials[0].message));
  }
  return WithOptions(
      WithFix(absl::FailedPreconditionError("no trial finished within the time limit"),
              "give it more time"),
      {"time=1h"});
}

absl::Status CheckTune(const TuneOptions& options) {
  if (options.trials == 0 || options.trials > kMaxTrials) {
    return WithOptions(absl::InvalidArgumentError(
                           absl::StrCat(options.trials, " trials: expected 1 to ", kMaxTrials)),
                       {"trials"});
  }
  if (options.resume && options.overwrite) {
    return WithOptions(
        WithFix(absl::InvalidArgumentError("a search cannot be both continued and replaced"),
                "leave out one of them"),
        {"resume", "overwrite"});
  }
  CISTERN_RETURN_IF_ERROR(CheckOutFolder(options.out));
  if (IsRunFolder(options.out)) {
    return WithOptions(
        WithFix(absl::InvalidArgumentError(
                    absl::StrCat(options.out, " holds a run, whose model a search would replace")),
                "name another folder"),
        {"out"});
  }
  if (options.resume || options.overwrite) return absl::OkStatus();
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const bool exists, files.Exists(TuneLog::PathIn(options.out)));
  return exists ? TuneLog::ExistsError(options.out) : absl::OkStatus();
}

absl::Status ApplyTable(const TableOptions& table, TuneOptions* options, const TableCalls& calls) {
  const std::string path = options->model.config;
  if (!IsTable(path)) {
    const std::string option = GivenOption(table);
    if (option.empty()) return absl::OkStatus();
    return WithFix(WithOptions(absl::InvalidArgumentError(absl::StrCat(
                                   path,
                                   " is a model file or a run, and the option is for a table "
                                   "(*.csv, *.tsv)")),
                               {option}),
                   "leave it out");
  }
  LocalFileSystem files;
  options->model.config = absl::StrCat(options->out, "/", kRunModelFile);
  CISTERN_ASSIGN_OR_RETURN(const bool exists, files.Exists(options->model.config));
  if (options->resume && exists) return absl::OkStatus();
  TableOptions given = table;
  given.set = options->model.set;
  CISTERN_ASSIGN_OR_RETURN(TableModel made, MakeTableModel(path, given, options->out, calls));
  options->warnings = std::move(made.warnings);
  return absl::OkStatus();
}

absl::StatusOr<TuneResult> Tune(const TuneOptions& options, const TuneCalls& calls) {
  CISTERN_RETURN_IF_ERROR(CheckTune(options));
  return Tuning(options, calls).Run();
}

}  // namespace cistern::app
