// Each reader of data files as a function of bytes that checks what the reader hands out.
#pragma once

#include <vector>

#include "test/fuzz/fuzz_target.h"

namespace cistern {

// norm, raw, file_list, keyset, metadata (a _metadata.json), parquet (where built). None lets a
// sample through that its format forbids.
const std::vector<FuzzTarget>& ReaderTargets();

}  // namespace cistern
