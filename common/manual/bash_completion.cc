#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/manual/completion.h"

namespace cistern {
namespace {

// What follows the tables. PROGRAM and NAME are replaced. bash splits words at '=' and ':', so a
// flag, its '=' and its value are three words.
constexpr char kFunction[] = R"bash(
_NAME() {
  local cur="${COMP_WORDS[COMP_CWORD]}" at='PROGRAM' flag='' kind='' word i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="${COMP_WORDS[i]}"
    if [[ "$word" == = ]]; then continue; fi
    if [[ -n "$flag" ]]; then flag=''; continue; fi
    if [[ "$word" == -* ]]; then
      if [[ -n "$(_NAME_value "$at" "$word")" ]]; then flag="$word"; fi
    elif [[ " $(_NAME_commands "$at") " == *" $word "* ]]; then
      at="$at $word"
    fi
  done
  if [[ -n "$flag" ]]; then
    kind="$(_NAME_value "$at" "$flag")"
    if [[ "$cur" == = ]]; then cur=''; fi
  elif [[ "$cur" == -*=* ]]; then
    kind="$(_NAME_value "$at" "${cur%%=*}")"
    cur="${cur#*=}"
  elif [[ "$cur" == -* ]]; then
    kind="words $(_NAME_flags "$at")"
  else
    kind="$(_NAME_value "$at" argument)"
    mapfile -t COMPREPLY < <(compgen -W "$(_NAME_commands "$at")" -- "$cur")
    if [[ ${#COMPREPLY[@]} -gt 0 ]]; then return; fi
  fi
  case "$kind" in
    folder) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
    file) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    words*) mapfile -t COMPREPLY < <(compgen -W "${kind#words}" -- "$cur") ;;
  esac
}
complete -F _NAME PROGRAM
)bash";

std::string Words(const CommandManual& command) {
  std::vector<std::string> names;
  for (const CommandManual& below : command.commands)
    names.push_back(below.name.substr(command.name.size() + 1));
  return absl::StrJoin(names, " ");
}

std::string Flags(const CommandManual& command) {
  std::vector<std::string> names;
  for (const FlagManual& flag : command.flags) names.push_back(flag.names.back());
  return absl::StrJoin(names, " ");
}

std::string Kind(const FlagManual& flag) {
  switch (flag.kind) {
    case ValueKind::kFolder:
      return "folder";
    case ValueKind::kFile:
      return "file";
    case ValueKind::kWord:
      return "words " + absl::StrJoin(flag.words, " ");
    case ValueKind::kNone:
      break;
  }
  return "other";
}

std::string Case(const std::string& pattern, const std::string& text) {
  return absl::StrCat("    ", ShellQuoted(pattern), ") echo ", ShellQuoted(text), " ;;\n");
}

// The lines of the three tables for a command and those below it.
struct Tables {
  std::string commands, flags, values;
};

void Add(const CommandManual& command, Tables* tables) {
  if (!command.commands.empty())
    absl::StrAppend(&tables->commands, Case(command.name, Words(command)));
  absl::StrAppend(&tables->flags, Case(command.name, Flags(command)));
  for (const FlagManual& flag : command.flags) {
    if (!flag.takes_value) continue;
    for (const std::string& name : flag.names) {
      absl::StrAppend(&tables->values, Case(absl::StrCat(command.name, " ", name), Kind(flag)));
    }
  }
  if (!command.arguments.empty()) {
    absl::StrAppend(&tables->values, Case(command.name + " argument", Kind(command.arguments[0])));
  }
  for (const CommandManual& below : command.commands) Add(below, tables);
}

std::string Table(const std::string& name, const std::string& key, const std::string& cases) {
  return absl::StrCat("\n", name, "() {\n  case \"", key, "\" in\n", cases,
                      "    *) ;;\n  esac\n}\n");
}

}  // namespace

std::string BashCompletion(const CommandManual& program) {
  Tables tables;
  Add(program, &tables);
  const std::string name = "_" + AsIdentifier(program.name);
  return absl::StrCat("# bash completion of ", program.name, ", made by `", program.name,
                      " --manual`.\n", Table(name + "_commands", "$1", tables.commands),
                      Table(name + "_flags", "$1", tables.flags),
                      Table(name + "_value", "$1 $2", tables.values),
                      absl::StrReplaceAll(kFunction, {{"_NAME", name}, {"PROGRAM", program.name}}));
}

}  // namespace cistern
