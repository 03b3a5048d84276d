// cistern shrink: rows of ctr tables fade, and those that are not worth keeping go.
#pragma once

#include "cli/session/fleet_session.h"
#include "cli/session/precondition.h"
#include "cli/terminal/command_line.h"

namespace cistern {

struct ShrinkFlags {
  FleetFlags fleet;
  bool dry_run = false;  // only counts
  uint64_t day = 0;      // today, where rows keep days
  Precondition expected;
};

// Every server shrinks its shards, all at once; then the fleet commits.
absl::StatusOr<Report> RunShrink(const ShrinkFlags& flags, Console* console = nullptr);

void AddShrinkCommand(Command& root);

}  // namespace cistern
