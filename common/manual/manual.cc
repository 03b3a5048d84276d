#include "common/manual/manual.h"

#include <CLI/App.hpp>
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace cistern {
namespace {

// The words of "a|b|c", or of "TEXT:{a,b,c}" as CLI::IsMember says it; none for any other type.
std::vector<std::string> WordsOf(const std::string& type) {
  const size_t open = type.find('{'), close = type.rfind('}');
  if (open != std::string::npos && close != std::string::npos && open < close) {
    return absl::StrSplit(absl::string_view(type).substr(open + 1, close - open - 1), ',');
  }
  const auto is_word = [](char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_' || c == '-' || c == '|';
  };
  if (!absl::StrContains(type, '|') || !std::all_of(type.begin(), type.end(), is_word)) return {};
  return absl::StrSplit(type, '|');
}

ValueKind KindOf(const std::string& type, const std::string& names) {
  if (!WordsOf(type).empty()) return ValueKind::kWord;
  if (absl::StrContains(type, '=')) return ValueKind::kNone;  // PATH=VALUE
  for (const char* file : {"FILE", "MODEL", "PATH", "INPUT", "OUTPUT", "RUN", "JSON", "json"}) {
    if (absl::StrContains(type, file)) return ValueKind::kFile;
  }
  const bool folder = absl::StrContains(type, "DIR") || absl::StrContains(type, "FOLDER") ||
                      absl::StrContains(names, "dir");
  return folder ? ValueKind::kFolder : ValueKind::kNone;
}

// A description has the sentences first, then a line on default and example.
void SetText(const std::string& description, FlagManual* flag) {
  const std::vector<std::string> parts = absl::StrSplit(description, absl::MaxSplits('\n', 1));
  flag->what = parts[0];
  if (parts.size() > 1) flag->note = parts[1];
}

FlagManual Describe(const CLI::Option& option) {
  FlagManual flag;
  for (const std::string& name : option.get_snames()) flag.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flag.names.push_back("--" + name);
  SetText(option.get_description(), &flag);
  flag.takes_value = option.get_items_expected_max() > 0;
  flag.repeats = option.get_items_expected_max() > 1 || option.get_expected_max() > 1;
  flag.required = option.get_required();
  const std::string type =
      option.get_option_text().empty() ? option.get_type_name() : option.get_option_text();
  if (flag.names.empty()) flag.names.push_back(option.get_name(true));
  if (flag.takes_value) {
    flag.kind = KindOf(type, absl::StrJoin(flag.names, " "));
    flag.words = WordsOf(type);
    flag.type =
        flag.words.empty() ? type.substr(0, type.find(':')) : absl::StrJoin(flag.words, "|");
  }
  return flag;
}

CommandManual Describe(const CLI::App& app, const std::string& above) {
  CommandManual manual;
  manual.name = above.empty() ? app.get_name() : absl::StrCat(above, " ", app.get_name());
  manual.what = app.get_description();
  manual.footer = app.get_footer();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    (option->get_positional() ? manual.arguments : manual.flags).push_back(Describe(*option));
  }
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!below->get_group().empty()) manual.commands.push_back(Describe(*below, manual.name));
  }
  return manual;
}

}  // namespace

CommandManual ManualOf(const CLI::App& app) {
  return Describe(app, "");
}

std::string AsIdentifier(const std::string& name) {
  return absl::StrReplaceAll(name, {{" ", "_"}, {"-", "_"}});
}

std::string ShellQuoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string FirstSentence(const std::string& text) {
  const size_t end = std::min(text.find(". "), text.find(".\n"));
  const std::string first = text.substr(0, end);
  return absl::EndsWith(first, ".") ? first.substr(0, first.size() - 1) : first;
}

}  // namespace cistern
