// cistern data convert, criteo, generate, inspect, keyset, lookup and pack.
#pragma once

#include <string>
#include <utility>

#include "cli/terminal/command_line.h"

namespace cistern::cli {

// The subcommands of `data`, which commands.cc adds.
void AddConvertCommand(Command& data);
void AddCriteoCommand(Command& data);
void AddGenerateCommand(Command& data);
void AddInspectCommand(Command& data);
void AddPackCommand(Command& data);
void AddKeysetCommand(Command& data);
void AddLookupCommand(Command& data);

// The value paired with `word`. The flag has already checked the word.
template <typename T, size_t n>
T ValueOf(const std::string& word, const std::pair<const char*, T> (&values)[n]) {
  T result = values[0].second;
  for (const auto& [name, value] : values) {
    if (word == name) result = value;
  }
  return result;
}

}  // namespace cistern::cli
