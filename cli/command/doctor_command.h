// cistern doctor: whether this machine is ready, and how to make it so.
#pragma once

#include <vector>

#include "cli/doctor/diagnosis.h"
#include "cli/terminal/command_line.h"

namespace cistern::cli {

// The text and JSON of findings. The outcome is kInternal (exit code 1) if any is a problem, or
// with `strict` a warning.
Report ReportOf(const MachineFacts& facts, const std::vector<Finding>& findings, bool strict);

void AddDoctorCommand(Command& root);

}  // namespace cistern::cli
