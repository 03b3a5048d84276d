// The command line of a program: commands, their flags, and what each does.
//
//   CommandLine line("cistern", "A distributed parameter server for CTR models.");
//   auto out = std::make_shared<std::string>();
//   Command& train = line.root().Add("train", "Trains a model.", "cistern train m.json --out run");
//   train.Flag("--out", out.get(), {"DIR", "Where the run goes.", "--out runs/a", kRequired});
//   train.Does([out](Console& console) -> absl::StatusOr<Report> { ... });
//   return line.Run(argc, argv);
//
// Every command gets --help, --json and --log-level, the program itself --version. Both
// --kebab-case and --snake_case are read. A mistake in the command line names the nearest known
// flag or command and exits with 2.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/terminal/report.h"
#include "common/base/status.h"

namespace CLI {
class App;
}

namespace cistern {

inline constexpr bool kRequired = true;

// What --help says about a flag; its default is the value that the variable holds when it is added.
struct FlagText {
  std::string type;     // "DIR", "INT", "HOST:PORT,..."
  std::string what;     // a sentence
  std::string example;  // "--out runs/a"
  bool required = false;
};

// One command. Variables are borrowed: they live until the program ends (the closure of Does owns
// them).
//
// Threads: one at a time.
class Command {
 public:
  using Body = std::function<absl::StatusOr<Report>(Console&)>;
  explicit Command(CLI::App* app) : app_(app) {}

  // As a person types it, without the program: "train"; of the program itself its own name.
  std::string name() const;

  // A command below this one.
  Command& Add(const std::string& name, const std::string& what, const std::string& example);

  // name: "--out", or "--name,--to" for a flag with an alias.
  void Flag(const std::string& name, std::string* value, const FlagText& text);
  void Flag(const std::string& name, uint64_t* value, const FlagText& text);
  void Flag(const std::string& name, double* value, const FlagText& text);
  // One of the words in text.type, which are separated by '|'.
  void Choice(const std::string& name, std::string* value, const FlagText& text);
  void Switch(const std::string& name, bool* value, const FlagText& text);
  // May be repeated; with `commas` one value may also hold several.
  void List(const std::string& name, std::vector<std::string>* values, bool commas,
            const FlagText& text);
  // A word without a flag before it, in the order of these calls.
  void Argument(const std::string& name, std::string* value, const FlagText& text);
  // All words that are left; each may also hold several, with commas.
  void Arguments(const std::string& name, std::vector<std::string>* values, const FlagText& text);

  // A whole command line, below the flags in --help.
  void Example(const std::string& line);
  // Any other text there.
  void Footer(const std::string& text);

  void Does(Body body) { body_ = std::move(body); }
  const Body& body() const { return body_; }

 private:
  friend class CommandLine;
  CLI::App* const app_;
  Body body_;
  std::vector<std::unique_ptr<Command>> children_;
};

// Threads: one at a time.
class CommandLine {
 public:
  CommandLine(const std::string& program, const std::string& what);
  ~CommandLine();

  // The program itself: add commands to it, or flags and a body of its own.
  Command& root() { return *root_; }

  // Reads the arguments, runs the command, prints its report (standard output) or error (standard
  // error; with --json also as an object on standard output). Returns the exit code.
  int Run(int argc, const char* const* argv);

 private:
  struct Common;
  absl::StatusOr<Command*> Parse(int argc, const char* const* argv, std::string* help);
  absl::Status ParseFailure(const std::string& message) const;
  void AddCommonFlags(Command& command);
  int Print(absl::StatusOr<Report> result) const;

  std::unique_ptr<CLI::App> app_;
  std::unique_ptr<Command> root_;
  std::unique_ptr<Common> common_;
};

// "--batch_size=4_096" -> "--batch-size=4_096": the one spelling that is registered. Words behind
// "--" are left alone.
std::vector<std::string> NormalizeFlags(const std::vector<std::string>& words);

}  // namespace cistern
