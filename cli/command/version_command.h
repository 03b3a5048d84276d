// cistern version: describes this build and this machine.
#pragma once

#include "cli/terminal/command_line.h"

namespace cistern {

// The version, the build, and the GPUs of this machine.
Report VersionReport();

void AddVersionCommand(Command& root);

}  // namespace cistern
