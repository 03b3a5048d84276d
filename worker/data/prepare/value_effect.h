// Whether the values of a number mean something of their own, as those of an id do.
#pragma once

#include "worker/data/prepare/label_choice.h"
#include "worker/data/prepare/table_profile.h"

namespace cistern::data {

// How much more the click rates of neighbouring values jump than chance allows, in standard
// deviations: near 0 for a quantity, whose rates rise or fall smoothly, and large for codes, whose
// order says nothing. 0 if there are fewer than two triples of neighbours with both classes.
//
// Values are cut into triples of neighbours. In each, the rate of the middle value is compared with
// the mean of both others: the squared difference over its variance (if all orders of the rows of a
// triple are as likely), at most 10, so that a kink is no jump. It has mean 1 and, with many rows,
// variance 2 if rates are smooth; the sum is reduced to a standard normal deviate. Only sampled
// rows count.
double ValueEffect(const TableProfile& profile, const LabelChoice& label, size_t column);

// Deviates from which on the values of a column are codes: chance gives as much to one column of a
// million, or a bit more where pairs are few.
inline constexpr double kCodesFrom = 5;
// Below it, nothing speaks for codes.
inline constexpr double kQuantityUpTo = 1.5;

}  // namespace cistern::data
