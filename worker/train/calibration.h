// How far the log-odds of all predictions must move so that their mean is right.
#pragma once

#include <vector>

#include "worker/report/score_bins.h"

namespace cistern {

// The share of positives to expect: that of the scored samples, shrunk toward `share` by
// kPriorPositives positives, in log-odds. With few positives among the samples, their number says
// little; with many, it says more than the share of earlier data. With weights, shares are
// weighted, and a positive counts as much as an average sample.
//
// bins: of an evaluation, with at least one sample. share: between 0 and 1.
inline constexpr double kPriorPositives = 100;
double ExpectedShare(const std::vector<ScoreBin>& bins, double share);

// The shift s for which the weighted mean of sigmoid(log-odds + s) over the samples is
// ExpectedShare, at most kMaxShift in either direction, shrunk by kPriorSamples samples that need
// none: the mean prediction over a few samples is mostly that of the users and items which happen
// to be among them. The samples of a bin count as their mean prediction.
inline constexpr double kMaxShift = 3;
inline constexpr double kPriorSamples = 100;
double ShiftToExpectedShare(const std::vector<ScoreBin>& bins, double share);

}  // namespace cistern
