// Finds out what a table of text holds, and what a model would make of its columns.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "app/data/table_options.h"
#include "app/job_calls.h"
#include "common/base/status.h"
#include "worker/data/prepare/convert.h"
#include "worker/data/prepare/table_plan.h"
#include "worker/data/prepare/table_profile.h"
#include "worker/model/config/model_template.h"

namespace cistern::app {

struct InspectedTable {
  data::TableProfile profile;
  data::TablePlan plan;
};

// Reads the table once. Errors: those of FindLayout, ProfileTable and PlanTable, with a missing
// file as kInvalidArgument; kInvalidArgument, with a fix, if the kind of model does not fit the
// number of labels, or, for esmm, their order. kCancelled: stopped.
absl::StatusOr<InspectedTable> InspectTable(const std::string& path, const TableOptions& options,
                                            const JobCalls& calls);

// Columns with type, distinct and missing values, and role.
nlohmann::ordered_json JsonOf(const InspectedTable& table);

// The kind of model that options.model names, or that suits the table. Several labels need one that
// predicts several; InspectTable checks it.
model::ModelKind KindFor(const InspectedTable& table, const TableOptions& options);

// The rows that are trained, about.
struct TrainedRows {
  uint64_t rows = 0, rarer = 0;  // rarer: those of the rarer label
};
TrainedRows RowsToTrain(const InspectedTable& table, const TableOptions& options);

// Reports the rows that a conversion has read as an Amount without a total, and stops it.
// calls: outlives the result.
data::ConvertProgressCallback ReportRows(const JobCalls& calls, std::string what);

}  // namespace cistern::app
