// cistern plan: estimates the memory and disk that a model needs on servers and workers.
#pragma once

#include "cli/terminal/command_line.h"

namespace cistern::cli {

void AddPlanCommand(Command& root);

}  // namespace cistern::cli
