// cistern serving: manages a serving folder. Needs neither servers nor a model file.
#pragma once

#include "cli/terminal/command_line.h"

namespace cistern::cli {

// Adds `serving ls`, `serving verify` and `serving rollback`.
void AddServingCommands(Command& root);

}  // namespace cistern::cli
