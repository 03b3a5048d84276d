// The column of a table that holds the weights of its rows.
#pragma once

#include "common/base/status.h"
#include "worker/data/prepare/label_choice.h"
#include "worker/data/prepare/table_profile.h"

namespace cistern::data {

// Whether a column looks like weights of samples, by its name and its numbers.
bool LooksLikeSampleWeight(const ColumnProfile& column);

// kInvalidArgument, with the column and why, unless its values can be weights: numbers from 0 on,
// none missing, not all of them 0. (Conversion refuses single weights that are too large.)
absl::Status CheckSampleWeight(const ColumnProfile& column);

// As ShareOfPositives, weighted by the column `weight`, over the sampled rows.
double WeightedShareOfPositives(const TableProfile& profile, const LabelChoice& label,
                                size_t weight);

}  // namespace cistern::data
