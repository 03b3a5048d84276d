// Several labels of a table, each of which a head of the model predicts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "worker/data/prepare/label_choice.h"

namespace cistern::data {

// The labels that `given` names: the column of this name, else what is between its commas. Empty
// for an empty `given`.
std::vector<std::string> LabelNames(absl::Span<const std::string> columns,
                                    const std::string& given);

// A choice for each of these labels, in their order. Rows whose label is -1 or missing have no
// known label.
//
// kInvalidArgument: no such column, or one that is named twice; a column with other values than 1,
// 0 and -1, or with one known value only.
absl::StatusOr<std::vector<LabelChoice>> ChooseHeads(const TableProfile& profile,
                                                     absl::Span<const std::string> names);

struct HeadRows {
  uint64_t positive = 0, known = 0;
  double share() const {
    return known == 0 ? 0 : static_cast<double>(positive) / static_cast<double>(known);
  }
  uint64_t rarer() const { return positive < known - positive ? positive : known - positive; }
};
HeadRows RowsOf(const TableProfile& profile, const LabelChoice& head);

// Of the sampled rows in which `later` is 1: those in which `earlier` is 0, though a purchase, for
// example, needs a click.
struct BrokenOrder {
  uint64_t rows = 0, of = 0;
};
BrokenOrder OrderOf(const TableProfile& profile, const LabelChoice& earlier,
                    const LabelChoice& later);

}  // namespace cistern::data
