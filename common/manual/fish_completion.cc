#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/manual/completion.h"

namespace cistern {
namespace {

// Tells whether the command typed so far is its argument. PROGRAM, NAME and PATHS are replaced.
constexpr char kCondition[] = R"fish(
function NAME_at
    set -l at 'PROGRAM'
    set -l words (commandline -opc)
    set -e words[1]
    for word in $words
        if contains -- "$at $word" PATHS
            set at "$at $word"
        end
    end
    test "$at" = "$argv[1]"
end
complete -c PROGRAM -f
)fish";

void CollectPaths(const CommandManual& command, std::vector<std::string>* paths) {
  for (const CommandManual& below : command.commands) {
    paths->push_back(ShellQuoted(below.name));
    CollectPaths(below, paths);
  }
}

// fish escapes a quote inside quotes with a backslash.
std::string Quoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

std::string Values(const FlagManual& flag) {
  switch (flag.kind) {
    case ValueKind::kFolder:
      return " -x -a '(__fish_complete_directories)'";
    case ValueKind::kFile:
      return " -r -F";
    case ValueKind::kWord:
      return absl::StrCat(" -x -a ", Quoted(absl::StrJoin(flag.words, " ")));
    case ValueKind::kNone:
      break;
  }
  return " -x";
}

std::string Options(const FlagManual& flag) {
  std::string text;
  for (const std::string& name : flag.names) {
    const bool is_long = absl::StartsWith(name, "--");
    absl::StrAppend(&text, is_long ? " -l " : " -s ", name.substr(is_long ? 2 : 1));
  }
  return text;
}

void AddLines(const CommandManual& command, const std::string& begin, std::string* text) {
  const std::string here =
      absl::StrCat(begin, " -n \"", "NAME_at ", ShellQuoted(command.name), "\"");
  for (const CommandManual& below : command.commands) {
    absl::StrAppend(text, here, " -a ", below.name.substr(command.name.size() + 1), " -d ",
                    Quoted(FirstSentence(below.what)), "\n");
  }
  for (const FlagManual& flag : command.flags) {
    absl::StrAppend(text, here, Options(flag), flag.takes_value ? Values(flag) : "", " -d ",
                    Quoted(FirstSentence(flag.what)), "\n");
  }
  for (const FlagManual& argument : command.arguments) {
    if (argument.kind == ValueKind::kFile) absl::StrAppend(text, here, " -F\n");
    if (argument.kind == ValueKind::kFolder) {
      absl::StrAppend(text, here, " -a '(__fish_complete_directories)'\n");
    }
  }
  for (const CommandManual& below : command.commands) AddLines(below, begin, text);
}

}  // namespace

std::string FishCompletion(const CommandManual& program) {
  std::vector<std::string> paths;
  CollectPaths(program, &paths);
  std::string lines = kCondition;
  AddLines(program, "complete -c PROGRAM", &lines);
  const std::string name = "__" + AsIdentifier(program.name);
  return absl::StrCat("# fish completion of ", program.name, ", made by `", program.name,
                      " --manual`.\n",
                      absl::StrReplaceAll(lines, {{"NAME_at", name + "_at"},
                                                  {"PROGRAM", program.name},
                                                  {"PATHS", absl::StrJoin(paths, " ")}}));
}

}  // namespace cistern
