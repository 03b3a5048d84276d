// Tells integers that number things from integers that measure.
#pragma once

#include "worker/data/prepare/label_choice.h"
#include "worker/data/prepare/table_profile.h"

namespace cistern::data {

// Whether a column of integers looks like ids: how often a value occurs says nothing about how
// often the next one does. Of a measure (counts, ages, prices), neighbours are about as frequent.
//
// Seen in profile.sample: false where its values hardly repeat, or where all are equally frequent,
// since either is true of some measures too; and where multiples of 10, 100 or 1000 are more
// frequent than the others, because people round amounts, but no numbers of things. Correlations of
// the logarithms of neighbours' counts: Criteo's counts 0.71 to 0.98, articles of a news site 0.13.
bool LooksLikeIds(const TableProfile& profile, size_t place);

// Whether neighbours are about as frequent, as those of a measure are. Not so where all values are
// equally frequent but for chance.
bool NeighboursAreAsFrequent(const TableProfile& profile, size_t place);

// Whether a column of integers that hardly repeat looks like amounts: they are not spread evenly,
// as counters and hashes are, and the click rate depends on their size.
bool LooksLikeAmounts(const TableProfile& profile, const LabelChoice& label, size_t place);

}  // namespace cistern::data
