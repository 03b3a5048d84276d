// cistern certs: the certificates of a fleet behind TLS.
#pragma once

#include "cli/terminal/command_line.h"

namespace cistern::cli {

void AddCertsCommand(Command& root);

}  // namespace cistern::cli
