// cistern scrub: makes running servers compare their rows with the digests that they recorded.
#pragma once

#include "app/admin/scrub_fleet.h"
#include "cli/terminal/command_line.h"

namespace cistern::cli {

// The outcome is exit code 5 if a server found a fault.
Report ScrubReport(const app::ScrubResult& result);

void AddScrubCommand(Command& root);

}  // namespace cistern::cli
