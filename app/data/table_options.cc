#include "app/data/table_options.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

namespace cistern::app {

std::string GivenOption(const TableOptions& options) {
  const data::TableWishes& wishes = options.wishes;
  const std::pair<const char*, bool> given[] = {
      {"label", !wishes.label.empty()},
      {"positive", !wishes.positive.empty()},
      {"label_threshold", wishes.label_threshold.has_value()},
      {"weight", !wishes.weight.empty()},
      {"dense", !wishes.dense.empty()},
      {"sparse", !wishes.sparse.empty()},
      {"ignore", !wishes.ignore.empty()},
      {"cross", !wishes.cross.empty()},
      {"share", !wishes.share.empty()},
      {"multi", !wishes.multi.empty()},
      {"key_weights", !wishes.key_weights.empty()},
      {"separator", wishes.separator != 0},
      {"delimiter", options.delimiter != 0},
      {"columns", !options.columns.empty()},
      {"add_column", !options.add_columns.empty()},
      {"min_count", wishes.min_count > 0},
      {"negative_rate", options.negative_rate != 0},
      {"model", options.model != TableOptions().model},
      {"valid", !options.valid.empty()},
      {"test", !options.test.empty()}};
  for (const auto& [option, is_given] : given) {
    if (is_given) return option;
  }
  return "";
}

absl::StatusOr<char> ParseCharacter(const std::string& word) {
  if (word.empty()) return '\0';
  if (word == "tab" || word == "\\t") return '\t';
  if (word == "space") return ' ';
  int code = 0;
  if (word.size() == 4 && absl::StartsWith(word, "\\x") &&
      absl::SimpleHexAtoi(word.substr(2), &code) && code > 0) {
    return static_cast<char>(code);
  }
  if (word.size() == 1) return word.front();
  return absl::InvalidArgumentError(
      absl::StrCat("'", word, "': expected one character, tab, space, or a code such as \\x01"));
}

}  // namespace cistern::app
