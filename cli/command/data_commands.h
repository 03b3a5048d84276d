// cistern data convert, criteo, generate, head, inspect, keyset, lookup and pack.
#pragma once

#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_join.h"
#include "cli/terminal/command_line.h"

namespace cistern::cli {

// The subcommands of `data`, which commands.cc adds.
void AddConvertCommand(Command& data);
void AddCriteoCommand(Command& data);
void AddGenerateCommand(Command& data);
void AddHeadCommand(Command& data);
void AddInspectCommand(Command& data);
void AddPackCommand(Command& data);
void AddKeysetCommand(Command& data);
void AddLookupCommand(Command& data);

// The value paired with `word`. The flag has already checked the word.
template <typename Values>
auto ValueOf(const std::string& word, const Values& values) {
  auto result = std::begin(values)->second;
  for (const auto& [name, value] : values) {
    if (word == name) result = value;
  }
  return result;
}

// The type of a Choice between the words of such pairs: "csv|tsv".
template <typename Values>
std::string ChoiceOf(const Values& values) {
  return absl::StrJoin(
      values, "|", [](std::string* out, const auto& value) { absl::StrAppend(out, value.first); });
}

}  // namespace cistern::cli
