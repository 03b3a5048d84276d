// train --more: the data with which a finished run continues.
#pragma once

#include <string>

#include "cli/terminal/report.h"
#include "common/base/status.h"

namespace cistern {

// A source that the model can read for `file`: the file itself or, for text (*.csv, *.tsv), a data
// set OUT/more/NAME that is converted by the recipe of the run in `out`.
//
// kInvalidArgument, with a fix: the run has no recipe, or there are several workers, of which each
// would convert.
absl::StatusOr<std::string> ConvertMore(const std::string& out, const std::string& file,
                                        uint32_t workers, Console& console);

}  // namespace cistern
