// cistern diagnose: the facts about a fault, in a folder.
#pragma once

#include "cli/terminal/command_line.h"

namespace cistern::cli {

void AddDiagnoseCommand(Command& root);

}  // namespace cistern::cli
