// cistern ckpt push, pull and adopt-manifest: copies of the commits of servers, made and used.
#include <memory>

#include "absl/strings/numbers.h"
#include "app/state/adopt_manifest.h"
#include "app/state/pull_state.h"
#include "app/state/push_state.h"
#include "cli/command/ckpt_commands.h"
#include "cli/command/job_console.h"
#include "cli/terminal/interrupt.h"
#include "common/base/amount_text.h"

namespace cistern::cli {
namespace {

std::string CopiedText(uint64_t files, uint64_t bytes) {
  return absl::StrCat(files, files == 1 ? " file, " : " files, ", BytesText(bytes));
}

std::string PushedText(const app::PushedState& pushed, const std::string& to) {
  return absl::StrCat(to, ": ", CopiedText(pushed.files, pushed.bytes), " copied up to commit ",
                      pushed.commit, "; ",
                      pushed.whole_commit >= pushed.commit
                          ? std::string("it is whole")
                          : absl::StrCat("the newest that is whole is ", pushed.whole_commit,
                                         ", because files of other servers are still missing"));
}

absl::StatusOr<Report> RunPush(const app::PushStateOptions& options, Console& console) {
  JobConsole shown(console);
  app::JobCalls calls = shown.calls();
  calls.stop = CatchInterrupts();
  app::PushedState last;
  CISTERN_ASSIGN_OR_RETURN(const app::PushedState pushed,
                           app::PushState(options, calls, [&](const app::PushedState& now) {
                             const app::PushedState step = {now.commit, now.whole_commit,
                                                            now.files - last.files,
                                                            now.bytes - last.bytes};
                             calls.Note(PushedText(step, options.to));
                             last = now;
                           }));
  Report report;
  report.json = {{"to", options.to},
                 {"commit", pushed.commit},
                 {"whole_commit", pushed.whole_commit},
                 {"files", pushed.files},
                 {"bytes", pushed.bytes}};
  report.text = PushedText(pushed, options.to) + "\n";
  if (pushed.commit == 0 && !options.follow) {
    return WithFix(absl::InvalidArgumentError(absl::StrCat(options.state, " has no commit yet")),
                   "push after the first commit, or add --follow: then it is awaited");
  }
  return report;
}

Report ReportOf(const app::PulledState& pulled, const std::string& to) {
  Report report;
  report.json = {{"to", to},
                 {"commit", pulled.commit},
                 {"pass", pulled.pass},
                 {"files", pulled.files},
                 {"bytes", pulled.bytes}};
  if (!pulled.moved.empty()) report.json["moved"] = pulled.moved;
  report.text =
      absl::StrCat(to, ": commit ", pulled.commit, ", pass ", pulled.pass, ", ",
                   CopiedText(pulled.files, pulled.bytes), ", verified",
                   pulled.moved.empty() ? "" : "; the old state is " + pulled.moved, "\n");
  return report;
}

// server: a rank; empty: the files of all servers.
absl::StatusOr<Report> RunPull(app::PullStateOptions options, const std::string& server,
                               Console& console) {
  uint64_t rank = 0;
  if (!server.empty()) {
    if (!absl::SimpleAtoi(server, &rank)) {
      return absl::InvalidArgumentError(absl::StrCat("--server: '", server, "' is no rank"));
    }
    options.server = rank;
  }
  JobConsole shown(console);
  app::JobCalls calls = shown.calls();
  calls.stop = CatchInterrupts();
  CISTERN_ASSIGN_OR_RETURN(const app::PulledState pulled, app::PullState(options, calls));
  return ReportOf(pulled, options.to);
}

}  // namespace

void AddCkptPushCommand(Command& ckpt) {
  auto options = std::make_shared<app::PushStateOptions>();
  Command& command = ckpt.Add("push", "Copies the newest commit of servers to another place.",
                              "cistern ckpt push fleet/data --to s3://backup/fleet");
  command.Argument("STATE", &options->state,
                   {"DIR", "The data_dir of a server, running or not.", "fleet/data", kRequired});
  command.Flag("--to", &options->to,
               {"PLACE",
                "The copy: a folder, or a place below s3://, gs:// or hdfs://; the same for all "
                "servers of a fleet.",
                "--to s3://backup/fleet", kRequired});
  command.Flag("--keep", &options->keep,
               {"INT", "Number of newest commits to keep in the copy.", "--keep 10"});
  command.Switch("--follow", &options->follow,
                 {"", "Copies every later commit too, until Ctrl-C.", "--follow"});
  command.Flag("--poll-ms", &options->poll_ms,
               {"MS", "With --follow: how often to look for a new commit.", "--poll-ms 1000"});
  command.Footer(
      "Files are verified before they are copied, and the manifest comes last, so the copy holds\n"
      "whole commits. If servers keep local states, push each to the same copy: the one whose\n"
      "files come last adds the manifest. The copy is a data_dir itself: cistern ckpt ls, verify\n"
      "and diff read it, and cistern ckpt pull restores from it.");
  command.Does([options](Console& console) { return RunPush(*options, console); });
}

void AddCkptPullCommand(Command& ckpt) {
  auto options = std::make_shared<app::PullStateOptions>();
  auto server = std::make_shared<std::string>();
  Command& command = ckpt.Add("pull", "Restores the state of a server from a copy.",
                              "cistern ckpt pull s3://backup/fleet --to /data --server 1");
  command.Argument("COPY", &options->from,
                   {"PLACE", "What cistern ckpt push has made, or the data_dir of stopped servers.",
                    "s3://backup/fleet", kRequired});
  command.Flag("--to", &options->to,
               {"DIR", "The data_dir of the stopped server.", "--to /data", kRequired});
  command.Flag("--server", server.get(),
               {"RANK",
                "Local states: the server whose folder it is; only its files are copied. By "
                "default the files of all.",
                "--server 1"});
  command.Flag(
      "--server-num", &options->server_num,
      {"INT", "Number of servers that the fleet will have; 0: as the commit's.", "--server-num 4"});
  command.Flag("--commit", &options->commit,
               {"INT", "The commit to restore; 0: the newest of the copy.", "--commit 12"});
  command.Flag("--manifest", &options->manifest,
               {"FILE|DIR",
                "A manifest that is newer than the copy's: that of another server's data_dir. The "
                "copy must have its files.",
                "--manifest /mnt/server-1"});
  command.Switch("--replace", &options->replace,
                 {"", "Moves a state that has commits aside, to state.replaced-N.", "--replace"});
  command.Footer(
      "Every file is verified. The state appears under its name once it is complete: after an\n"
      "interruption, repeat the command. All servers of a fleet must be at one commit: if the "
      "copy\n"
      "is older than the states of the other servers, pull it for each of them, with --replace.");
  command.Does([options, server](Console& console) { return RunPull(*options, *server, console); });
}

void AddCkptAdoptManifestCommand(Command& ckpt) {
  auto options = std::make_shared<app::AdoptManifestOptions>();
  Command& command =
      ckpt.Add("adopt-manifest", "Gives a server the newest manifest of another one.",
               "cistern ckpt adopt-manifest /mnt/server-1 --to /data");
  command.Argument("FROM", &options->from,
                   {"FILE|DIR", "The data_dir of the server that has it, or the manifest file.",
                    "/mnt/server-1", kRequired});
  command.Flag(
      "--to", &options->to,
      {"DIR", "The data_dir of the stopped server that lacks it.", "--to /data", kRequired});
  command.Flag("--server", &options->server, {"RANK", "The rank of that server.", "--server 0"});
  command.Footer(
      "For local states: server 0 was restored from a disk or a copy that lacks its last\n"
      "manifests, and other servers have a newer one. Its own row files of that commit must be\n"
      "there. Make sure that the lost server 0 is not running elsewhere. Older writers are "
      "fenced.");
  command.Does([options](Console&) -> absl::StatusOr<Report> {
    CISTERN_ASSIGN_OR_RETURN(const app::PulledState adopted, app::AdoptManifest(*options));
    return ReportOf(adopted, options->to);
  });
}

}  // namespace cistern::cli
