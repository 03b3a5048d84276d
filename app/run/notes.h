// What a job says while it works: lines for a person, which change nothing.
#pragma once

#include <functional>
#include <string>

namespace cistern::app {

// Called from the thread of the job, with one line: "note: the servers hold a model".
using OnNote = std::function<void(const std::string& line)>;

}  // namespace cistern::app
