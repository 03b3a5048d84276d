// Fuzz targets for the readers of data files. They check the output of each reader.
#pragma once

#include <vector>

#include "test/fuzz/fuzz_target.h"

namespace cistern {

// norm, raw, file_list, keyset, metadata (a _metadata.json), message (of a topic), parquet (if
// built). They abort if a
// reader accepts a sample that its format forbids.
const std::vector<FuzzTarget>& ReaderTargets();

}  // namespace cistern
