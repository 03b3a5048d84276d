// Finds columns that decide the label.
#pragma once

#include <string>
#include <vector>

#include "worker/data/prepare/label_choice.h"
#include "worker/data/prepare/table_profile.h"

namespace cistern {

// By column: why it decides the label of the sampled rows, or nothing. Such a column is mostly
// known only after the label is (a time of conversion, the price that was paid): a model that uses
// it predicts well here and never again.
//
// A column decides the label if its values, its order as a number, or whether it is missing leave
// almost no doubt. Tables of fewer than 200 sampled rows are not checked.
std::vector<std::string> FindLeaks(const TableProfile& profile, const LabelChoice& label);

}  // namespace cistern
