// cistern demo: trains, saves and loads a small model with real processes, in under a minute.
#pragma once

#include "cli/terminal/command_line.h"

namespace cistern::cli {

void AddDemoCommand(Command& root);

}  // namespace cistern::cli
