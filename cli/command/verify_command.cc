// cistern verify: checks every byte of commits or of a saved model; and the requests of a log.
#include "app/verify/verify.h"

#include <memory>

#include "absl/strings/str_join.h"
#include "app/verify/verify_online.h"
#include "cli/command/ckpt_commands.h"
#include "cli/command/job_console.h"
#include "cli/terminal/aligned_text.h"
#include "common/base/hash_text.h"

namespace cistern::cli {
namespace {

void AddRows(const std::vector<std::string>& place, const std::vector<app::VerifiedTable>& tables,
             const std::string& state, std::vector<std::vector<std::string>>* rows) {
  for (const app::VerifiedTable& table : tables) {
    rows->push_back(place);
    for (const std::string& cell :
         {table.name, absl::StrCat(table.rows), HashText(table.digest), state}) {
      rows->back().push_back(cell);
    }
  }
}

std::string TextOf(const app::VerifyResult& result) {
  std::vector<std::vector<std::string>> rows = {{"PASS", "TABLE", "ROWS", "DIGEST", "STATE"}};
  if (result.is_state) rows[0].insert(rows[0].begin(), "COMMIT");
  for (const app::VerifiedCommit& commit : result.commits) {
    AddRows(
        {absl::StrCat(commit.commit), absl::StrCat(commit.pass)}, commit.tables,
        absl::StrCat(commit.good ? "good" : "corrupt",
                     commit.server ? absl::StrCat(" (server ", *commit.server, "'s files)") : ""),
        &rows);
  }
  for (const app::VerifiedModel& model : result.models) {
    AddRows({absl::StrCat(model.pass)}, model.tables, "good", &rows);
  }
  std::string text = rows.size() > 1 ? AlignedText(rows) : "";
  for (const absl::Status& fault : result.faults) {
    absl::StrAppend(&text, "fault  ", fault.message(), "\n");
  }
  return text;
}

std::string TextOf(const app::VerifyOnlineResult& result, const std::string& state) {
  std::string text;
  if (!result.missing.empty()) {
    absl::StrAppend(&text, "not checked: ", state, " has no commit ",
                    absl::StrJoin(result.missing, ", "), " (servers keep --keep_commits)\n");
  }
  if (!result.without_commit.empty()) {
    absl::StrAppend(&text, "not checked: version ", absl::StrJoin(result.without_commit, ", "),
                    " was exported with --model, from a saved model, which names no commit; export "
                    "with --state or --servers\n");
  }
  absl::StrAppend(&text, result.requests, " requests, ", result.samples, " samples of ",
                  result.commits.size(), " commits computed again: ",
                  result.differences == 0 ? "every prediction is the same, bit for bit"
                                          : absl::StrCat(result.differences, " differ"),
                  "\n");
  return text;
}

void AddVerifyOnline(Command& verify) {
  auto options = std::make_shared<app::VerifyOnlineOptions>();
  Command& command =
      verify.Add("online", "Computes the requests that cistern serve has logged again.",
                 "cistern verify online requests.jsonl --state fleet/data --serving serving");
  command.Argument(
      "LOG", &options->log,
      {"FILE", "The log of cistern serve --log-requests.", "requests.jsonl", kRequired});
  command.Flag("--state", &options->state,
               {"DIR", "The data_dir of servers, or the --out folder of a training run.",
                "--state fleet/data", kRequired});
  command.Flag("--serving", &options->serving,
               {"DIR",
                "The folder that was served: its model file and precision; by default the one that "
                "the log names.",
                "--serving serving"});
  command.Flag("--threads", &options->threads, ThreadsText("Number of threads that read"));
  command.Does([options](Console& console) -> absl::StatusOr<Report> {
    CISTERN_ASSIGN_OR_RETURN(const app::VerifyOnlineResult result,
                             app::VerifyOnline(*options, JobConsole(console).calls()));
    return Report{app::JsonOf(result), TextOf(result, options->state), result.outcome()};
  });
}

}  // namespace

void AddVerifyCommand(Command& root) {
  auto options = std::make_shared<app::VerifyOptions>();
  Command& command = root.Add("verify", "Checks every byte of commits or of a saved model.",
                              "cistern verify saved");
  command.Argument("PATH", &options->path,
                   {"DIR",
                    "A data_dir of servers or the state folder in it; or the folder of a saved "
                    "model.",
                    "saved"});
  command.Flag("--commit", &options->commit,
               {"INT", "The commit of a state to check; 0: the newest.", "--commit 12"});
  command.Switch("--all", &options->all, {"", "Checks every commit of a state.", "--all"});
  command.Flag("--threads", &options->threads, ThreadsText("Number of threads"));
  command.Footer(
      "Needs no server. Checks of a commit its manifest, every block of its files, and the\n"
      "digest of each shard and table, recomputed from the rows; of a saved model its json\n"
      "files, every row, and the hash of each file, with an eighth of the rows in memory at a\n"
      "time. Exit code 5 if anything is corrupt; the report names the files, blocks or lines.");
  command.Does([options](Console& console) -> absl::StatusOr<Report> {
    CISTERN_ASSIGN_OR_RETURN(const app::VerifyResult result,
                             app::Verify(*options, JobConsole(console).calls()));
    return Report{app::JsonOf(result), TextOf(result), result.outcome()};
  });
  AddVerifyOnline(command);
}

}  // namespace cistern::cli
