// The days that are prepared: their text, cut into blocks for any number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/data/format/mapped_file.h"
#include "worker/data/prepare/criteo.h"
#include "worker/data/prepare/criteo_block.h"
#include "worker/data/prepare/work_folder.h"

namespace cistern {

// Threads: immutable once opened; any thread.
struct CriteoDays {
  std::vector<std::unique_ptr<MappedFile>> texts;
  std::vector<CriteoBlock> blocks;  // in the order of the days
  uint64_t bytes = 0;
  bool is_test(const CriteoBlock& block) const { return block.day + 1 == texts.size(); }
};

// kInvalidArgument: options that do not fit each other, or a file that is not there.
absl::Status CheckCriteoOptions(const CriteoOptions& options);

// All that decides what the files of the work folder hold. Files that change keep no promise.
std::string CriteoPlan(const CriteoOptions& options);

// Where the text of `day` is: the file itself, or, of one in gzip's format, a file of `work` that
// is made where an earlier run has not left it whole. step: called every few MB; its error ends
// the making. kDataLoss: the file is cut short or corrupt.
absl::StatusOr<std::string> TextOfDay(FileSystem& files, const CriteoOptions& options, size_t day,
                                      const WorkFolder& work,
                                      const std::function<absl::Status()>& step);

// texts: of the days, in their order.
absl::StatusOr<CriteoDays> OpenCriteoDays(const CriteoOptions& options,
                                          const std::vector<std::string>& texts);

}  // namespace cistern
