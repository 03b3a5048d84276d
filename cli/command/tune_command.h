// cistern tune: searches learning rate, embedding dimension and depth.
#pragma once

#include "cli/terminal/command_line.h"

namespace cistern::cli {

void AddTuneCommand(Command& root);

}  // namespace cistern::cli
