// What each column of a text table is for.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/prepare/convert.h"

namespace cistern {

// Positions of columns in the table.
struct ColumnPlan {
  struct Slot {
    size_t column = 0;
    bool bucket = false;
    bool multi = false;
  };
  std::vector<size_t> label, dense;
  std::vector<Slot> slots;
};

// The columns of Criteo's TSV: label, I1..I13, C1..C26.
std::vector<std::string> CriteoColumns();

// Gives every column of `columns` its part. kInvalidArgument: a name that no column has, a column
// with two parts that exclude each other, or, where slots are listed, a column with none.
absl::StatusOr<ColumnPlan> PlanColumns(const ConvertOptions& options,
                                       const std::vector<std::string>& columns);

}  // namespace cistern
