// train --more: the data with which a finished run continues.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal/report.h"
#include "common/base/status.h"

namespace cistern {

struct MoreData {
  std::string source;
  uint64_t max_keys = 0;  // of a sample, over all slots; 0: not converted, so not known
};

// A source that the model can read for `file`: the file itself or, for a table (*.csv, *.tsv,
// *.parquet), a data set OUT/more/NAME that is converted by the recipe of the run in `out`.
//
// taken: what earlier files of the same command became; two files never share a place.
//
// kInvalidArgument, with a fix: the run has no recipe, or there are several workers, each of which
// would convert.
absl::StatusOr<MoreData> ConvertMore(const std::string& out, const std::string& file,
                                     const std::vector<std::string>& taken, uint32_t workers,
                                     Console& console);

}  // namespace cistern
