// A reader that leaves out bad files.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "worker/data/format/bad_data.h"
#include "worker/data/format/sample_reader.h"

namespace cistern::data {

// Reads `paths` one after the other. Where a file is bad (IsBadData), counts it in `bad` and goes
// on with the next one; the samples before the bad place are kept. Other errors are passed on.
//
// Which samples are kept depends on the files only, not on how the reader is called: it reads each
// file in blocks of a fixed size, and skips by reading. So a resumed run continues exactly.
//
// open: opens one file. inputs: sparse inputs of a sample. most: samples to read at most; 0: all.
// bad: outlives the reader. kDataLoss from Read: there are files, and all of them were left out,
// unless the reader may be empty.
absl::StatusOr<std::unique_ptr<SampleReader>> OpenSkippingBadFiles(
    const std::vector<std::string>& paths, size_t inputs, uint64_t most,
    std::function<absl::StatusOr<std::unique_ptr<SampleReader>>(const std::string& path)> open,
    BadData* bad, bool may_be_empty = false);

}  // namespace cistern::data
