// cistern shrink: decays the statistics of ctr tables and removes rows that are not worth keeping.
#pragma once

#include "cli/terminal/command_line.h"

namespace cistern::cli {

void AddShrinkCommand(Command& root);

}  // namespace cistern::cli
