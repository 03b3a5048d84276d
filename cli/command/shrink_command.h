// cistern shrink: decays the statistics of ctr tables and removes rows that are not worth keeping.
#pragma once

#include "app/fleet/fleet_session.h"
#include "app/fleet/precondition.h"
#include "cli/terminal/command_line.h"

namespace cistern {

struct ShrinkFlags {
  app::FleetOptions fleet;
  bool dry_run = false;  // only counts
  uint64_t day = 0;      // today's day number, for tables whose rows record days
  app::Precondition expected;
};

// All servers shrink their shards in parallel; then the fleet commits.
absl::StatusOr<Report> RunShrink(const ShrinkFlags& flags, Console* console = nullptr);

void AddShrinkCommand(Command& root);

}  // namespace cistern
