#include "cli/command/tune_command.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "app/run/run_folder.h"
#include "cli/command/shared_flags.h"
#include "cli/command/train_command.h"
#include "cli/command/tune_search.h"
#include "cli/command/tune_table.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/interrupt.h"
#include "common/base/hash.h"
#include "common/base/hash_text.h"
#include "common/io/new_file.h"
#include "worker/model/graph/model_summary.h"

namespace cistern {
namespace {

using Json = nlohmann::ordered_json;

struct TuneFlags {
  std::string input, out, time;
  std::vector<std::string> more;  // further files of the table
  std::vector<std::string> set, learning_rates, dims, depths;
  uint64_t trials = 16, seed = 1, threads = 0;
  std::string device = "cpu";
  bool resume = false, overwrite = false;
  TableModelFlags table;
};

template <typename T>
absl::StatusOr<std::vector<T>> NumbersOf(const char* flag, const std::vector<std::string>& texts,
                                         double least, double most) {
  std::vector<T> numbers;
  for (const std::string& text : texts) {
    double number = 0;
    const bool is_number = absl::SimpleAtod(text, &number) && number >= least && number <= most;
    if (!is_number || static_cast<double>(static_cast<T>(number)) != number) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s '%s': expected numbers from %g to %g", flag, text, least, most));
    }
    numbers.push_back(static_cast<T>(number));
  }
  return numbers;
}

// "600", "600s", "10m" or "1h".
absl::StatusOr<absl::Duration> TimeOf(const std::string& text) {
  double seconds = 0;
  absl::Duration time = absl::InfiniteDuration();
  if (text.empty()) return time;
  const bool plain = absl::SimpleAtod(text, &seconds) && std::isfinite(seconds);
  if (plain) time = absl::Seconds(seconds);
  if ((!plain && !absl::ParseDuration(text, &time)) || time <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--time '", text, "': expected a time such as 600, 10m or 1h"));
  }
  return time;
}

absl::StatusOr<TuneSpace> SpaceOf(const TuneFlags& flags, const ModelKnobs& model) {
  TuneSpace space = DefaultSpace(model);
  CISTERN_ASSIGN_OR_RETURN(space.learning_rates,
                           NumbersOf<double>("--learning-rate", flags.learning_rates, 1e-12, 1e6));
  CISTERN_ASSIGN_OR_RETURN(const auto dims, NumbersOf<uint32_t>("--dim", flags.dims, 1, 4096));
  CISTERN_ASSIGN_OR_RETURN(const auto depths, NumbersOf<uint32_t>("--depth", flags.depths, 1, 64));
  if (!dims.empty()) space.dims = dims;
  if (!depths.empty()) space.depths = depths;
  if (!dims.empty() && !model.dim) {
    return absl::InvalidArgumentError("--dim: the model has no embedding vectors");
  }
  if (!depths.empty() && !model.depth) {
    return absl::InvalidArgumentError("--depth: the model has no hidden layers");
  }
  return space;
}

// One search: its model, its space, and the trials so far.
class Tuning {
 public:
  Tuning(const TuneFlags& flags, Console& console) : flags_(flags), console_(console) {}
  absl::StatusOr<Report> Run();

 private:
  absl::Status CheckFlags() const;
  // Reads the model that is varied; a table becomes a model below --out first.
  absl::Status TakeInput();
  absl::Status OpenLog();
  // Whether the layers of a variant fit each other.
  bool IsPossible(const ModelKnobs& knobs) const;
  // Knobs that only some models can vary are left out where the model's layers would not fit.
  void NarrowSpace();
  // The state of a trial that has ended would hold all rows once more.
  void RemoveState(uint64_t number);
  absl::Status RunTrial(uint64_t number);
  void Finish(const absl::StatusOr<Report>& report, absl::Time start, Trial* trial);
  Report ReportOf(bool out_of_time) const;
  bool interrupted() const { return interrupted_->load(); }
  bool IsOutOfTime() const { return absl::Now() >= end_; }

  const TuneFlags& flags_;
  mutable LocalFileSystem files_;
  Console& console_;
  const std::atomic<bool>* const interrupted_ = CatchInterrupts();
  absl::Time end_ = absl::InfiniteFuture();
  std::vector<std::string> warnings_;  // about the table, for the first trial
  std::string model_file_;             // path, for messages
  Json model_;
  ModelKnobs knobs_;  // of model_
  TuneSpace space_;
  std::optional<TuneLog> log_;
};

absl::Status Tuning::CheckFlags() const {
  if (flags_.trials == 0 || flags_.trials > 10000) {
    return absl::InvalidArgumentError("--trials: expected 1 to 10000");
  }
  if (flags_.resume && flags_.overwrite) {
    return WithFix(absl::InvalidArgumentError("--resume and --overwrite exclude each other"),
                   "leave out one of them");
  }
  CISTERN_RETURN_IF_ERROR(app::CheckOutFolder(flags_.out));
  if (flags_.resume || flags_.overwrite) return absl::OkStatus();
  CISTERN_ASSIGN_OR_RETURN(const bool exists, files_.Exists(TuneLog::PathIn(flags_.out)));
  return exists ? TuneLog::ExistsError(flags_.out) : absl::OkStatus();
}

absl::Status Tuning::TakeInput() {
  app::ModelOptions model;
  model.config = flags_.input;
  model.set = flags_.set;
  const std::string made = absl::StrCat(flags_.out, "/", app::kRunModelFile);
  if (IsTable(flags_.input)) {
    CISTERN_ASSIGN_OR_RETURN(const bool exists, files_.Exists(made));
    model.config = made;
    if (!flags_.resume || !exists) {
      CISTERN_ASSIGN_OR_RETURN(
          model.config, MakeModel(flags_.input, flags_.table, flags_.out, console_, &warnings_));
    }
  } else if (const std::string flag = GivenTableFlag(flags_.table); !flag.empty()) {
    return WithFix(
        absl::InvalidArgumentError(absl::StrCat(flag, " is for a table (*.csv, *.tsv), but ",
                                                flags_.input, " is a model file or a run")),
        absl::StrCat("leave out ", flag));
  } else {
    std::string unused;
    CISTERN_RETURN_IF_ERROR(app::TakeRunFolder(&model, &unused));
  }
  CISTERN_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelArgument(model));
  CISTERN_RETURN_IF_ERROR(Summarize(config).status());
  if (config.data.eval_source.empty()) {
    return WithFix(absl::InvalidArgumentError(absl::StrCat(
                       model.config, ": there is no evaluation data to compare trials with")),
                   "--set layers.0.eval_source=FILE");
  }
  // Trials are compared after each epoch, and each keeps its best one.
  if (config.solver.max_iter == 0) {
    model.set.push_back("cistern.eval_every_epoch=true");
    model.set.push_back("cistern.keep_best=true");
  }
  CISTERN_ASSIGN_OR_RETURN(const std::string text, app::ReadModelFile(model));
  model_file_ = model.config;
  model_ = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  knobs_ = KnobsOf(model_);
  return absl::OkStatus();
}

bool Tuning::IsPossible(const ModelKnobs& knobs) const {
  const absl::StatusOr<Json> variant = WithKnobs(model_, knobs);
  if (!variant.ok()) return false;
  const absl::StatusOr<ModelConfig> config = ParseModelConfig(variant->dump(), model_file_, {});
  return config.ok() && Summarize(*config).ok();
}

void Tuning::NarrowSpace() {
  const auto narrow = [&](const char* what, std::optional<uint32_t> ModelKnobs::*knob,
                          std::vector<uint32_t>* values) {
    if (!(knobs_.*knob)) return;
    std::vector<uint32_t> possible;
    for (const uint32_t value : *values) {
      ModelKnobs knobs = knobs_;
      knobs.*knob = value;
      if (IsPossible(knobs)) possible.push_back(value);
    }
    if (possible.size() < values->size()) {
      console_.Say(absl::StrCat("note: ", what, " ", absl::StrJoin(*values, ", "),
                                ": the layers of the model fit each other only for ",
                                possible.empty() ? "its own" : absl::StrJoin(possible, ", ")));
    }
    *values = possible;
  };
  narrow("dim", &ModelKnobs::dim, &space_.dims);
  narrow("depth", &ModelKnobs::depth, &space_.depths);
}

absl::Status Tuning::OpenLog() {
  Json task;
  task["format"] = 1;
  task["input"] = flags_.input;
  task["model"] = HashText(HashBytes(model_.dump()));
  task["seed"] = flags_.seed;
  task["learning_rates"] = space_.learning_rates;
  task["dims"] = space_.dims;
  task["depths"] = space_.depths;
  CISTERN_RETURN_IF_ERROR(files_.MakeFolders(flags_.out));
  // A search that begins continues no trial of an earlier one.
  if (flags_.overwrite) CISTERN_RETURN_IF_ERROR(RemoveStates(files_, flags_.out));
  CISTERN_ASSIGN_OR_RETURN(
      log_, TuneLog::Open(files_, flags_.out, task, flags_.resume, flags_.overwrite));
  return absl::OkStatus();
}

void Tuning::RemoveState(uint64_t number) {
  const absl::Status removed = RemoveTree(files_, TrialFolder(flags_.out, number) + "/state");
  if (!removed.ok()) console_.Say(absl::StrCat("note: ", removed.message()));
}

absl::Status Tuning::RunTrial(uint64_t number) {
  Trial trial;
  trial.number = number;
  trial.knobs = KnobsOfTrial(knobs_, space_, flags_.seed, number);
  const std::string prefix = absl::StrFormat("trial %d of %d", number, flags_.trials);
  console_.Say(absl::StrCat(prefix, ": ", KnobsText(trial.knobs)));
  CISTERN_ASSIGN_OR_RETURN(const Json variant, WithKnobs(model_, trial.knobs));
  const std::string folder = TrialFolder(flags_.out, number), model_file = folder + ".json";
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<NewFile> file,
                           NewFile::Create(files_, model_file));
  CISTERN_RETURN_IF_ERROR(file->Append(variant.dump(2) + "\n"));
  CISTERN_RETURN_IF_ERROR(file->Close());

  TrainFlags train;
  train.model.config = model_file;
  train.model.threads = flags_.threads;
  train.model.device = flags_.device;
  train.out = folder;
  train.warnings = std::exchange(warnings_, {});
  // A trial that was cut off continues from its last commit.
  CISTERN_ASSIGN_OR_RETURN(train.resume, files_.Exists(folder + "/state"));
  train.resume &= flags_.resume;
  train.overwrite = !train.resume;
  bool below = false;
  train.goes_on = [&](const Progress& progress) {
    if (progress.event == "resume") trial.TakeEvaluations(files_, folder);
    if (progress.event == "eval" && progress.auc) {
      trial.Take(*progress.auc, progress.logloss);
      below = IsBelowMedian(trial, log_->trials());
    }
    return !below && !IsOutOfTime();
  };
  const absl::Time start = absl::Now();
  const absl::StatusOr<Report> report = RunTrain(train, app::WorkerRank{}, console_);
  if (interrupted()) return absl::OkStatus();
  trial.state = !report.ok()                  ? "failed"
                : !report->outcome.ok()       ? "failed"
                : below                       ? "stopped"
                : report->json["interrupted"] ? "cut off"
                                              : "finished";
  if (trial.state == "cut off") return absl::OkStatus();  // by --time
  Finish(report, start, &trial);
  CISTERN_RETURN_IF_ERROR(log_->Add(trial));
  RemoveState(number);
  return absl::OkStatus();
}

void Tuning::Finish(const absl::StatusOr<Report>& report, absl::Time start, Trial* trial) {
  trial->seconds = std::round(absl::ToDoubleSeconds(absl::Now() - start) * 100) / 100;
  if (trial->state == "failed") {
    const absl::Status& status = report.ok() ? report->outcome : report.status();
    trial->message = std::string(status.message());
    trial->auc.reset();
    console_.Say(absl::StrCat("note: trial ", trial->number, " failed: ", trial->message));
    return;
  }
  if (trial->auc || !report->json["auc"].is_number()) return;
  trial->auc = report->json["auc"].get<double>();  // evaluated at the end only
  if (report->json["logloss"].is_number()) trial->logloss = report->json["logloss"].get<double>();
}

Report Tuning::ReportOf(bool out_of_time) const {
  Report report;
  report.json["trials"] = TrialsJson(log_->trials(), flags_.out);
  report.text = TrialsTable(log_->trials());
  const Trial* const best = BestOf(log_->trials());
  report.json["best"] = best == nullptr ? Json() : Json(TrialFolder(flags_.out, best->number));
  const std::string again = "the same command with --resume continues";
  if (best != nullptr) {
    const std::string run = TrialFolder(flags_.out, best->number);
    absl::StrAppend(&report.text, "\nbest: ", KnobsText(best->knobs), "\n  cistern predict ", run,
                    " --input FILE --output predictions.csv\n  cistern report ", run, "\n");
  }
  if (interrupted()) {
    report.outcome = WithFix(
        absl::CancelledError(absl::StrCat("interrupted after ", log_->trials().size(), " trials")),
        again);
  } else if (out_of_time) {
    absl::StrAppend(&report.text, "the time is over after ", log_->trials().size(), " of ",
                    flags_.trials, " trials: ", again, "\n");
  }
  if (best == nullptr && report.outcome.ok()) {
    report.outcome =
        log_->trials().empty()
            ? WithFix(absl::FailedPreconditionError("no trial finished within the time limit"),
                      "give it more: --time 1h")
            : absl::FailedPreconditionError(
                  absl::StrCat("no trial has an AUC: ", log_->trials()[0].message));
  }
  return report;
}

absl::StatusOr<Report> Tuning::Run() {
  CISTERN_RETURN_IF_ERROR(CheckFlags());
  CISTERN_ASSIGN_OR_RETURN(const absl::Duration time, TimeOf(flags_.time));
  end_ = absl::Now() + time;
  CISTERN_RETURN_IF_ERROR(TakeInput());
  CISTERN_ASSIGN_OR_RETURN(space_, SpaceOf(flags_, knobs_));
  NarrowSpace();
  CISTERN_RETURN_IF_ERROR(OpenLog());
  bool out_of_time = false;
  for (uint64_t number = 1; number <= flags_.trials && !interrupted(); ++number) {
    const bool is_done = std::any_of(log_->trials().begin(), log_->trials().end(),
                                     [&](const Trial& trial) { return trial.number == number; });
    if (is_done) RemoveState(number);  // left by a kill just before its removal
    if (is_done) continue;
    out_of_time = IsOutOfTime();
    if (out_of_time) break;
    CISTERN_RETURN_IF_ERROR(RunTrial(number));
    out_of_time = IsOutOfTime() && number < flags_.trials;
  }
  return ReportOf(out_of_time);
}

void AddSearchFlags(Command& command, TuneFlags* flags) {
  command.Flag("--trials", &flags->trials, {"INT", "How many models to train.", "--trials 30"});
  command.Flag("--time", &flags->time,
               {"TIME",
                "Ends the search after this time: seconds, or 10m, 1h. By default it ends "
                "after the last trial.",
                "--time 30m"});
  command.List("--learning-rate", &flags->learning_rates, true,
               {"NUMBER,...",
                "Learning rates of the dense weights to choose from; those of rows change by the "
                "same factor. By default between a tenth of the model's and ten times it.",
                "--learning-rate 0.0003,0.001,0.003"});
  command.List("--dim", &flags->dims, true,
               {"INT,...",
                "Sizes of the embedding vectors to choose from. By default half, once, twice and "
                "four times the model's.",
                "--dim 8,16,32"});
  command.List("--depth", &flags->depths, true,
               {"INT,...",
                "Numbers of hidden layers to choose from. By default from one less to two more "
                "than the model has.",
                "--depth 1,2,3"});
  command.Flag("--seed", &flags->seed, {"INT", "Seed of the random choices.", "--seed 2"});
}

}  // namespace

void AddTuneCommand(Command& root) {
  auto flags = std::make_shared<TuneFlags>();
  Command& command = root.Add(
      "tune", "Searches learning rate, embedding size and depth of a model: trains variants of it.",
      "cistern tune train.csv --label click --trials 20 --time 30m --out tuned");
  command.Argument("TABLE|MODEL.json|RUN", &flags->input,
                   {"FILE|DIR", "What to tune: a CSV or TSV file, a model file, or a run.",
                    "train.csv", kRequired});
  command.Arguments("FILE", &flags->more,
                    {"FILE", "Table: more files of it.", "part-1.csv part-2.csv"});
  command.Flag("--out", &flags->out,
               {"DIR", "Folder of the search: tune.jsonl and a run for each trial.", "--out tuned",
                kRequired});
  AddSearchFlags(command, flags.get());
  command.List("--set", &flags->set, false,
               {"PATH=VALUE", "Overrides a value of the model file, for all trials.",
                "--set solver.num_epochs=5"});
  command.Flag("--threads", &flags->threads, ThreadsText("Number of compute threads"));
  command.Choice("--device", &flags->device,
                 {"cpu|cuda", "Device that runs the model.", "--device cuda"});
  command.Switch("--resume", &flags->resume,
                 {"",
                  "Continues a search: a trial that was cut off from its last commit, then those "
                  "that are missing.",
                  "--resume"});
  command.Switch("--overwrite", &flags->overwrite,
                 {"", "Replaces the search in the folder.", "--overwrite"});
  AddTableModelFlags(command, &flags->table);
  command.Flag(
      "--test", &flags->table.test,
      {"FILE", "Table: evaluates on this table. By default a tenth of the rows is held out.",
       "--test test.csv"});
  command.Does([flags](Console& console) -> absl::StatusOr<Report> {
    CISTERN_ASSIGN_OR_RETURN(flags->input, TableOf(flags->input, flags->more));
    return Tuning(*flags, console).Run();
  });
}

}  // namespace cistern
