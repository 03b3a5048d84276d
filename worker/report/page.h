// The report of one or more runs: one HTML page without scripts, fonts or other files, which
// therefore opens anywhere and stays readable.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/report/run_view.h"

namespace cistern::report {

inline constexpr size_t kMaxReportRuns = 12;

// The page. runs: 1 to kMaxReportRuns. made: when, as the page's footer says.
std::string ReportPage(const std::vector<RunView>& runs, const std::string& made);

// What the keys of a run are, for its page.
using KeyTextsOf = std::function<absl::StatusOr<KeyTexts>(const RunView& run)>;

// Reads the runs in `folders` and writes their page to `path`, whole or not at all. key_texts:
// called once for each run; null: keys are shown as they are. kInvalidArgument: no folder, or more
// than kMaxReportRuns. Other errors: those of ReadRun, and of writing.
absl::Status WriteReport(FileSystem& files, const std::vector<std::string>& folders,
                         const std::string& path, const KeyTextsOf& key_texts = nullptr);

}  // namespace cistern::report
