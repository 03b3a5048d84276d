// cistern init: inspects a table, and writes a model file and a recipe for it.
#pragma once

#include "cli/terminal/command_line.h"

namespace cistern::cli {

void AddInitCommand(Command& root);

}  // namespace cistern::cli
