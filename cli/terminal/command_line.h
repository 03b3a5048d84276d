// The command line of a program: its commands, their flags, and the function that runs each.
//
//   CommandLine line("cistern", "A distributed parameter server for CTR models.");
//   auto out = std::make_shared<std::string>();
//   Command& train = line.root().Add("train", "Trains a model.", "cistern train m.json --out run");
//   train.Flag("--out", out.get(), {"DIR", "Folder of the run.", "--out runs/a", kRequired});
//   train.Does([out](Console& console) -> absl::StatusOr<Report> { ... });
//   return line.Run(argc, argv);
//
// Every command gets --help, --json and --log-level; the program itself gets --version. Flags may
// be written in --kebab-case or --snake_case. A mistake in the command line exits with 2, and the
// error suggests the nearest known flag or command.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cli/terminal/report.h"
#include "common/base/status.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cistern::cli {

inline constexpr bool kRequired = true;

// What --help prints about a flag. The default is the variable's value when the flag is added.
struct FlagText {
  std::string type;     // "DIR", "INT", "HOST:PORT,..."
  std::string what;     // a sentence
  std::string example;  // "--out runs/a"
  bool required = false;
  uint64_t most = UINT64_MAX;  // of an integer
};

// Of a flag for a number of threads: 0 for one per core, at most kMaxThreads.
// what: "Number of threads that read".
FlagText ThreadsText(const std::string& what);

// One command. It borrows the variables of its flags, which must live until the program ends (the
// closure passed to Does owns them).
//
// Threads: one at a time.
class Command {
 public:
  using Body = std::function<absl::StatusOr<Report>(Console&)>;
  explicit Command(CLI::App* app) : app_(app) {}

  // The command as typed, without the program: "train". For the root command, the program's name.
  std::string name() const;

  // Adds a subcommand. A command may have both a body and subcommands; arguments that are not named
  // after a subcommand belong to the body.
  Command& Add(const std::string& name, const std::string& what, const std::string& example);

  // name: "--out", or "--name,--to" for a flag with an alias.
  void Flag(const std::string& name, std::string* value, const FlagText& text);
  void Flag(const std::string& name, uint64_t* value, const FlagText& text);
  void Flag(const std::string& name, double* value, const FlagText& text);
  // The value must be one of the words in text.type, which '|' separates.
  void Choice(const std::string& name, std::string* value, const FlagText& text);
  void Switch(const std::string& name, bool* value, const FlagText& text);
  // The flag may be repeated; with `commas`, one value may hold several items. Of paths (a type
  // with FILE or DIR) a comma may also be a part: worker/data/storage/path_list.h.
  void List(const std::string& name, std::vector<std::string>* values, bool commas,
            const FlagText& text);
  // A positional argument. Arguments are read in the order of these calls.
  void Argument(const std::string& name, std::string* value, const FlagText& text);
  // All remaining positional arguments; each may hold several items separated by commas, as in
  // List.
  void Arguments(const std::string& name, std::vector<std::string>* values, const FlagText& text);

  // Prints an example command line below the flags in --help.
  void Example(const std::string& line);
  // Prints any other text there. Replaces the example.
  void Footer(const std::string& text);

  void Does(Body body) { body_ = std::move(body); }
  const Body& body() const { return body_; }

 private:
  friend class CommandLine;
  void SeparateAtCommas(CLI::Option* option);

  CLI::App* const app_;
  Body body_;
  std::set<const CLI::Option*> path_lists_;  // whose values are split at commas
  std::vector<std::unique_ptr<Command>> children_;
};

// Threads: one at a time.
class CommandLine {
 public:
  CommandLine(const std::string& program, const std::string& what);
  ~CommandLine();

  // The program itself: add commands to it, or give it flags and a body.
  Command& root() { return *root_; }

  // Parses the arguments, runs the command, and prints its report to standard output, or its error
  // to standard error (with --json also as an object to standard output). Returns the exit code.
  int Run(int argc, const char* const* argv);

 private:
  struct Common;
  absl::StatusOr<Command*> Parse(int argc, const char* const* argv, std::string* help);
  absl::Status ParseFailure(const std::string& message) const;
  void AddCommonFlags(Command& command);
  // Splits lists of paths, and runs the body, with local copies in place of remote paths.
  absl::StatusOr<Report> RunCommand(const Command& command, Console& console) const;
  int Print(absl::StatusOr<Report> result) const;

  std::unique_ptr<CLI::App> app_;
  std::unique_ptr<Command> root_;
  std::unique_ptr<Common> common_;
};

// "--batch_size=4_096" -> "--batch-size=4_096": flags are registered in kebab-case only. Words
// after
// "--" are left alone.
std::vector<std::string> NormalizeFlags(const std::vector<std::string>& words);

}  // namespace cistern::cli
