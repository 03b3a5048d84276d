#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/manual/completion.h"

namespace cistern {
namespace {

// A text inside "[...]" or before ":" of a specification of _arguments.
std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}});
}

std::string Action(const FlagManual& flag) {
  switch (flag.kind) {
    case ValueKind::kFolder:
      return "_files -/";
    case ValueKind::kFile:
      return "_files";
    case ValueKind::kWord:
      return absl::StrCat("(", absl::StrJoin(flag.words, " "), ")");
    case ValueKind::kNone:
      break;
  }
  return " ";
}

std::string FlagLines(const CommandManual& command) {
  std::string text;
  for (const FlagManual& flag : command.flags) {
    for (const std::string& name : flag.names) {
      const bool with_equals = flag.takes_value && name.size() > 2;
      std::string line = absl::StrCat(flag.repeats ? "*" : "", name, with_equals ? "=" : "", "[",
                                      Escaped(FirstSentence(flag.what)), "]");
      if (flag.takes_value) absl::StrAppend(&line, ":", Escaped(flag.type), ":", Action(flag));
      absl::StrAppend(&text, "    ", ShellQuoted(line), " \\\n");
    }
  }
  return text;
}

std::string ArgumentLines(const CommandManual& command) {
  std::string text;
  for (const FlagManual& argument : command.arguments) {
    const std::string place = argument.repeats ? "*" : argument.required ? "" : ":";
    absl::StrAppend(
        &text, "    ",
        ShellQuoted(absl::StrCat(place, ":", Escaped(argument.names[0]), ":", Action(argument))),
        " \\\n");
  }
  return text;
}

std::string FunctionOf(const CommandManual& command) {
  return "_" + AsIdentifier(command.name);
}

// A command that has commands below it: the first word chooses.
std::string Choice(const CommandManual& command, const std::string& flags) {
  std::string list, cases;
  for (const CommandManual& below : command.commands) {
    const std::string word = below.name.substr(command.name.size() + 1);
    absl::StrAppend(&list, "        ",
                    ShellQuoted(absl::StrCat(word, ":", Escaped(FirstSentence(below.what)))), "\n");
    absl::StrAppend(&cases, "        ", word, ") ", FunctionOf(below), " ;;\n");
  }
  return absl::StrCat(
      "  local context state state_descr line\n  typeset -A opt_args\n  _arguments -C -S \\\n",
      flags,
      "    '1:command:->command' '*::argument:->rest' && return\n  case $state in\n    command)\n",
      "      local -a commands\n      commands=(\n", list,
      "      )\n      _describe command commands", command.arguments.empty() ? "" : " || _files",
      "\n      ;;\n    rest)\n      case $line[1] in\n", cases,
      command.arguments.empty() ? "" : "        *) _files ;;\n", "      esac\n      ;;\n  esac\n");
}

std::string Functions(const CommandManual& command) {
  std::string text = absl::StrCat("\n", FunctionOf(command), "() {\n");
  const std::string flags = FlagLines(command);
  if (command.commands.empty()) {
    absl::StrAppend(&text, "  _arguments -S \\\n", flags, ArgumentLines(command),
                    "    && return\n");
  } else {
    absl::StrAppend(&text, Choice(command, flags));
  }
  absl::StrAppend(&text, "}\n");
  for (const CommandManual& below : command.commands) absl::StrAppend(&text, Functions(below));
  return text;
}

}  // namespace

std::string ZshCompletion(const CommandManual& program) {
  const std::string function = FunctionOf(program);
  // An autoloaded file runs as the function _PROGRAM; a sourced one only defines it.
  return absl::StrCat("#compdef ", program.name, "\n# Made by `", program.name, " --manual`.\n",
                      Functions(program), "\nif [[ \"$funcstack[1]\" == _", program.name,
                      " ]]; then\n  ", function,
                      " \"$@\"\nelif (( $+functions[compdef] )); then\n  compdef ", function, " ",
                      program.name, "\nfi\n");
}

}  // namespace cistern
