// cistern data lookup: from text to key, and back.
#include <algorithm>
#include <memory>

#include "absl/strings/str_join.h"
#include "app/table/tables.h"
#include "cli/command/data_commands.h"
#include "cli/command/key_search.h"
#include "cli/terminal/aligned_text.h"
#include "cli/terminal/exit_code.h"
#include "worker/data/recipe/table_files.h"

namespace cistern {
namespace {

struct LookupFlags {
  std::vector<std::string> words;  // keys, or column=text
  std::string recipe;
  std::vector<std::string> input;
};

// The keys of "column=text".
absl::StatusOr<std::vector<FoundText>> KeysOfText(const OwnedEncoder& encoder,
                                                  const std::string& word) {
  const size_t equals = word.find('=');
  FoundText found{word.substr(0, equals), word.substr(equals + 1)};
  CISTERN_ASSIGN_OR_RETURN(const std::vector<Key> keys,
                           encoder.encoder().KeysOf(found.column, found.text));
  std::vector<FoundText> all;
  for (const Key key : keys) {
    found.key = key;
    all.push_back(found);
  }
  return all;
}

absl::Status NeedsInput(const std::string& word) {
  return WithFix(absl::InvalidArgumentError(absl::StrCat(
                     "key ", word, ": keys are hashes of text; only a table tells which text")),
                 "name the table, and it is searched: --input train.csv");
}

absl::StatusOr<Report> RunLookup(const LookupFlags& flags, Console& console) {
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const FoundRecipe recipe, ReadRecipe(files, flags.recipe));
  const auto encoder = OwnedEncoder::Open(recipe.recipe, recipe.vocabulary_path());
  if (!encoder.ok()) return WithKind(encoder.status(), ErrorKind::kBadCheckpoint);
  std::vector<FoundText> all;
  std::vector<Key> wanted;
  for (const std::string& word : flags.words) {
    if (word.find('=') != std::string::npos) {
      CISTERN_ASSIGN_OR_RETURN(const std::vector<FoundText> found, KeysOfText(**encoder, word));
      all.insert(all.end(), found.begin(), found.end());
    } else {
      CISTERN_ASSIGN_OR_RETURN(wanted.emplace_back(), app::ParseKey(word));
      if (flags.input.empty()) return NeedsInput(word);
    }
  }
  if (!flags.input.empty()) {
    for (const FoundText& found : all) wanted.push_back(found.key);
    KeySearch search(**encoder, wanted);
    absl::StatusOr<std::vector<std::string>> tables = TableFiles(flags.input);
    CISTERN_RETURN_IF_ERROR(tables.status());
    for (const std::string& table : *tables) {
      const absl::Status read = search.Read(table, console);
      console.Update("");
      if (absl::IsNotFound(read)) return MissingIsUsage(read);
      CISTERN_RETURN_IF_ERROR(read);
    }
    all = search.Results();
  }
  Report report;
  report.json["found"] = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> rows = {{"KEY", "COLUMN", "TEXT", "ROWS"}};
  for (const FoundText& found : all) {
    report.json["found"].push_back(
        {{"key", found.key}, {"column", found.column}, {"text", found.text}, {"rows", found.rows}});
    rows.push_back({absl::StrCat(found.key), OneLine(found.column), OneLine(found.text),
                    flags.input.empty() ? "-" : absl::StrCat(found.rows)});
  }
  report.text = AlignedText(rows);
  std::vector<std::string> absent;
  for (const Key key : wanted) {
    const bool has = std::any_of(all.begin(), all.end(),
                                 [&](const FoundText& found) { return found.key == key; });
    if (!has) absent.push_back(absl::StrCat(key));
  }
  if (!absent.empty()) {
    report.outcome =
        absl::NotFoundError(absl::StrCat("no text in ", absl::StrJoin(flags.input, ", "),
                                         " has the key ", absl::StrJoin(absent, ", ")));
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

}  // namespace cistern
