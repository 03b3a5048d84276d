// cistern table ls, show and hist: a fleet's tables, single rows, and the histogram of a field.
#pragma once

#include <string>

#include "app/fleet/fleet_session.h"
#include "cli/terminal/command_line.h"

namespace cistern {

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

// The histogram of one field over all rows of `table`. kNotFound: no such table. kInvalidArgument:
// no such field, or the table is dense.
absl::StatusOr<Report> TableHistogram(ParameterClient& client, const std::string& table,
                                      const std::string& field);
absl::StatusOr<Report> RunTableHistogram(const TableFlags& flags);

// Parses a key: decimal, or hexadecimal after 0x. kInvalidArgument if it is neither.
absl::StatusOr<Key> ParseKey(const std::string& text);

void AddTableCommands(Command& root);

}  // namespace cistern
