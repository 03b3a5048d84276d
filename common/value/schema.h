// Identity of a schema, and what differs between two.
#pragma once

#include <string>

#include "common/base/status.h"
#include "proto/schema.pb.h"

namespace cistern {

// Hash of the canonical serialization; never 0 for a schema with tables, 0 for an empty one.
uint64_t SchemaHash(const v1::Schema& schema);

// What one schema may ask of a server, far above any model: servers create tables for any caller.
inline constexpr int kMaxTables = 1024;                        // sparse and dense ones together
inline constexpr uint64_t kMaxDenseCells = uint64_t{1} << 30;  // rows x columns, over all tables
inline constexpr size_t kMaxSchemaBytes = size_t{4} << 20;     // serialized

// OK if every table has a usable layout, no name occurs twice, each dense table has the columns and
// constants that its rule needs, and the whole stays within the limits above; else
// kInvalidArgument.
absl::Status CheckSchema(const v1::Schema& schema);

// The first difference, for people: "table 'deep': dim is 16 here and 8 there". Empty if equal.
std::string SchemaDifference(const v1::Schema& here, const v1::Schema& there);

// The table of `name` among the tables, or dense tables, of a schema; null if there is none.
template <typename Tables>
const typename Tables::value_type* FindTable(const Tables& tables, const std::string& name) {
  for (const auto& table : tables) {
    if (table.name() == name) return &table;
  }
  return nullptr;
}

}  // namespace cistern
