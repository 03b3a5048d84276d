// cistern table ls, show and hist: a fleet's tables, single rows, and the histogram of a field.
#pragma once

#include <string>

#include "app/fleet/fleet_session.h"
#include "cli/terminal/command_line.h"

namespace cistern::cli {

struct TableFlags {
  app::FleetOptions fleet;
  std::string recipe;      // of a key that is text
  std::string table, key;  // of show; empty: all
  std::string field;       // of hist; empty: show of ctr tables, norm of others
};

absl::StatusOr<Report> RunTableList(const TableFlags& flags);
// Without a key: reports the counts of one table or of all. With a key: reports its row, field by
// field. kNotFound: the servers hold no such table or key.
absl::StatusOr<Report> RunTableShow(const TableFlags& flags);

absl::StatusOr<Report> RunTableHistogram(const TableFlags& flags);

void AddTableCommands(Command& root);

}  // namespace cistern::cli
