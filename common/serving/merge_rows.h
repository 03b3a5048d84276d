// Several files of rows become one.
#pragma once

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/serving/rows_encoder.h"
#include "common/serving/rows_file.h"

namespace cistern {

// Writes one file with the newest row of each key of `layers` (at least one), oldest first, all
// of one shape.
// keep_removed: rows that are removed stay as such; else they are left out.
//
// Memory: 8 bytes a row. kDataLoss: the rows of a layer are not in their order, so it is corrupt.
absl::Status MergeRows(absl::Span<const RowsView* const> layers, bool keep_removed,
                       RowsEncoder* out);

}  // namespace cistern
