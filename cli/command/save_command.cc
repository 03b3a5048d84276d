#include <memory>
#include <optional>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "app/fleet/held_model.h"
#include "cli/command/ckpt_commands.h"
#include "cli/command/save_load_commands.h"
#include "cli/command/shared_flags.h"
#include "cli/terminal/activity.h"
#include "cli/terminal/exit_code.h"
#include "common/base/check.h"
#include "common/saved_model/model_folder.h"
#include "worker/client/after_save.h"
#include "worker/train/jobs.h"

namespace cistern {
namespace {

absl::Status WithSaveFix(const absl::Status& status, const SaveFlags& flags) {
  if (status.code() == absl::StatusCode::kAlreadyExists) {
    return WithFix(status, "choose another --name");
  }
  if (status.code() == absl::StatusCode::kResourceExhausted) {
    return WithFix(status,
                   "free space under the server's data_dir and save under another --name; "
                   "the servers' state is unchanged");
  }
  return app::WithFleetFix(status, flags.fleet);
}

v1::SaveRequest SaveRequestOf(const SaveFlags& flags) {
  v1::SaveRequest request;
  request.set_name(flags.name);
  v1::SaveMode mode = v1::ALL;
  v1::SaveFormat::Kind kind = v1::SaveFormat::TEXT;
  // Cannot fail: these are Choice flags.
  CISTERN_CHECK(v1::SaveMode_Parse(absl::AsciiStrToUpper(flags.mode), &mode));
  CISTERN_CHECK(v1::SaveFormat::Kind_Parse(absl::AsciiStrToUpper(flags.rows), &kind));
  request.set_mode(mode);
  request.set_day(static_cast<uint32_t>(flags.day));
  request.mutable_format()->set_kind(kind);
  request.mutable_format()->set_gzip(flags.gzip);
  request.mutable_format()->set_six_digits(flags.six_digits);
  return request;
}

absl::Status CheckSaveFlags(const SaveFlags& flags) {
  if (flags.name.empty() == flags.to.empty()) {
    return WithFix(absl::InvalidArgumentError("save requires exactly one of --name and --to"),
                   "name a new folder: --name monday");
  }
  CISTERN_RETURN_IF_ERROR(app::CheckDay(flags.day));
  if (!flags.six_digits || flags.rows == "text") return absl::OkStatus();
  return WithFix(absl::InvalidArgumentError("--six-digits requires --format text"),
                 "leave one of them out: a binary save holds every bit");
}

// The passes that the servers have saved: one, unless a training run commits at the same time.
std::set<uint64_t> PassesOf(const std::vector<v1::SaveReply>& replies) {
  std::set<uint64_t> passes;
  for (const v1::SaveReply& reply : replies) passes.insert(reply.pass());
  return passes;
}

// Makes every server save the same committed pass. While a training run commits, some servers may
// still be one pass behind the others; then all save again.
absl::Status SaveOnePass(ParameterClient& client, const v1::SaveRequest& save, Console* console,
                         std::vector<v1::SaveReply>* replies) {
  constexpr int kAttempts = 20;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Activity activity(console, "saving", "servers", replies->size());
    CISTERN_RETURN_IF_ERROR(
        client.ForEachServer([&](size_t rank, ControlPlane& server) -> absl::Status {
          v1::SaveRequest request = save;
          *request.mutable_identity() = client.identity();
          v1::SaveReply& reply = (*replies)[rank];
          if (attempt > 0) {
            request.set_instead_of_pass(reply.pass());
            request.set_ticket(reply.ticket());
          }
          reply.Clear();
          CISTERN_RETURN_IF_ERROR(server.Save(request, &reply));
          activity.Done();
          return absl::OkStatus();
        }));
    if (PassesOf(*replies).size() == 1) return absl::OkStatus();
  }
  return WithFix(absl::AbortedError(absl::StrCat(
                     "the servers have saved passes ", absl::StrJoin(PassesOf(*replies), " and "),
                     " in each of ", kAttempts,
                     " attempts: a training run commits faster than they save; the files in '",
                     save.name(), "' are not a state of the fleet")),
                 "save under another --name while no training runs, or make its passes longer");
}

// Saves what changed since an earlier commit, from the servers' row files, if this machine sees
// them.
absl::StatusOr<Report> SaveSince(const SaveFlags& flags, Console* console) {
  if (flags.to.empty() || !flags.name.empty() || flags.mode != "all" || flags.six_digits) {
    return WithFix(
        absl::InvalidArgumentError("--since requires --to, and no --name, --mode or --six-digits"),
        "cistern save --servers ... --since COMMIT --to DIR");
  }
  app::SaveChangesOptions options;
  options.since = flags.since;
  options.out = flags.to;
  {
    LocalFileSystem files;
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<app::FleetSession> fleet,
                             app::FleetSession::Open(flags.fleet));
    const std::optional<RowsPlace> place = app::LocalCommitOf(files, fleet->client());
    if (!place.has_value()) {
      return WithFix(
          absl::FailedPreconditionError(
              "--since reads the row files of commits, and this machine does not see those of the "
              "servers, or they keep none"),
          "run it where their --data_dir is (cistern ckpt changes DATA_DIR needs no server), and "
          "train with --durability commit");
    }
    options.state = absl::StrCat(place->path, "@", place->commit);
  }
  const absl::StatusOr<Report> saved = RunSaveChanges(options, {flags.rows, flags.gzip}, console);
  if (absl::IsAlreadyExists(saved.status())) return WithOptions(saved.status(), {"to"});
  return saved;
}

absl::Status CheckSaveHere(FileSystem& files, const SaveFlags& flags) {
  if (flags.mode != "all" || flags.rows != "text" || flags.gzip || flags.six_digits) {
    return WithFix(absl::InvalidArgumentError(
                       "--mode, --format, --gzip and --six-digits work only for saves below the "
                       "servers' data_dir"),
                   "leave them out, or name a folder below the servers' data_dir: --to monday");
  }
  CISTERN_ASSIGN_OR_RETURN(const bool exists, files.Exists(flags.to));
  if (!exists) return absl::OkStatus();
  return WithFix(absl::AlreadyExistsError(absl::StrCat(flags.to, " already exists")),
                 "choose another --to");
}

// Copies all rows over the network to a folder of this machine.
absl::StatusOr<Report> SaveHere(const SaveFlags& flags) {
  LocalFileSystem files;
  CISTERN_RETURN_IF_ERROR(CheckSaveHere(files, flags));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<app::FleetSession> fleet,
                           app::FleetSession::Open(flags.fleet));
  ParameterClient& client = fleet->client();
  const absl::Time start = absl::Now();
  // A commit between two reads would mix two states: no other writer may commit meanwhile.
  CISTERN_RETURN_IF_ERROR(app::WithFleetFix(client.ClaimTerm(), flags.fleet));
  CISTERN_RETURN_IF_ERROR(
      app::WithFleetFix(SaveModel(files, client, flags.to, CommitPlace::kInside), flags.fleet));
  CISTERN_ASSIGN_OR_RETURN(const std::vector<ModelPart> parts, ReadParts(files, flags.to));
  uint64_t rows = 0, bytes = 0;
  for (const ModelFile& file : parts[0].files) {
    rows += file.rows;
    bytes += file.bytes;
  }
  Report report;
  report.json["path"] = flags.to;
  report.json["mode"] = flags.mode;
  report.json["committed_pass"] = parts[0].pass;
  report.json["files"] = parts[0].files.size();
  report.text = absl::StrCat(flags.to, "\n");
  AppendTotals("saved", rows, bytes, absl::ToDoubleSeconds(absl::Now() - start), &report);
  return report;
}

}  // namespace

absl::StatusOr<Report> RunSave(const SaveFlags& given, Console* console) {
  if (!given.since.empty()) return SaveSince(given, console);
  CISTERN_RETURN_IF_ERROR(CheckSaveFlags(given));
  if (absl::StrContains(given.to, '/')) return SaveHere(given);
  SaveFlags flags = given;
  if (flags.name.empty()) flags.name = flags.to;
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<app::FleetSession> fleet,
                           app::FleetSession::Open(flags.fleet));
  ParameterClient& client = fleet->client();
  const v1::SaveRequest save = SaveRequestOf(flags);
  // No other writer may commit between the save and the reset of the saved rows.
  if (save.mode() != v1::ALL) CISTERN_RETURN_IF_ERROR(client.ClaimTerm());
  const absl::Time start = absl::Now();
  std::vector<v1::SaveReply> replies(client.servers().size());
  const absl::Status saved = SaveOnePass(client, save, console, &replies);
  if (!saved.ok()) return WithSaveFix(saved, flags);
  if (save.mode() != v1::ALL) {
    const absl::Status updated =
        AddContext(UpdateAfterSave(client, save.mode(), save.day()),
                   absl::StrCat("the files of '", save.name(),
                                "' are saved, but the statistics of their rows were not reset"));
    CISTERN_RETURN_IF_ERROR(app::WithFleetFix(updated, flags.fleet));
  }
  Report report;
  report.json["name"] = flags.name;
  report.json["mode"] = flags.mode;
  report.json["committed_pass"] = replies[0].pass();
  uint64_t rows = 0, bytes = 0;
  for (size_t rank = 0; rank < replies.size(); ++rank) {
    rows += replies[rank].rows();
    bytes += replies[rank].bytes();
    report.json["servers"].push_back({{"address", client.servers()[rank].name},
                                      {"path", replies[rank].path()},
                                      {"rows", replies[rank].rows()},
                                      {"bytes", replies[rank].bytes()},
                                      {"files", replies[rank].files_size()}});
    absl::StrAppend(&report.text, client.servers()[rank].name, "  ", replies[rank].rows(),
                    " rows  ", replies[rank].path(), "\n");
  }
  AppendTotals("saved", rows, bytes, absl::ToDoubleSeconds(absl::Now() - start), &report);
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

}  // namespace cistern
