// Criteo's logs prepared as DLRM does.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/job_calls.h"
#include "common/base/status.h"
#include "worker/data/prepare/criteo.h"

namespace cistern::app {

struct CriteoDataOptions : data::CriteoOptions {  // `crosses` is filled from the option below
  std::vector<std::string> cross;                 // pairs of columns, "C1_C2"
};

// The words of CriteoOptions::dense, as people type them.
inline constexpr std::pair<const char*, data::CriteoDense> kCriteoDense[] = {
    {"log3", data::CriteoDense::kLog3},
    {"log1", data::CriteoDense::kLog1},
    {"minmax", data::CriteoDense::kMinMax}};

struct CriteoData : data::CriteoSummary {
  data::DataFormat format = data::DataFormat::kNorm;
  size_t crosses = 0;
  size_t wide_slots = 0;  // before the slots of the columns: one, or (not Norm) one a cross
};

// calls.amount counts rows. Errors of PrepareCriteo; kInvalidArgument, with options: a cross that
// is no pair of columns.
absl::StatusOr<CriteoData> PrepareCriteoData(CriteoDataOptions options, const JobCalls& calls);

nlohmann::ordered_json JsonOf(const CriteoData& data);

}  // namespace cistern::app
