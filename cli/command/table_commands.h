// cistern table ls, show and hist: what a fleet's tables are, single rows, and one field of all.
#pragma once

#include <string>

#include "cli/session/fleet_session.h"
#include "cli/terminal/command_line.h"

namespace cistern {

struct TableFlags {
  FleetFlags fleet;
  std::string table, key;  // show; empty: all
  std::string field;       // hist; empty: the one that says most
};

absl::StatusOr<Report> RunTableList(const TableFlags& flags);
// Without a key: the counts of one table or all. With one: its row, field by field.
// kNotFound: the servers hold no such table or key.
absl::StatusOr<Report> RunTableShow(const TableFlags& flags);

// How often the numbers of one field of `table` occur. kNotFound, kInvalidArgument: no such table
// or field.
absl::StatusOr<Report> TableHistogram(ParameterClient& client, const std::string& table,
                                      const std::string& field);
absl::StatusOr<Report> RunTableHistogram(const TableFlags& flags);

// A key as a person types it: decimal, or hexadecimal behind 0x. kInvalidArgument if it is neither.
absl::StatusOr<Key> ParseKey(const std::string& text);

void AddTableCommands(Command& root);

}  // namespace cistern
