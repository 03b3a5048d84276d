// What a report shows for the keys of a run: the text, the range or the stand-in that a key is of.
#pragma once

#include <string>
#include <vector>

#include "app/job_calls.h"
#include "common/base/status.h"
#include "worker/report/run_view.h"

namespace cistern::app {

// The texts of the worst-calibrated keys of the run's study. The recipe alone tells the buckets of
// numbers ("12.2 to 13.5"), missing and rare values; hashed texts are searched in `tables`, which
// the recipe describes. Without a study or a recipe there are none.
// Errors: those of reading the recipe and the tables.
absl::StatusOr<report::KeyTexts> TextsOfKeys(const report::RunView& run,
                                             const std::vector<std::string>& tables,
                                             const JobCalls& calls);

}  // namespace cistern::app
