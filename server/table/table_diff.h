// The differences between two tables, row by row and bit by bit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/table/dense_table.h"
#include "server/table/sparse_table.h"

namespace cistern::server {

struct TableDifference {
  uint64_t rows_a = 0, rows_b = 0;
  uint64_t digest_a = 0, digest_b = 0;
  uint64_t added = 0, removed = 0, changed = 0;  // from a to b
  // The first keys met of each kind, up to a limit. For a dense table: row numbers.
  std::vector<Key> added_keys, removed_keys, changed_keys;

  bool same() const { return added == 0 && removed == 0 && changed == 0; }
};

// Adds the differences to *difference. examples: how many keys of each kind to record. b may have
// another placement, but must own every key of a.
//
// kInvalidArgument if the layouts have different cells; then only rows and digests are added.
absl::Status DiffTables(const SparseTable& a, const SparseTable& b, size_t examples,
                        TableDifference* difference);
// The same for dense tables with the same range and the same columns.
absl::Status DiffDenseTables(const DenseTable& a, const DenseTable& b, size_t examples,
                             TableDifference* difference);

}  // namespace cistern::server
