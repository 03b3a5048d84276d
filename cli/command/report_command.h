// cistern report: one HTML page about one or more training runs.
#pragma once

#include "cli/terminal/command_line.h"

namespace cistern::cli {

void AddReportCommand(Command& root);

}  // namespace cistern::cli
