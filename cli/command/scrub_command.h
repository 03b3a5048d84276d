// cistern scrub: makes running servers compare their rows with the digests that they recorded.
#pragma once

#include <string>

#include "app/fleet/fleet_session.h"
#include "cli/terminal/command_line.h"

namespace cistern {

// Asks every server, even after one has found a fault, and reports all results. The outcome is exit
// code 5 if any server found a fault.
absl::StatusOr<Report> ScrubServers(ParameterClient& client, bool files,
                                    Console* console = nullptr);

void AddScrubCommand(Command& root);

}  // namespace cistern
