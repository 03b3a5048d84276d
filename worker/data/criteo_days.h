// The days that are prepared: their text, cut into blocks for any number of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/status.h"
#include "worker/data/criteo.h"
#include "worker/data/criteo_block.h"
#include "worker/data/mapped_file.h"

namespace cistern {

// Threads: immutable once opened; any thread.
struct CriteoDays {
  std::vector<std::unique_ptr<MappedFile>> texts;
  std::vector<CriteoBlock> blocks;  // in the order of the days
  uint64_t bytes = 0;
  bool is_test(const CriteoBlock& block) const { return block.day + 1 == texts.size(); }
};

// kInvalidArgument: options that do not fit each other, or a file that is not there.
absl::StatusOr<CriteoDays> OpenCriteoDays(const CriteoOptions& options);

// All that decides what the files of the work folder hold. Files that change keep no promise.
std::string CriteoPlan(const CriteoOptions& options, const CriteoDays& days);

}  // namespace cistern
