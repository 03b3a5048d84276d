#include "cli/command/commands.h"

#include <cstdlib>
#include <memory>

#include "absl/strings/str_format.h"
#include "app/demo/demo.h"
#include "cli/command/shared_flags.h"
#include "cli/terminal/interrupt.h"
#include "common/base/amount_text.h"

namespace cistern::cli {
namespace {

// A disk of 100 GB.
constexpr uint64_t kMaxSamples = 1'000'000'000;

std::string TitleOf(const app::DemoStep& step) {
  return absl::StrFormat("[%d/%d] %-9s", step.number, app::kDemoSteps, step.name);
}

app::DemoCalls CallsOn(Console& console) {
  app::DemoCalls calls;
  calls.note = NotesOn(console);
  calls.stop = CatchInterrupts();
  calls.begin = [&console](const app::DemoStep& step) { console.Update(TitleOf(step) + "..."); };
  calls.progress = [&console](const std::string& line) {
    console.Update(line.substr(0, console.columns() - 1));
  };
  calls.end = [&console](const app::DemoStep& step, const absl::Status& status) {
    console.Say(absl::StrFormat("%s %6s  %s", TitleOf(step), DurationText(step.seconds),
                                status.ok() ? step.outcome : "failed"));
  };
  return calls;
}

std::string NextSteps(const app::DemoResult& demo) {
  if (!demo.kept) {
    return "\nNothing was kept. To keep data, model and checkpoint for further steps:\n"
           "  cistern demo --dir demo\n"
           "A real data set: examples/frappe and examples/criteo.\n";
  }
  const auto path = [&](const char* name) { return absl::StrCat(demo.dir, "/", name); };
  return absl::StrCat(
      "\n", demo.dir, " now holds deepfm.json (the model), data/, run/ (metrics.jsonl, model/), ",
      "saved/ (the servers' files), logs/.\nWhat to do next:\n", "  cistern data inspect ",
      path("data/test/file_list.txt"), "\n", "  ", demo.programs, "/cistern eval ",
      path("deepfm.json"), " --model ", path("run"), "\n", "  ", demo.programs, "/cistern train ",
      path("deepfm.json"), " --out ", path("run2"), " --set solver.num_epochs=5\n",
      "A real data set: examples/frappe and examples/criteo.\n");
}

absl::StatusOr<Report> RunDemo(const app::DemoOptions& options, Console& console) {
  // Its servers are on loopback, in plain text, whatever fleet this shell is set up for.
  for (const char* name : {"CISTERN_TLS_CA", "CISTERN_TLS_CERT", "CISTERN_TLS_KEY"}) {
    unsetenv(name);
  }
  CISTERN_ASSIGN_OR_RETURN(const app::DemoResult demo, app::RunDemo(options, CallsOn(console)));
  return Report{
      app::JsonOf(demo),
      absl::StrFormat("AUC %.4f of %.4f possible; after save and load onto another number of "
                      "servers every prediction is the same, bit for bit.\n%s",
                      demo.auc, demo.best_auc, NextSteps(demo)),
      absl::OkStatus()};
}

}  // namespace

void AddDemoCommand(Command& root) {
  auto flags = std::make_shared<app::DemoOptions>();
  Command& command = root.Add(
      "demo",
      "Trains, saves and reloads a small model with real servers, and compares the results.",
      "cistern demo --dir demo");
  command.Flag(
      "--dir", &flags->dir,
      {"DIR", "New folder for data, model and logs, which is kept; by default a temporary one.",
       "--dir demo"});
  command.Flag("--samples", &flags->samples,
               {"INT", "Number of training samples, 4,000 or more; a quarter as many for testing.",
                "--samples 200000", !kRequired, kMaxSamples});
  command.Switch("--keep", &flags->keep,
                 {"", "Keeps the temporary folder and prints its name.", "--keep"});
  command.Does([flags](Console& console) { return RunDemo(*flags, console); });
}

}  // namespace cistern::cli
