#include "cli/command/commands.h"

#include <cmath>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "app/data/table_file.h"
#include "app/tune/tune.h"
#include "cli/command/shared_flags.h"
#include "cli/command/table_flags.h"
#include "cli/command/train_on_console.h"
#include "cli/command/tune_table.h"
#include "cli/terminal/interrupt.h"

namespace cistern::cli {
namespace {

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

absl::StatusOr<app::TuneOptions> TuneOptionsOf(const TuneFlags& flags) {
  app::TuneOptions options;
  options.model.config = flags.input;
  options.model.set = flags.set;
  options.model.threads = flags.threads;
  options.model.device = flags.device;
  options.input = flags.input;
  options.out = flags.out;
  options.trials = flags.trials;
  options.seed = flags.seed;
  options.resume = flags.resume;
  options.overwrite = flags.overwrite;
  CISTERN_ASSIGN_OR_RETURN(options.time, TimeOf(flags.time));
  app::TuneSpace& space = options.space;
  CISTERN_ASSIGN_OR_RETURN(space.learning_rates,
                           NumbersOf<double>("--learning-rate", flags.learning_rates, 1e-12, 1e6));
  CISTERN_ASSIGN_OR_RETURN(space.dims, NumbersOf<uint32_t>("--dim", flags.dims, 1, 4096));
  CISTERN_ASSIGN_OR_RETURN(space.depths, NumbersOf<uint32_t>("--depth", flags.depths, 1, 64));
  return options;
}

// A table becomes a model file below --out; any other input stays.
absl::Status ApplyTable(const TuneFlags& flags, Console& console, app::TuneOptions* options) {
  CISTERN_ASSIGN_OR_RETURN(const app::TableOptions table, TableOptionsOf(flags.table));
  if (!app::IsTable(flags.input)) {
    return CheckNoTableFlag(app::GivenOption(table), flags.input, "a model file or a run");
  }
  const absl::Status status = app::ApplyTable(table, options, TableCallsOn(console, table));
  console.Update("");
  return WithTableFix(status);
}

// A fix with the flags of a search that exists.
absl::Status WithSearchFix(const absl::Status& status, const app::TuneOptions& options) {
  if (OptionsOf(status) == OptionsOf(app::TuneLog::ExistsError(options.out))) {
    return WithFix(
        status, "add --resume to continue it, --overwrite to replace it, or name another folder");
  }
  return WithTrainFix(status, options.model);
}

// Trains a trial with its progress on the console.
app::TuneCalls CallsOn(Console& console) {
  app::TuneCalls calls;
  calls.note = NotesOn(console);
  calls.interrupted = CatchInterrupts();
  calls.train = [&console](const model::ModelConfig& config, const app::TrainRunOptions& options,
                           const std::function<bool(const Progress&)>& goes_on) {
    for (const std::string& note : config.notes) console.Say("note: " + note);
    return TrainOnConsole(config, options, console, goes_on);
  };
  return calls;
}

Report ReportOf(const app::TuneResult& result, const app::TuneOptions& options) {
  Report report;
  report.json["trials"] = TrialsJson(result.trials, options.out);
  report.text = TrialsTable(result.trials);
  const app::Trial* const best = app::BestOf(result.trials);
  report.json["best"] = nullptr;
  if (best != nullptr) {
    const std::string run = app::TrialFolder(options.out, best->number);
    report.json["best"] = run;
    absl::StrAppend(&report.text, "\nbest: ", app::KnobsText(best->knobs), "\n  cistern predict ",
                    run, " --input FILE --output predictions.csv\n  cistern report ", run, "\n");
  }
  const std::string again = "the same command with --resume continues";
  report.outcome = result.outcome();
  if (result.interrupted) {
    report.outcome = WithFix(report.outcome, again);
  } else if (result.out_of_time) {
    absl::StrAppend(&report.text, "the time is over after ", result.trials.size(), " of ",
                    options.trials, " trials: ", again, "\n");
  }
  return report;
}

absl::StatusOr<Report> RunTune(const TuneFlags& flags, Console& console) {
  CISTERN_ASSIGN_OR_RETURN(app::TuneOptions options, TuneOptionsOf(flags));
  const absl::Time start = absl::Now();
  absl::Status status = app::CheckTune(options);
  if (!status.ok()) return WithSearchFix(status, options);
  CISTERN_RETURN_IF_ERROR(ApplyTable(flags, console, &options));
  options.time -= absl::Now() - start;  // the model of a table takes some of it
  const absl::StatusOr<app::TuneResult> result = app::Tune(options, CallsOn(console));
  if (!result.ok()) return WithSearchFix(result.status(), options);
  return ReportOf(*result, options);
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
      "--test", &flags->table.options.test,
      {"FILE", "Table: evaluates on this table. By default a tenth of the rows is held out.",
       "--test test.csv"});
  command.Does([flags](Console& console) -> absl::StatusOr<Report> {
    CISTERN_ASSIGN_OR_RETURN(flags->input, app::JoinTables(flags->input, flags->more));
    return RunTune(*flags, console);
  });
}

}  // namespace cistern::cli
