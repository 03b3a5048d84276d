// cistern ckpt reshard: the command for server/checkpoint/reshard.h.
#include <filesystem>
#include <memory>

#include "app/state/saved_place.h"
#include "cli/command/ckpt_commands.h"
#include "cli/terminal/activity.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/progress.h"
#include "server/checkpoint/reshard.h"

namespace cistern {
namespace {

absl::StatusOr<ShardMap> NewMap(const v1::Manifest& manifest, const CkptReshardFlags& flags) {
  const uint64_t servers = flags.server_num == 0 ? manifest.server_num() : flags.server_num;
  const uint64_t shards = flags.shard_num == 0 ? manifest.shard_num() : flags.shard_num;
  if (servers > UINT32_MAX || shards > UINT32_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat(servers, " servers and ", shards, " shards: too many"));
  }
  return ShardMap::Create(static_cast<uint32_t>(shards), static_cast<uint32_t>(servers));
}

absl::Status WithReshardFix(const absl::Status& status) {
  if (absl::IsAlreadyExists(status)) {
    return WithFix(status, "an existing state is never replaced: name another --out");
  }
  if (absl::IsFailedPrecondition(status)) {
    return WithFix(status, "name an --out that no server uses");
  }
  if (absl::IsResourceExhausted(status)) {
    return WithFix(status, "free space there and repeat this command; the old state is unchanged");
  }
  if (absl::IsDataLoss(status)) {
    return WithFix(
        WithKind(status, ErrorKind::kBadCheckpoint),
        "find the corrupt files: cistern verify. Running servers remove old files as they "
        "commit: stop them first");
  }
  return status;
}

// The folders need not exist yet.
bool IsSameFolder(const std::string& a, const std::string& b) {
  std::error_code error;
  return std::filesystem::weakly_canonical(a, error) == std::filesystem::weakly_canonical(b, error);
}

}  // namespace

absl::StatusOr<Report> RunCkptReshard(const CkptReshardFlags& flags, Console* console) {
  LocalFileSystem files;
  const absl::StatusOr<std::unique_ptr<StateFolder>> state = app::FindState(files, flags.state);
  if (absl::IsNotFound(state.status())) {
    return WithFix(MissingIsUsage(state.status()),
                   "name the --data_dir of the servers, or the folder state in it");
  }
  CISTERN_RETURN_IF_ERROR(state.status());
  const std::string to = StateFolderOf(flags.out);
  if (IsSameFolder((*state)->path(), to)) {
    return WithReshardFix(absl::AlreadyExistsError(absl::StrCat(to, " is the state to rewrite")));
  }
  CISTERN_ASSIGN_OR_RETURN(const ParsedManifest commit, app::ReadCommit(**state, flags.commit));
  CISTERN_ASSIGN_OR_RETURN(const ShardMap map, NewMap(commit.manifest, flags));
  v1::Schema schema = commit.manifest.schema();
  CISTERN_RETURN_IF_ERROR(ChangeThresholds(flags.set, &schema));
  ThreadPool pool(app::ThreadsOf(flags.threads));
  absl::StatusOr<ReshardTotals> totals;
  {
    Activity activity(console, "rewriting", "servers", map.server_num());
    totals = Reshard(
        **state, commit, to, map, pool, [&] { activity.Done(); }, &schema);
  }
  if (!totals.ok()) return WithReshardFix(totals.status());
  Report report;
  report.json = {{"path", to},
                 {"commit", totals->commit},
                 {"pass", commit.manifest.pass()},
                 {"server_num", map.server_num()},
                 {"shard_num", map.shard_num()},
                 {"rows", totals->rows},
                 {"files", totals->files},
                 {"bytes", totals->bytes},
                 {"was_there", totals->was_there}};
  report.text = absl::StrCat(
      to, totals->was_there ? " already holds this: " : ": ", "commit ", totals->commit, ", pass ",
      commit.manifest.pass(), ", ", totals->rows, " rows in ", totals->files,
      totals->files == 1 ? " file, " : " files, ", BytesText(totals->bytes), ", for ",
      map.server_num(), " servers and ", map.shard_num(), " shards; digests match\n");
  return report;
}

void AddCkptReshardCommand(Command& ckpt) {
  auto flags = std::make_shared<CkptReshardFlags>();
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
  command.Does([flags](Console& console) { return RunCkptReshard(*flags, &console); });
}

}  // namespace cistern
