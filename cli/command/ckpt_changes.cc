// cistern ckpt changes and apply: what a model has changed, as an increment, and a saved model with
// increments.
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/time/clock.h"
#include "app/state/apply_changes.h"
#include "app/state/save_changes.h"
#include "cli/command/ckpt_commands.h"
#include "cli/command/job_console.h"
#include "cli/command/save_load_commands.h"
#include "cli/terminal/exit_code.h"
#include "common/base/check.h"

namespace cistern::cli {
void AddIncrementFormatFlags(Command& command, IncrementFlags* flags) {
  command.Choice("--format", &flags->rows, {"text|binary", "Format of a row.", "--format binary"});
  command.Switch("--gzip", &flags->gzip, {"", "Compresses the files.", "--gzip"});
}

absl::StatusOr<Report> RunSaveChanges(app::SaveChangesOptions options, const IncrementFlags& flags,
                                      Console* console) {
  v1::SaveFormat::Kind kind = v1::SaveFormat::TEXT;
  // Cannot fail: it is a Choice flag.
  CISTERN_CHECK(v1::SaveFormat::Kind_Parse(absl::AsciiStrToUpper(flags.rows), &kind));
  options.format.set_kind(kind);
  options.format.set_gzip(flags.gzip);
  const absl::Time start = absl::Now();
  CISTERN_ASSIGN_OR_RETURN(const app::SavedChanges saved,
                           app::SaveChanges(options, JobConsole(console).calls()));
  Report report;
  report.json = app::JsonOf(saved);
  report.json["path"] = options.out;
  report.text =
      absl::StrCat(options.out, ": ", StateText(saved.increment.from()), " to ",
                   StateText(saved.increment.to()), ", ", saved.removed, " rows removed\n");
  AppendTotals("saved", saved.rows, saved.bytes, absl::ToDoubleSeconds(absl::Now() - start),
               &report);
  return report;
}

void AddCkptChangesCommand(Command& ckpt) {
  auto options = std::make_shared<app::SaveChangesOptions>();
  auto flags = std::make_shared<IncrementFlags>();
  Command& command = ckpt.Add("changes", "Saves what a model has changed since an earlier state.",
                              "cistern ckpt changes saved --since 12 --out changes13");
  command.Argument("STATE", &options->state,
                   {"STATE[@COMMIT]|DIR",
                    "The new state: a data_dir or state folder, with a commit (default: the "
                    "newest); or the folder of a saved model.",
                    "saved", kRequired});
  command.List("--since", &options->since, true,
               {"COMMIT|DIR,...",
                "The earlier state: a commit of STATE; or the folder of a saved model, followed by "
                "its increments in order; or the last increment alone.",
                "--since 12", kRequired});
  command.Flag("--out", &options->out, {"DIR", "A new folder.", "--out changes13", kRequired});
  AddIncrementFormatFlags(command, flags.get());
  command.Footer(
      "Reads row files alone; servers and trainings go on. If the files of the commits in between\n"
      "are gone, both states are read and compared, which needs the rows of the earlier one.");
  command.Does(
      [options, flags](Console& console) { return RunSaveChanges(*options, *flags, &console); });
}

void AddCkptApplyCommand(Command& ckpt) {
  auto options = std::make_shared<app::ApplyChangesOptions>();
  Command& command =
      ckpt.Add("apply", "Writes the saved model that a base and its increments are.",
               "cistern ckpt apply saved/monday --increments changes13,changes14 --out tuesday");
  command.Argument("BASE", &options->base,
                   {"STATE[@COMMIT]|DIR",
                    "The folder of a saved model; or a data_dir or state folder, with a commit.",
                    "saved/monday", kRequired});
  command.List("--increments", &options->increments, true,
               {"DIR,...", "Increments, the oldest first. Those that BASE has are left out.",
                "--increments changes13,changes14", kRequired});
  command.Flag("--out", &options->out,
               {"DIR", "The saved model: a new folder.", "--out tuesday", kRequired});
  command.Footer(
      "The rows are checked against the digests of the last increment. Memory holds the rows of\n"
      "the increments.");
  command.Does([options](Console& console) -> absl::StatusOr<Report> {
    const absl::Time start = absl::Now();
    CISTERN_ASSIGN_OR_RETURN(const app::AppliedChanges applied,
                             app::ApplyChanges(*options, JobConsole(console).calls()));
    Report report;
    report.json = app::JsonOf(applied);
    report.json["path"] = options->out;
    report.text = absl::StrCat(options->out, ": ", StateText(applied.state), ", ", applied.applied,
                               " of ", options->increments.size(), " increments applied\n");
    AppendTotals("saved", applied.rows, applied.bytes, absl::ToDoubleSeconds(absl::Now() - start),
                 &report);
    return report;
  });
}

}  // namespace cistern::cli
