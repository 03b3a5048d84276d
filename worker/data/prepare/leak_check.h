// Finds columns that decide the label.
#pragma once

#include <string>
#include <vector>

#include "worker/data/prepare/label_choice.h"
#include "worker/data/prepare/table_profile.h"

namespace cistern::data {

struct Leak {
  std::string why;       // empty: it is none
  bool is_sure = false;  // else it may be a feature that is just very good
};

// By column: why it decides the label of the sampled rows, or nearly so. Such a column is mostly
// known only after the label is (a time of conversion, the price that was paid): a model that uses
// it predicts well here and never again.
//
// A column decides the label if its values, its order as a number, or whether it is missing leave
// almost no doubt; in a part of the rows, if all rows with another value than the most frequent
// one, or all that have one value of few, are positive, or all in which it is there (or missing)
// are of one class, and they are too many for chance: a purchase is only known after the click. So
// does a column with a name of such feedback and a high AUC. Not sure are others that alone have an
// AUC of 0.9, as noisy copies of the label have, or whose values other than the most frequent one
// are mostly of positive rows. Tables of fewer than 200 sampled rows are not checked.
std::vector<Leak> FindLeaks(const TableProfile& profile, const LabelChoice& label);

}  // namespace cistern::data
