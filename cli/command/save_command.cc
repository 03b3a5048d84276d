#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "app/admin/save_fleet.h"
#include "cli/command/ckpt_commands.h"
#include "cli/command/job_console.h"
#include "cli/command/save_load_commands.h"
#include "cli/command/shared_flags.h"
#include "common/base/check.h"

namespace cistern::cli {
namespace {

app::SaveFleetOptions SaveOptionsOf(const SaveFlags& flags) {
  app::SaveFleetOptions options;
  options.fleet = flags.fleet;
  options.name = flags.name.empty() ? flags.to : flags.name;
  options.day = flags.day;
  v1::SaveFormat::Kind kind = v1::SaveFormat::TEXT;
  // Cannot fail: these are Choice flags.
  CISTERN_CHECK(v1::SaveMode_Parse(absl::AsciiStrToUpper(flags.mode), &options.mode));
  CISTERN_CHECK(v1::SaveFormat::Kind_Parse(absl::AsciiStrToUpper(flags.rows), &kind));
  options.format.set_kind(kind);
  options.format.set_gzip(flags.gzip);
  options.format.set_six_digits(flags.six_digits);
  return options;
}

absl::Status CheckSaveFlags(const SaveFlags& flags) {
  if (flags.name.empty() == flags.to.empty()) {
    return WithFix(absl::InvalidArgumentError("save requires exactly one of --name and --to"),
                   "name a new folder: --name monday");
  }
  if (!flags.six_digits || flags.rows == "text") return absl::OkStatus();
  return WithFix(absl::InvalidArgumentError("--six-digits requires --format text"),
                 "leave one of them out: a binary save holds every bit");
}

// Saves what changed since an earlier commit, from the servers' row files.
absl::StatusOr<Report> SaveSince(const SaveFlags& flags, Console* console) {
  if (flags.to.empty() || !flags.name.empty() || flags.mode != "all" || flags.six_digits) {
    return WithFix(
        absl::InvalidArgumentError("--since requires --to, and no --name, --mode or --six-digits"),
        "cistern save --servers ... --since COMMIT --to DIR");
  }
  app::SaveChangesOptions options;
  options.since = flags.since;
  options.out = flags.to;
  CISTERN_ASSIGN_OR_RETURN(const app::FleetCommit commit, app::CommitOfFleet(flags.fleet));
  options.state = commit.state;
  options.files = commit.files.get();
  const absl::StatusOr<Report> saved = RunSaveChanges(options, {flags.rows, flags.gzip}, console);
  if (absl::IsAlreadyExists(saved.status())) return WithOptions(saved.status(), {"to"});
  return saved;
}

// Copies all rows over the network to a folder of this machine.
absl::StatusOr<Report> SaveHere(const SaveFlags& flags) {
  if (flags.mode != "all" || flags.rows != "text" || flags.gzip || flags.six_digits) {
    return WithFix(absl::InvalidArgumentError(
                       "--mode, --format, --gzip and --six-digits work only for saves below the "
                       "servers' data_dir"),
                   "leave them out, or name a folder below the servers' data_dir: --to monday");
  }
  const absl::Time start = absl::Now();
  PassId pass = 0;
  CISTERN_ASSIGN_OR_RETURN(const app::SavedPart saved,
                           app::SaveFleetHere(flags.fleet, flags.to, &pass));
  Report report;
  report.json["path"] = flags.to;
  report.json["mode"] = flags.mode;
  report.json["committed_pass"] = pass;
  report.json["files"] = saved.files;
  report.text = absl::StrCat(flags.to, "\n");
  AppendTotals("saved", saved.rows, saved.bytes, absl::ToDoubleSeconds(absl::Now() - start),
               &report);
  return report;
}

}  // namespace

absl::StatusOr<Report> RunSave(const SaveFlags& flags, Console* console) {
  if (!flags.since.empty()) return SaveSince(flags, console);
  CISTERN_RETURN_IF_ERROR(CheckSaveFlags(flags));
  if (absl::StrContains(flags.to, '/')) return SaveHere(flags);
  const app::SaveFleetOptions options = SaveOptionsOf(flags);
  const absl::Time start = absl::Now();
  CISTERN_ASSIGN_OR_RETURN(const app::SavedFleet saved,
                           app::SaveFleet(options, JobConsole(console).calls()));
  Report report;
  report.json["name"] = options.name;
  report.json["mode"] = flags.mode;
  report.json["committed_pass"] = saved.pass;
  for (const app::SavedPart& part : saved.parts) {
    report.json["servers"].push_back({{"address", part.server},
                                      {"path", part.path},
                                      {"rows", part.rows},
                                      {"bytes", part.bytes},
                                      {"files", part.files}});
    absl::StrAppend(&report.text, part.server, "  ", part.rows, " rows  ", part.path, "\n");
  }
  AppendTotals("saved", saved.rows(), saved.bytes(), absl::ToDoubleSeconds(absl::Now() - start),
               &report);
  return report;
}

void AddSaveCommand(Command& root) {
  auto flags = std::make_shared<SaveFlags>();
  Command& command =
      root.Add("save", "Saves the committed state of a fleet; each server writes its own files.",
               "cistern save --servers 127.0.0.1:7700,127.0.0.1:7701 --name monday");
  AddFleetFlags(command, &flags->fleet, false);
  AddTakeOverFlag(command, &flags->fleet);
  command.Flag("--name", &flags->name,
               {"NAME", "Folder below each server's data_dir; must be new.", "--name monday"});
  command.Flag("--to", &flags->to,
               {"NAME|DIR",
                "Same as --name; with a slash in it, a folder on this machine or in an object "
                "store, to which all rows are copied.",
                "--to s3://models/monday"});
  command.List("--since", &flags->since, true,
               {"COMMIT|DIR,...",
                "With --to: saves only the rows that changed and the keys that went since that "
                "commit; or since the folder of a save, followed by its increments in order.",
                "--since 12"});
  command.Choice("--mode", &flags->mode,
                 {"all|delta|base|batch",
                  "Rows to save. all: every row; base: ctr rows by their score; delta: of these, "
                  "the changed ones; batch: every row, at the end of a day.",
                  "--mode delta"});
  command.Choice("--format", &flags->rows, {"text|binary", "Format of a row.", "--format binary"});
  command.Switch("--gzip", &flags->gzip, {"", "Compresses the files.", "--gzip"});
  command.Switch("--six-digits", &flags->six_digits,
                 {"", "With --format text: writes 6 significant digits, as PSLib does. Lossy.",
                  "--six-digits"});
  AddDayFlag(command, &flags->day);
  command.Does([flags](Console& console) { return RunSave(*flags, &console); });
}

}  // namespace cistern::cli
