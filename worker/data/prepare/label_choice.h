// Finds the label of a table, and which of its values are positive.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/prepare/table_profile.h"

namespace cistern::data {

struct LabelChoice {
  size_t column = 0;
  // As in ConvertOptions: the texts of either class. negative: empty if the table holds too many
  // other values to list.
  std::vector<std::string> positive, negative;
  std::optional<double> threshold = {};  // in place of these: numbers above it are positive
  std::string note;                      // how it was found, for people

  // Whether a value of the column is positive.
  bool IsPositive(const std::string& text) const;
};

// Chooses the column `name`; without a name, the one with a usual name (label, click, clicked,
// is_click, target, y ...), else the only column that holds 0 and 1 and nothing else. A label of
// two other values is accepted too: yes and true are positive, else the larger number, or the rarer
// text. Texts that mean the same (value_text.h), such as yes and Yes, are one value.
//
// positive: the texts that are positive, where the label has other values; empty: found out.
// threshold: of a label of numbers, such as ratings, those above it are positive.
// kInvalidArgument, with the candidates: no such column, none or several to choose from, a label
// with one value only, with missing values, or with more than two values; a threshold that is not
// finite, is given with positive texts, for texts, or has no number or all of them above it.
absl::StatusOr<LabelChoice> ChooseLabel(const TableProfile& profile, const std::string& name,
                                        const std::vector<std::string>& positive,
                                        std::optional<double> threshold);

// The share of rows whose label is positive: of the sampled rows, if the profile does not list the
// values.
double ShareOfPositives(const TableProfile& profile, const LabelChoice& label);
// The rows that have the rarer label, by that share; all rows if there is one label only.
uint64_t RowsOfRarerLabel(const TableProfile& profile, const LabelChoice& label);

}  // namespace cistern::data
