// Slots whose values the training data does not know, and numbers of another size than its.
#pragma once

#include <string>
#include <vector>

#include "worker/data/prepare/convert.h"

namespace cistern::data {

// The sentences about odd fields of `fresh` that `training` has not, a sentence for each slot of
// which more than half of the values are not in the vocabulary of its recipe, and for each column
// of numbers of which more than a fifth is far beyond those of the training data, as amounts in
// cents are where euros were. The values of such a slot: they share one key, or have none, so the
// model knows nothing about them. Slots in which most values of the training data are rare as well
// are left out.
//
// fresh: converted by the recipe of the training data. training: null if it is not known; then more
// than 95 % must be unknown.
std::vector<std::string> UnseenValues(const ConvertSummary& fresh, const ConvertSummary* training);

// The same for data with which a model continues, whose new values get keys of their own: a
// sentence for each column of which more than half of the values are new.
std::vector<std::string> NewValues(const std::vector<GrownColumn>& grown);

}  // namespace cistern::data
