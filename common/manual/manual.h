// What a program's command line tells about itself: the source of manual pages and completions.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cistern {

// What can complete a value.
enum class ValueKind { kNone, kFolder, kFile, kWord };

// A flag or an argument.
struct FlagManual {
  std::vector<std::string> names;  // "--out", "-h"; of an argument: its name, "MODEL.json"
  std::string type;                // "DIR"; empty for a switch
  std::string what;                // sentences
  std::string note;                // "default: 4096; example: --batchsize 4096"; may be empty
  ValueKind kind = ValueKind::kNone;
  std::vector<std::string> words;  // the values of kWord
  bool takes_value = false;
  bool repeats = false;
  bool required = false;
};

// A command with the commands below it, or the program itself.
struct CommandManual {
  std::string name;  // as typed, with the program: "cistern data convert"
  std::string what;
  std::string footer;  // what --help prints last; may be empty
  std::vector<FlagManual> flags;
  std::vector<FlagManual> arguments;
  std::vector<CommandManual> commands;
};

// Describes a program. Hidden options are left out.
CommandManual ManualOf(const CLI::App& app);

// `name` with '_' instead of spaces and dashes: part of a shell function's name.
std::string AsIdentifier(const std::string& name);
// A text in the single quotes of a shell.
std::string ShellQuoted(const std::string& text);
// The first sentence of a text, without its final stop.
std::string FirstSentence(const std::string& text);

}  // namespace cistern
