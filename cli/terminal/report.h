// What a command hands back, and where its words go.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "common/base/status.h"

namespace cistern {

// The result of a command: the same facts for a script (json) and for a person (text). `outcome`
// not OK: there is something to show, and the command still failed (a server of two is down; a run
// was interrupted).
struct Report {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  std::string text;  // whole lines
  absl::Status outcome;
};

// Standard error of a program: progress and remarks. Results never go here.
//
// Threads: one at a time.
class Console {
 public:
  // stream: borrowed. A terminal gets lines that update in place.
  explicit Console(std::FILE* stream);
  ~Console();  // leaves the updating line, and the cursor below it
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  bool is_terminal() const { return is_terminal_; }
  int columns() const;
  // Writes a line; an updating line is wiped first.
  void Say(const std::string& line);
  // Replaces the updating line (terminals only); an empty line wipes it.
  void Update(const std::string& line);

 private:
  std::FILE* const stream_;
  const bool is_terminal_;
  bool updating_ = false;
};

}  // namespace cistern
