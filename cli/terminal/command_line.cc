#include "cli/terminal/command_line.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/path_flags.h"
#include "cli/terminal/remote_paths.h"
#include "cli/terminal/usual_flags.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/nearest_name.h"
#include "common/base/thread_limit.h"
#include "common/base/version.h"
#include "common/manual/manual_files.h"

namespace cistern::cli {
namespace {

// Prints one paragraph per flag: name and type, description, default and example.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string text = absl::StrCat("  ", make_option_name(option, is_positional));
    if (!option->get_option_text().empty()) absl::StrAppend(&text, " ", option->get_option_text());
    for (absl::string_view line : absl::StrSplit(option->get_description(), '\n')) {
      absl::StrAppend(&text, "\n      ", line);
    }
    return text + "\n";
  }
};

std::string Described(const FlagText& text, const std::string& default_value) {
  std::string note = text.required ? "required" : "default: ";
  if (!text.required) note += default_value.empty() ? "none" : default_value;
  if (!text.example.empty()) absl::StrAppend(&note, "; example: ", text.example);
  return absl::StrCat(text.what, "\n", note);
}

template <typename T>
CLI::Option* AddOption(CLI::App* app, const std::string& name, T* value, const FlagText& text,
                       const std::string& default_value) {
  CISTERN_CHECK(name.find_first_of("=:{") == std::string::npos);  // CLI11 refuses them since 2.4
  CLI::Option* option = app->add_option(name, *value, Described(text, default_value));
  option->option_text(text.type)->required(text.required);
  return option;
}

// The innermost command that was parsed before parsing stopped.
const CLI::App* Deepest(const CLI::App* app) {
  for (auto below = app->get_subcommands(); !below.empty(); below = app->get_subcommands()) {
    app = below.front();
  }
  return app;
}

std::string FullName(const CLI::App* app) {
  const std::string above = app->get_parent() ? FullName(app->get_parent()) + " " : "";
  return above + app->get_name();
}

// Flags (or else commands) that may follow `app`, as typed.
std::vector<std::string> KnownWords(const CLI::App* app, bool flags) {
  std::vector<std::string> words;
  if (flags) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
    }
  } else {
    for (const CLI::App* below : app->get_subcommands({})) words.push_back(below->get_name());
  }
  return words;
}

// The first word that no flag or argument took: unknown flags before plain words, but where a
// command must follow, a plain word that comes first, because flags after an unknown command belong
// to it.
// "": none.
std::string UnknownWord(const CLI::App* app, bool wants_command) {
  const std::vector<std::string> words = app->remaining(true);
  if (wants_command && !words.empty() && !absl::StartsWith(words.front(), "-")) {
    return words.front();
  }
  const auto flag = std::find_if(words.begin(), words.end(), [](const std::string& word) {
    return absl::StartsWith(word, "-");
  });
  if (flag != words.end()) return *flag;
  return words.empty() ? "" : words.front();
}

// CLI11 says "--out: At Most 1 required but received 2" of a flag that was given twice.
std::string InOurWords(const std::string& message) {
  const size_t at = message.find(": At Most 1 required but received ");
  if (at == std::string::npos) return message;
  const std::string times = message.substr(message.rfind(' ') + 1);
  return absl::StrCat(message.substr(0, at), " was given ",
                      times == "2" ? "twice" : absl::StrCat(times, " times"));
}

// "add it, such as --out run; " for "--out is required"; "" for any other message.
std::string MissingFlagFix(const CLI::App* app, absl::string_view message) {
  if (!absl::ConsumeSuffix(&message, " is required")) return "";
  constexpr absl::string_view kExample = "; example: ";
  for (const CLI::Option* option : app->get_options()) {
    const std::string& text = option->get_description();
    const size_t at = text.rfind(std::string(kExample));
    if (option->get_name() != message || at == std::string::npos) continue;
    return absl::StrCat("add it, such as ", text.substr(at + kExample.size()), "; ");
  }
  return "";
}

// Refuses "--out=" without a value, as an unset shell variable produces it: CLI11 would take the
// next word as the value.
absl::Status CheckValues(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") break;
    if (!absl::StartsWith(word, "--") || !absl::EndsWith(word, "=")) continue;
    return WithFix(absl::InvalidArgumentError(absl::StrCat(word, " has no value")),
                   "write a value after the =, or leave the flag out");
  }
  return absl::OkStatus();
}

bool HoldsPaths(const CLI::Option& option) {
  const std::string& type = option.get_option_text();
  return absl::StrContains(type, "FILE") || absl::StrContains(type, "DIR") ||
         absl::StrContains(type, "PREFIX");
}

// The options and arguments of `app` that were given and hold paths.
std::vector<CLI::Option*> PathOptions(CLI::App* app) {
  std::vector<CLI::Option*> options;
  for (CLI::Option* option : app->get_options()) {
    if (HoldsPaths(*option) && !option->empty()) options.push_back(option);
  }
  return options;
}

void SetValues(CLI::Option& option, const std::vector<std::string>& values) {
  option.clear();
  for (const std::string& value : values) option.add_result(value);
  option.run_callback();
}

}  // namespace

struct CommandLine::Common {
  bool json = false;
  std::string log_level = "warning", log_format = "text";
  Command* chosen = nullptr;
};

std::vector<std::string> NormalizeFlags(const std::vector<std::string>& words) {
  std::vector<std::string> result = words;
  for (std::string& word : result) {
    if (word == "--") break;
    if (!absl::StartsWith(word, "--")) continue;
    const auto name_end = std::find(word.begin(), word.end(), '=');
    std::replace(word.begin(), name_end, '_', '-');
  }
  return result;
}

FlagText ThreadsText(const std::string& what) {
  return {"INT", what + "; 0: one per core.", "--threads 4", !kRequired, kMaxThreads};
}

std::string Command::name() const {
  return app_->get_name();
}

Command& Command::Add(const std::string& name, const std::string& what,
                      const std::string& example) {
  CLI::App* below = app_->add_subcommand(name, what);
  app_->require_subcommand(1);
  children_.push_back(std::make_unique<Command>(below));
  if (!example.empty()) children_.back()->Example(example);
  return *children_.back();
}

void Command::Example(const std::string& line) {
  Footer("Example:\n  " + line);
}

void Command::Footer(const std::string& text) {
  app_->footer(text);
}

void Command::Flag(const std::string& name, std::string* value, const FlagText& text) {
  AddOption(app_, name, value, text, *value);
}

void Command::Flag(const std::string& name, uint64_t* value, const FlagText& text) {
  // CLI11 wraps negative numbers and overflow around (-1 becomes 2^64 - 1), hence a check of our
  // own.
  const auto check = [most = text.most](const std::string& word) -> std::string {
    uint64_t number = 0;
    if (!absl::SimpleAtoi(word, &number)) return word + " is not a whole number of 0 or more";
    return number <= most ? "" : absl::StrCat(word, " is more than ", most, ", the limit");
  };
  AddOption(app_, name, value, text, absl::StrCat(*value))->check(check);
}

void Command::Flag(const std::string& name, double* value, const FlagText& text) {
  AddOption(app_, name, value, text, absl::StrCat(*value))->check([](const std::string& word) {
    double ignored = 0;
    return absl::SimpleAtod(word, &ignored) ? "" : word + " is not a number";
  });
}

void Command::Choice(const std::string& name, std::string* value, const FlagText& text) {
  const std::vector<std::string> words = absl::StrSplit(text.type, '|');
  AddOption(app_, name, value, text, *value)->check([words](const std::string& word) {
    return absl::c_linear_search(words, word)
               ? std::string()
               : absl::StrCat("'", word, "' is not one of ", absl::StrJoin(words, ", "));
  });
}

void Command::Switch(const std::string& name, bool* value, const FlagText& text) {
  app_->add_flag(name, *value, Described(text, *value ? "on" : "off"))->option_text("(switch)");
}

void Command::List(const std::string& name, std::vector<std::string>* values, bool commas,
                   const FlagText& text) {
  CLI::Option* option = AddOption(app_, name, values, text, absl::StrJoin(*values, ","));
  option->allow_extra_args(false);
  if (commas) SeparateAtCommas(option);
}

void Command::Argument(const std::string& name, std::string* value, const FlagText& text) {
  AddOption(app_, name, value, text, *value);
}

void Command::Arguments(const std::string& name, std::vector<std::string>* values,
                        const FlagText& text) {
  SeparateAtCommas(AddOption(app_, name, values, text, absl::StrJoin(*values, ",")));
}

void Command::SeparateAtCommas(CLI::Option* option) {
  if (HoldsPaths(*option)) {
    path_lists_.insert(option);
  } else {
    option->delimiter(',');
  }
}

CommandLine::CommandLine(const std::string& program, const std::string& what)
    : app_(std::make_unique<CLI::App>(what, program)), common_(std::make_unique<Common>()) {
  app_->formatter(std::make_shared<HelpFormatter>());
  app_->get_formatter()->column_width(20);
  app_->set_version_flag("--version", absl::StrCat(program, " ", kVersion),
                         "Prints the version.\ndefault: off; example: --version");
  root_ = std::make_unique<Command>(app_.get());
}

CommandLine::~CommandLine() = default;

void CommandLine::AddCommonFlags(Command& command) {
  CLI::App* app = command.app_;
  app->set_help_flag("-h,--help", "Prints this text.\ndefault: off; example: --help");
  app->get_help_ptr()->option_text("(switch)");
  for (const auto& below : command.children_) AddCommonFlags(*below);
  // Commands that only hold others have them, too, so that "cistern --json data inspect" works.
  command.Switch("--json", &common_->json,
                 {"", "Prints one JSON object on standard output.", "--json"});
  command.Choice("--log-level", &common_->log_level,
                 {"info|warning|error|off", "Lowest level to log.", "--log-level info"});
  command.Choice("--log-format", &common_->log_format,
                 {"text|json", "Form of the lines on standard error; json: an object a line.",
                  "--log-format json"});
  if (!command.body_) return;
  app->require_subcommand(0);  // with a body, its own commands are optional
  // The innermost command comes first.
  app->callback([this, chosen = &command] {
    if (common_->chosen == nullptr) common_->chosen = chosen;
  });
}

absl::Status CommandLine::ParseFailure(const std::string& message) const {
  const CLI::App* app = Deepest(app_.get());
  const std::vector<std::string> commands = KnownWords(app, false);
  const std::string word = UnknownWord(app_.get(), !commands.empty());
  const std::string help = absl::StrCat("see ", FullName(app), " --help");
  const bool needs_command = !commands.empty() && app->get_require_subcommand_min() > 0;
  if (word.empty() && needs_command) {
    return WithFix(absl::InvalidArgumentError(absl::StrCat(
                       FullName(app), ": name a command: ", absl::StrJoin(commands, ", "))),
                   help);
  }
  if (word.empty()) {
    return WithFix(absl::InvalidArgumentError(InOurWords(message)),
                   absl::StrCat(MissingFlagFix(app, message), help));
  }
  const bool is_flag = absl::StartsWith(word, "-");
  const bool is_command = !is_flag && !commands.empty();
  const std::string name = word.substr(0, word.find('='));
  const std::vector<std::string> known = KnownWords(app, is_flag);
  const std::string nearest = NearestName(name, known);
  if (is_flag && nearest == name) {
    return WithFix(absl::InvalidArgumentError(absl::StrCat(FullName(app), ": the flag '", name,
                                                           "' is written before the command")),
                   absl::StrCat("write it after the command: ", FullName(app), " ", name, " ..."));
  }
  const char* kind = is_flag ? "flag" : is_command ? "command" : "argument";
  std::string meant = nearest;
  if (!is_command) {
    const std::string own = OwnFlagFor(is_flag ? name : "-", KnownWords(app, true));
    if (!own.empty()) meant = is_flag ? own : absl::StrCat(own, " ", word);
  }
  return WithFix(
      absl::InvalidArgumentError(absl::StrCat(FullName(app), ": unknown ", kind, " '", name, "'")),
      meant.empty() ? help : absl::StrCat("did you mean '", meant, "'? ", help));
}

absl::StatusOr<Command*> CommandLine::Parse(int argc, const char* const* argv, std::string* help) {
  std::vector<std::string> words = NormalizeFlags({argv + std::min(argc, 1), argv + argc});
  CISTERN_RETURN_IF_ERROR(CheckValues(words));
  if (!words.empty() && words.front() == "help") {  // "cistern help serve"
    words.erase(words.begin());
    words.push_back("--help");
  }
  std::reverse(words.begin(), words.end());  // CLI11 pops words from the back
  try {
    app_->parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    const CLI::App* app = Deepest(app_.get());
    *help = app->help(app->get_parent() ? FullName(app->get_parent()) : "");
    return nullptr;
  } catch (const CLI::CallForVersion& version) {
    *help = absl::StrCat(version.what(), "\n");
    return nullptr;
  } catch (const CLI::ParseError& error) {
    return ParseFailure(error.what());
  }
  return common_->chosen;
}

int CommandLine::Run(int argc, const char* const* argv) {
  AddCommonFlags(*root_);
  LocalFileSystem files;
  const std::string program = absl::StrCat(app_->get_name(), " ", kVersion);
  if (const auto written = WriteManual(*app_, program, argc, argv, files))
    return Print(Report{{}, "", *written});
  std::string help;
  const auto command = Parse(argc, argv, &help);
  if (!command.ok()) return Print(command.status());
  if (*command == nullptr) {
    std::cout << help << std::flush;
    return static_cast<int>(ExitCode::kDone);
  }
  SetLogLevel(common_->log_level);
  SetLogFormat(common_->log_format);
  absl::StatusOr<Report> report = [&]() -> absl::StatusOr<Report> {
    Console console(stderr, common_->json);
    // Texts of the system that JSON cannot hold are escaped or refused where they are used. This is
    // for one that was overlooked: what is half done is cleaned up, as after any other error.
    try {
      return RunCommand(**command, console);
    } catch (const nlohmann::json::exception& error) {
      return absl::InternalError(absl::StrCat(
          "a name or text here is not UTF-8, and JSON cannot hold it: ", error.what()));
    }
  }();
  return Print(std::move(report));
}

absl::StatusOr<Report> CommandLine::RunCommand(const Command& command, Console& console) const {
  std::vector<CLI::Option*> options = PathOptions(command.app_);
  std::vector<PathFlag> flags;
  for (const CLI::Option* option : options) {
    flags.push_back({option->get_name(), option->results()});
  }
  // "train" of "cistern train"; the name of a program without commands.
  std::string name = FullName(command.app_);
  if (command.app_->get_parent() != nullptr) name = name.substr(name.find(' ') + 1);
  const std::vector<PathFlag> typed = flags;
  std::string note;
  for (size_t i = 0; i < flags.size(); ++i) {
    if (command.path_lists_.count(options[i]) == 0) continue;
    const std::string one = SplitPathFlag(&flags[i]);
    if (note.empty()) note = one;
  }
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<RemotePaths> paths,
                           RemotePaths::Take(name, &flags, &console));
  for (size_t i = 0; i < flags.size(); ++i) {
    if (flags[i].values != typed[i].values) SetValues(*options[i], flags[i].values);
    CISTERN_RETURN_IF_ERROR(CheckNotBelowFile(flags[i]));
  }
  absl::StatusOr<Report> report = paths->Finish(command.body()(console));
  return note.empty() ? report : WithNote(std::move(report), note);
}

int CommandLine::Print(absl::StatusOr<Report> result) const {
  Report report = result.ok() ? *std::move(result) : Report{{}, "", result.status()};
  int code = static_cast<int>(ExitCodeOf(report.outcome));
  if (!report.outcome.ok()) {
    report.json["error"] = MessageOf(report.outcome);
    report.json["fix"] = FixOf(report.outcome);
    report.json["exit_code"] = code;
  }
  std::cout << (common_->json ? JsonLine(report.json) : report.text) << std::flush;
  // A closed pipe is no failure: the reader (`head`) has seen enough. A full disk is one.
  if (report.outcome.ok() && !std::cout && errno != EPIPE) {
    report.outcome = absl::InternalError(absl::StrCat(
        "cannot write this command's result to standard output: ", std::strerror(errno)));
    code = static_cast<int>(ExitCode::kFailed);
  }
  if (!report.outcome.ok()) {
    const std::string error = ErrorText(report.outcome);
    std::cerr << (LogsJson()
                      ? JsonLogLine("error", std::string(absl::StripSuffix(error, "\n"))) + "\n"
                      : error)
              << std::flush;
  }
  return code;
}

}  // namespace cistern::cli
