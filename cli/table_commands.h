// cistern table ls and cistern table show: what a fleet's tables are, and single rows.
#pragma once

#include <string>

#include "cli/command_line.h"
#include "cli/fleet_session.h"

namespace cistern {

struct TableFlags {
  FleetFlags fleet;
  std::string table, key;  // show; empty: all
};

absl::StatusOr<Report> RunTableList(const TableFlags& flags);
// Without a key: the counts of one table or all. With one: its row, field by field.
// kNotFound: the servers hold no such table or key.
absl::StatusOr<Report> RunTableShow(const TableFlags& flags);

// A key as a person types it: decimal, or hexadecimal behind 0x. kInvalidArgument if it is neither.
absl::StatusOr<Key> ParseKey(const std::string& text);

void AddTableCommands(Command& root);

}  // namespace cistern
