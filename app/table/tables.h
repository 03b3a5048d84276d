// The tables of a fleet with their counts, and single rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/types.h"
#include "proto/control_plane.pb.h"
#include "worker/client/parameter_client.h"

namespace cistern::app {

// The counts of one table over the whole fleet.
struct TableCounts {
  std::string name, kind;  // kind: the accessor's name, or "dense"
  uint64_t width = 0;      // floats per row
  uint64_t rows = 0, embedx_rows = 0, value_bytes = 0, memory_bytes = 0;
};

// All tables in order of their ids, sparse before dense.
absl::StatusOr<std::vector<TableCounts>> CountTables(ParameterClient& client);

// The same for one of them. kNotFound, with a fix: there is no such table.
absl::StatusOr<TableCounts> CountTable(ParameterClient& client, const std::string& name);

// The id of a sparse table. kNotFound, with a fix: there is no such table; kInvalidArgument: it is
// dense.
absl::StatusOr<TableId> FindSparseTable(const v1::Schema& schema, const std::string& name);

struct FoundRow {
  std::string server;   // that holds the shard of the key
  v1::GetRowReply row;  // row.found() may be false
};

// kNotFound, kInvalidArgument: as FindSparseTable; also for the reserved key.
absl::StatusOr<FoundRow> FindRow(ParameterClient& client, const std::string& table, Key key);

// Parses a key: decimal, or hexadecimal after 0x. kInvalidArgument if it is neither.
absl::StatusOr<Key> ParseKey(const std::string& text);

// The key of "COLUMN=TEXT" by the recipe in `folder`, a data set or a run. kInvalidArgument: the
// text is not one value of the column.
absl::StatusOr<Key> KeyOfText(const std::string& text, const std::string& folder);

}  // namespace cistern::app
