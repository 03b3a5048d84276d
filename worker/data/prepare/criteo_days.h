// The input days: their text, cut into blocks for any number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "common/io/mapped_file.h"
#include "worker/data/prepare/criteo.h"
#include "worker/data/prepare/criteo_block.h"
#include "worker/data/prepare/work_folder.h"

namespace cistern::data {

// Threads: immutable once opened; any thread.
struct CriteoDays {
  std::vector<std::unique_ptr<MappedFile>> texts;
  std::vector<CriteoBlock> blocks;  // in the order of the days
  uint64_t bytes = 0;
  bool is_test(const CriteoBlock& block) const { return block.day + 1 == texts.size(); }
};

// kInvalidArgument: options that contradict each other, or a missing file.
absl::Status CheckCriteoOptions(const CriteoOptions& options);

// The plan of a WorkFolder: everything that determines the contents of its files. It includes the
// size and modification time of each day, so a changed day starts over.
std::string CriteoPlan(const CriteoOptions& options);

// Returns the path of the text of `day`: the file itself, or for a compressed one, a decompressed
// copy in `work`, which is created unless an earlier run left a complete one. step: called every
// few MB; its error stops the decompression. kDataLoss: the file is cut short or corrupt.
absl::StatusOr<std::string> TextOfDay(FileSystem& files, const CriteoOptions& options, size_t day,
                                      const WorkFolder& work,
                                      const std::function<absl::Status()>& step);

// texts: paths of the days' text, in order.
absl::StatusOr<CriteoDays> OpenCriteoDays(const CriteoOptions& options,
                                          const std::vector<std::string>& texts);

}  // namespace cistern::data
