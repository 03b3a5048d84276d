// The result of a command, and the console for its progress and notes.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"

namespace cistern::cli {

// One line. Paths may hold any bytes, but JSON only UTF-8: invalid bytes become U+FFFD.
std::string JsonLine(const nlohmann::ordered_json& json);

// The result of a command: the same facts for a script (json) and for a person (text). A command
// can fail and still have something to show; then `outcome` is not OK (one of two servers is down;
// a run was interrupted).
struct Report {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  std::string text;  // whole lines
  absl::Status outcome;
};

// A program's standard error: progress and notes. Results never go here.
//
// Threads: one at a time.
class Console {
 public:
  // stream: borrowed. Lines update in place only on a terminal that can (TERM is set, and is not
  // "dumb"), unless logs are JSON: then all lines are. json: results are JSON.
  explicit Console(std::FILE* stream, bool json = false);
  ~Console();  // keeps the updating line and moves the cursor below it
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  bool is_terminal() const { return is_terminal_; }
  // A terminal, and the variable NO_COLOR is not set (no-color.org).
  bool has_colour() const { return has_colour_; }
  int columns() const;
  // Writes a permanent line in place of the updating one, if any.
  void Say(const std::string& line);
  // Replaces the updating line (terminals only); an empty line erases it.
  void Update(const std::string& line);
  // Prints a result to standard output now, while the command runs on: its text, or a line of JSON.
  void Announce(const Report& report) const;

  // From now on, text shows `shown` in place of the path `path` (remote_paths.h).
  void ShowInstead(const std::string& path, const std::string& shown);
  // `text` as printed.
  std::string Shown(const std::string& text) const;
  Report Shown(Report report) const;

 private:
  std::FILE* const stream_;
  const bool is_terminal_, has_colour_, json_;
  bool updating_ = false;
  std::vector<std::pair<std::string, std::string>> shown_instead_;
};

}  // namespace cistern::cli
