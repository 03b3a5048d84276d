// Writes a server's range of a dense table to a row file, and reads it back.
#pragma once

#include "server/checkpoint/row_file.h"
#include "server/table/dense_table.h"

namespace cistern::server {

// Writes the whole range of `table` (written, not empty) as one section.
absl::Status AppendDenseSection(const DenseTable& table, TableId id, RowFileWriter& writer);

// Writes to `table` those cells of the file's sections of table `id` that are in its range. The
// sections may come from another number of servers.
absl::Status TakeDenseSections(const RowFileReader& file, TableId id, DenseTable& table);

}  // namespace cistern::server
