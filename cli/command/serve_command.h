// cistern serve: a serving folder on the network, over the Open Inference Protocol.
#pragma once

#include "cli/terminal/command_line.h"

namespace cistern::cli {

// Announces {"ready":true,...} once it answers, and ends at SIGINT or SIGTERM, after the requests
// in flight.
void AddServeCommand(Command& root);

}  // namespace cistern::cli
