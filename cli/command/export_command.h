// cistern export: writes a trained model in the file formats of other programs.
#pragma once

#include "cli/terminal/command_line.h"

namespace cistern {

void AddExportCommands(Command& root);

}  // namespace cistern
