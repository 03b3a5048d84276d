// cistern ckpt reshard: the command for app/state/reshard_state.h.
#include "app/state/reshard_state.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "cli/command/ckpt_commands.h"
#include "cli/command/job_console.h"
#include "common/base/amount_text.h"

namespace cistern::cli {

absl::StatusOr<Report> RunCkptReshard(const app::ReshardOptions& options, Console& console) {
  absl::StatusOr<app::ReshardResult> result;
  {
    JobConsole shown(console);
    result = app::ReshardState(options, shown.calls());
  }
  if (!result.ok()) return result.status();
  Report report;
  report.json = app::JsonOf(*result);
  report.text = absl::StrCat(
      result->path, result->was_there ? " already holds this: " : ": ", "commit ", result->commit,
      ", pass ", result->pass, ", ", result->rows, " rows in ", result->files,
      result->files == 1 ? " file, " : " files, ", BytesText(result->bytes), ", for ",
      result->server_num, " servers and ", result->shard_num, " shards; digests match\n");
  return report;
}

void AddCkptReshardCommand(Command& ckpt) {
  auto flags = std::make_shared<app::ReshardOptions>();
  Command& command =
      ckpt.Add("reshard", "Rewrites a commit into a new data_dir with another number of shards.",
               "cistern ckpt reshard saved --out saved48 --shard-num 48");
  command.Argument(
      "STATE", &flags->state,
      {"DIR", "A data_dir of stopped servers, or the state folder in it.", "saved", kRequired});
  command.Flag("--out", &flags->out,
               {"DIR", "The new data_dir; its state folder must hold no commit.", "--out saved48",
                kRequired});
  command.Flag(
      "--server-num", &flags->server_num,
      {"INT", "Number of servers to write for; 0: unchanged. Any number can start from the result.",
       "--server-num 3"});
  command.Flag("--shard-num", &flags->shard_num,
               {"INT", "Number of shards of every table; 0: unchanged.", "--shard-num 48"});
  command.Flag("--commit", &flags->commit,
               {"INT", "The commit to rewrite; 0: the newest.", "--commit 12"});
  command.Flag("--threads", &flags->threads, ThreadsText("Number of threads"));
  command.Footer(
      "The old state is only read. The new one appears whole or not at all: after an\n"
      "interruption, repeat the command. Memory holds the rows of one new server at a time. If\n"
      "shard_num changes, all rows are read once for each new server; not so if only server_num\n"
      "changes, which is optional: any number of servers can start from one state, because they\n"
      "read each other's files.");
  command.Does([flags](Console& console) { return RunCkptReshard(*flags, console); });
}

}  // namespace cistern::cli
