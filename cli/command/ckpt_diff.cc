// cistern ckpt diff: compares the rows of two commits or saved models.
#include <memory>

#include "absl/strings/str_join.h"
#include "app/state/state_diff.h"
#include "cli/command/ckpt_commands.h"
#include "cli/command/job_console.h"
#include "cli/terminal/aligned_text.h"
#include "common/base/hash_text.h"

namespace cistern::cli {
namespace {

std::string KeysText(const char* kind, const std::vector<Key>& keys) {
  return keys.empty() ? "" : absl::StrCat("  ", kind, ": ", absl::StrJoin(keys, " "), "\n");
}

std::string TextOf(const app::DiffResult& result) {
  std::vector<std::vector<std::string>> rows = {
      {"TABLE", "ROWS A", "ROWS B", "ADDED", "REMOVED", "CHANGED", "DIGEST A", "DIGEST B"}};
  std::string keys;
  for (const app::DiffResult::Table& table : result.tables) {
    const auto& found = table.rows;
    std::string lines =
        absl::StrCat(KeysText("added", found.added_keys), KeysText("removed", found.removed_keys),
                     KeysText("changed", found.changed_keys));
    const bool compared = table.not_compared.empty();
    if (!compared) absl::StrAppend(&lines, "  not compared: ", table.not_compared, "\n");
    if (!lines.empty()) absl::StrAppend(&keys, table.name, "\n", lines);
    const auto count = [&](uint64_t n) { return compared ? absl::StrCat(n) : "-"; };
    rows.push_back({table.name, absl::StrCat(found.rows_a), absl::StrCat(found.rows_b),
                    count(found.added), count(found.removed), count(found.changed),
                    HashText(found.digest_a), HashText(found.digest_b)});
  }
  const std::string& schema = result.schema_difference;
  return absl::StrCat("A  ", result.a.name, ", pass ", result.a.pass, "\nB  ", result.b.name,
                      ", pass ", result.b.pass, "\n",
                      schema.empty() ? "" : absl::StrCat("schema: ", schema, "\n"),
                      AlignedText(rows), keys);
}

}  // namespace

void AddCkptDiffCommand(Command& ckpt) {
  auto options = std::make_shared<app::DiffOptions>();
  Command& command = ckpt.Add("diff", "Compares the rows of two commits or saved models.",
                              "cistern ckpt diff saved@11 saved@12");
  command.Argument(
      "A", &options->a,
      {"STATE[@COMMIT]|DIR",
       "A data_dir or state folder, with a commit (default: the newest); or the folder "
       "of a saved model.",
       "saved@11", kRequired});
  command.Argument(
      "B", &options->b,
      {"STATE[@COMMIT]|DIR", "What to compare A with; like A.", "saved/monday", kRequired});
  command.Flag("--rows", &options->rows,
               {"INT", "Number of example keys to print per kind of difference.", "--rows 20"});
  command.Flag("--threads", &options->threads, ThreadsText("Number of threads"));
  command.Footer(
      "Rows are compared bit by bit; ADDED counts the rows that only B has. Exit code 0: A and\n"
      "B are equal; 1: they differ; 5: one of them is corrupt. Memory holds a sixteenth of the\n"
      "rows of both at a time, or all rows if their shard_num differs.");
  command.Does([options](Console& console) -> absl::StatusOr<Report> {
    CISTERN_ASSIGN_OR_RETURN(const app::DiffResult result,
                             app::Diff(*options, JobConsole(console).calls()));
    // A difference is a result and needs no fix; the status only sets the exit code.
    return Report{app::JsonOf(result), TextOf(result),
                  result.same() ? absl::OkStatus() : absl::UnknownError("A and B differ")};
  });
}

}  // namespace cistern::cli
