// Assigns a role to each column of a text table.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "worker/data/prepare/convert.h"

namespace cistern::data {

// Column indices in the table, by role.
struct ColumnPlan {
  struct Slot {
    size_t column = 0;
    bool bucket = false;
    bool multi = false;
    std::optional<size_t> shares = {};         // the column whose keys it has
    bool key_weights = false;                  // its keys keep the weights of its values
    std::optional<size_t> weight_column = {};  // of these weights, if they are in another column
  };
  std::vector<size_t> label, dense;
  std::optional<size_t> weight;
  std::vector<Slot> slots;
  std::vector<std::vector<Slot>> crosses;
};

// The two columns of one of ConvertOptions::key_weights; the second is empty if there is none.
std::pair<std::string, std::string> KeyWeightColumns(const std::string& given);

// Assigns a role to every column of `columns`. kInvalidArgument: an unknown column name, a column
// with two conflicting roles, or, if options.sparse is set, a column without a role.
absl::StatusOr<ColumnPlan> PlanColumns(const ConvertOptions& options,
                                       const std::vector<std::string>& columns);

}  // namespace cistern::data
