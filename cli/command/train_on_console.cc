#include "cli/command/train_on_console.h"

#include "cli/command/publish_command.h"
#include "cli/command/shared_flags.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"

namespace cistern::cli {

absl::StatusOr<app::TrainRunResult> TrainOnConsole(
    const model::ModelConfig& config, const app::TrainRunOptions& options, Console& console,
    const std::function<bool(const Progress&)>& goes_on) {
  LiveState live;
  ProgressPrinter printer(&console, &live, SizeOf(config));
  app::TrainRunCalls calls;
  calls.note = NotesOn(console);
  calls.published = [&console](const ServingWritten& written, double seconds) {
    console.Say(PublishedText(written, seconds));
  };
  calls.interrupted = CatchInterrupts();
  calls.live = &live;
  calls.progress = [&](const Progress& progress) {
    printer.Show(progress);
    return goes_on(progress);
  };
  absl::StatusOr<app::TrainRunResult> run = app::TrainRun(config, options, calls);
  printer.Finish();
  return run;
}

}  // namespace cistern::cli
