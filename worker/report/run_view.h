// A run folder as a report shows it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/base/types.h"
#include "common/io/file_system.h"
#include "worker/report/run_history.h"
#include "worker/report/run_record.h"
#include "worker/report/score_detail.h"
#include "worker/report/slot_study.h"

namespace cistern::report {

// What a key stands for, by the name of its slot: "paris", "12.2 to 13.5", "(missing)".
using KeyTexts = std::map<std::pair<std::string, Key>, std::string>;

struct RunView {
  std::string name;    // the last part of the folder's path, or more if two runs share it
  std::string folder;  // as the user wrote it
  RunHistory history;
  // Absent: the run is older than these files, or has not written them yet.
  std::optional<RunRecord> record;
  std::optional<ScoreDetail> scores;
  std::optional<ModelStudy> study;
  // The columns of the recipe in the folder, by slot (of all inputs in order) and dense feature;
  // empty without a recipe.
  std::vector<std::string> slot_names, dense_names;
  KeyTexts key_texts;  // of the worst-calibrated keys, as far as they are known

  // "city", or "data1[0]" without a recipe; `index` counts the slots of all inputs.
  std::string SlotName(const SlotStudy& slot, size_t index) const;
};

// Removes what an earlier run left in `folder`, which would be shown as that of a new one. Ignores
// errors: a file that stays is only out of date.
void RemoveReportFiles(FileSystem& files, const std::string& folder);

// Reads the run in `folder`. kNotFound: it holds no metrics.jsonl. kDataLoss: a file is damaged or
// of another version; the message names it. kResourceExhausted: a file is too large to be one.
absl::StatusOr<RunView> ReadRun(FileSystem& files, const std::string& folder);

}  // namespace cistern::report
