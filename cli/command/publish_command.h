// cistern publish: keeps a serving folder at the newest commit of a training.
#pragma once

#include "cli/terminal/command_line.h"

namespace cistern {

void AddPublishCommand(Command& root);

}  // namespace cistern
