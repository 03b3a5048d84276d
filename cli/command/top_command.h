// cistern top: the servers of a fleet, shown again and again.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/fleet/fleet_rates.h"
#include "cli/terminal/command_line.h"

namespace cistern::cli {

// One row per server with what it does a second, and their sums. most_servers: further ones are
// only counted.
std::string TopText(const app::FleetMoment& moment,
                    const std::vector<std::optional<app::ServerRates>>& rates, size_t most_servers);

void AddTopCommand(Command& root);

}  // namespace cistern::cli
