// cistern data lookup: from text to key, and back.
#include <memory>

#include "absl/strings/str_join.h"
#include "app/data/key_lookup.h"
#include "app/table/tables.h"
#include "cli/command/data_commands.h"
#include "cli/command/job_console.h"
#include "cli/terminal/aligned_text.h"
#include "cli/terminal/exit_code.h"

namespace cistern::cli {
namespace {

struct LookupFlags {
  std::vector<std::string> words;  // keys, or column=text
  std::string recipe;
  std::vector<std::string> input;
};

absl::Status NeedsInput(const std::string& word) {
  return WithFix(absl::InvalidArgumentError(absl::StrCat(
                     "key ", word, ": keys are hashes of text; only a table tells which text")),
                 "name the table, and it is searched: --input train.csv");
}

absl::StatusOr<app::KeyLookupOptions> LookupOptionsOf(const LookupFlags& flags) {
  app::KeyLookupOptions options;
  options.recipe = flags.recipe;
  options.tables = flags.input;
  for (const std::string& word : flags.words) {
    const size_t equals = word.find('=');
    if (equals != std::string::npos) {
      options.texts.emplace_back(word.substr(0, equals), word.substr(equals + 1));
      continue;
    }
    CISTERN_ASSIGN_OR_RETURN(options.keys.emplace_back(), app::ParseKey(word));
    if (flags.input.empty()) return NeedsInput(word);
  }
  return options;
}

absl::StatusOr<Report> RunLookup(const LookupFlags& flags, Console& console) {
  CISTERN_ASSIGN_OR_RETURN(const app::KeyLookupOptions options, LookupOptionsOf(flags));
  const absl::StatusOr<app::KeyLookup> lookup = app::LookUpKeys(options, RowCallsOn(console));
  console.Update("");
  if (!lookup.ok()) return lookup.status();
  Report report;
  report.json = app::JsonOf(*lookup);
  std::vector<std::vector<std::string>> rows = {{"KEY", "COLUMN", "TEXT", "ROWS"}};
  for (const app::FoundText& found : lookup->found) {
    rows.push_back({absl::StrCat(found.key), OneLine(found.column), OneLine(found.text),
                    flags.input.empty() ? "-" : absl::StrCat(found.rows)});
  }
  report.text = AlignedText(rows);
  if (!lookup->absent.empty()) {
    report.outcome =
        absl::NotFoundError(absl::StrCat("no text in ", absl::StrJoin(flags.input, ", "),
                                         " has the key ", absl::StrJoin(lookup->absent, ", ")));
  }
  return report;
}

}  // namespace

void AddLookupCommand(Command& data) {
  auto flags = std::make_shared<LookupFlags>();
  Command& command =
      data.Add("lookup", "Says which key a text has, and which text a key has.",
               "cistern data lookup user=u3 0x9e3779b97f4a7c15 --recipe runs/a --input train.csv");
  command.Arguments("KEY|TEXT", &flags->words,
                    {"WORD", "Keys (decimal, or hexadecimal after 0x), or texts with their column.",
                     "user=u3", kRequired});
  command.Flag("--recipe", &flags->recipe,
               {"FILE|DIR", "The recipe of a data set or run, which makes keys of text.",
                "--recipe data/train", kRequired});
  command.List(
      "--input", &flags->input, true,
      {"FILE,...", "Tables to search: all texts with these keys, and their rows. Needed for keys.",
       "--input train.csv"});
  command.Does([flags](Console& console) { return RunLookup(*flags, console); });
}

}  // namespace cistern::cli
