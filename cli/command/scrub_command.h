// cistern scrub: what running servers hold, compared with the digests that they kept.
#pragma once

#include <string>

#include "cli/session/fleet_session.h"
#include "cli/terminal/command_line.h"

namespace cistern {

// Asks every server, also after one has found something. 5 if any has; the others' results are
// shown all the same.
absl::StatusOr<Report> ScrubServers(ParameterClient& client, bool files,
                                    Console* console = nullptr);

void AddScrubCommand(Command& root);

}  // namespace cistern
