// cistern version: describes this build and this machine.
#pragma once

#include "cli/terminal/command_line.h"

namespace cistern::cli {

void AddVersionCommand(Command& root);

}  // namespace cistern::cli
