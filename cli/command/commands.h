// Adds all commands of `cistern`, in the order in which --help lists them.
#pragma once

#include "cli/terminal/command_line.h"

namespace cistern::cli {

void AddAllCommands(Command& root);

}  // namespace cistern::cli
