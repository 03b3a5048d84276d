// How far the log-odds of all predictions must move so that their mean is right.
#pragma once

#include <vector>

#include "worker/report/score_bins.h"

namespace cistern {

// The share of positives to expect: that of the scored samples, shrunk toward `share` by
// kPriorPositives positives, in log-odds. With few positives among the samples, their number says
// little; with many, it says more than the share of earlier data.
//
// bins: of an evaluation, with at least one sample. share: between 0 and 1.
inline constexpr double kPriorPositives = 100;
double ExpectedShare(const std::vector<ScoreBin>& bins, double share);

// The shift s for which the mean of sigmoid(log-odds + s) over the samples is ExpectedShare, at
// most kShiftMost in either direction. The samples of a bin count as their mean prediction.
inline constexpr double kShiftMost = 3;
double ShiftToExpectedShare(const std::vector<ScoreBin>& bins, double share);

}  // namespace cistern
