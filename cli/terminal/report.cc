#include "cli/terminal/report.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "absl/strings/str_replace.h"
#include "cli/terminal/exit_code.h"
#include "common/base/log.h"

namespace cistern::cli {

std::string JsonLine(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

namespace {

// The value of a variable; empty if it is not set.
std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool CanUpdate(std::FILE* stream) {
  const std::string kind = Variable("TERM");
  return !LogsJson() && isatty(fileno(stream)) == 1 && !kind.empty() && kind != "dumb";
}

}  // namespace

Console::Console(std::FILE* stream, bool json)
    : stream_(stream),
      is_terminal_(CanUpdate(stream)),
      has_colour_(is_terminal_ && Variable("NO_COLOR").empty()),
      json_(json) {}

Console::~Console() {
  if (updating_) std::fputc('\n', stream_);
}

int Console::columns() const {
  winsize size{};
  const bool known = ioctl(fileno(stream_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

void Console::Say(const std::string& line) {
  const std::string shown = LogsJson() ? JsonLogLine("info", Shown(line)) : Shown(line);
  std::fprintf(stream_, "%s%s\n", updating_ ? "\r\x1b[K" : "", shown.c_str());
  std::fflush(stream_);
  updating_ = false;
}

void Console::Update(const std::string& line) {
  if (!is_terminal_ || (line.empty() && !updating_)) return;
  std::fprintf(stream_, "\r%s\x1b[K", Shown(line).c_str());
  std::fflush(stream_);
  updating_ = !line.empty();
}

void Console::Announce(const Report& given) const {
  const Report report = Shown(given);
  std::cout << (json_ ? JsonLine(report.json) : report.text) << std::flush;
}

void Console::ShowInstead(const std::string& path, const std::string& shown) {
  shown_instead_.emplace_back(path, shown);
}

std::string Console::Shown(const std::string& text) const {
  return shown_instead_.empty() ? text : absl::StrReplaceAll(text, shown_instead_);
}

Report Console::Shown(Report report) const {
  if (shown_instead_.empty()) return report;
  report.text = Shown(report.text);
  // The text of a path may be anywhere in the object; it has no character that JSON escapes.
  report.json = nlohmann::ordered_json::parse(Shown(JsonLine(report.json)), nullptr, false);
  report.outcome = WithMessage(report.outcome, Shown(std::string(report.outcome.message())));
  report.outcome = WithFix(report.outcome, Shown(FixOf(report.outcome)));
  return report;
}

}  // namespace cistern::cli
