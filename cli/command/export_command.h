// cistern export: a trained model in the files of other programs.
#pragma once

#include "cli/terminal/command_line.h"

namespace cistern {

void AddExportCommands(Command& root);

}  // namespace cistern
