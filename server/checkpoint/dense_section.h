// A server's range of a dense table, to and from row files.
#pragma once

#include "server/checkpoint/row_file.h"
#include "server/table/dense_table.h"

namespace cistern {

// Writes the whole range of `table` (written, not empty) as one section.
absl::Status AppendDenseSection(const DenseTable& table, TableId id, RowFileWriter& writer);

// Writes those cells of the file's sections of table `id` into `table` that lie in its range: the
// sections may be of another number of servers.
absl::Status TakeDenseSections(const RowFileReader& file, TableId id, DenseTable& table);

}  // namespace cistern
