// Identity, validation and comparison of schemas.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "proto/schema.pb.h"

namespace cistern {

// Hash of the canonical serialization; 0 for an empty schema, never 0 for one with tables.
uint64_t SchemaHash(const v1::Schema& schema);

// Limits on one schema, far above any model's needs: servers create tables for any caller.
inline constexpr int kMaxTables = 1024;                        // sparse and dense ones together
inline constexpr uint64_t kMaxDenseCells = uint64_t{1} << 30;  // rows x columns, over all tables
inline constexpr size_t kMaxSchemaBytes = size_t{4} << 20;     // serialized

// OK if every table has a usable layout, names are unique, each dense table has the columns and
// constants that its rule needs, and the schema is within the limits above; else kInvalidArgument.
absl::Status CheckSchema(const v1::Schema& schema);

// Describes the first difference: "table 'deep': dim is 16 here and 8 there". Empty if equal.
std::string SchemaDifference(const v1::Schema& here, const v1::Schema& there);

// The names of all tables, the dense ones last.
std::vector<std::string> TableNames(const v1::Schema& schema);

// Finds table `name` among the tables, or the dense tables, of a schema; null if it is not there.
template <typename Tables>
const typename Tables::value_type* FindTable(const Tables& tables, const std::string& name) {
  for (const auto& table : tables) {
    if (table.name() == name) return &table;
  }
  return nullptr;
}

}  // namespace cistern
