// How far the log-odds of all predictions must move so that their mean is right.
#pragma once

#include <vector>

#include "worker/report/score_bins.h"

namespace cistern {

// The share of positives to expect after `rarer` new samples of the rarer label, of which the share
// is `scored`: in log-odds, their own share and the one of before, `share`, are weighted as of a
// share that drifts by chance. Its variance is 1 / kPriorPositives, or, if larger, the square of
// the difference between both less what chance explains (kDeviationsOfDrift of 1 / rarer). So a
// few samples of the rarer label say little unless they contradict the share of before, and a day
// with another click rate is believed.
//
// scored, share: between 0 and 1. rarer = 0: `share`.
inline constexpr double kPriorPositives = 100;
inline constexpr double kDeviationsOfDrift = 3;
double DriftedShare(double scored, double rarer, double share);

// DriftedShare of the scored samples. With weights, shares are weighted, and a positive counts as
// much as an average sample.
//
// bins: of an evaluation, with at least one sample.
double ExpectedShare(const std::vector<report::ScoreBin>& bins, double share);

// The shift s for which the weighted mean of sigmoid(log-odds + s) over the samples is `target`, at
// most `most` in either direction, of which the first kMaxShift are shrunk by kPriorSamples samples
// that need none: the mean prediction over a few samples is mostly that of the users and items
// which happen to be among them. The samples of a bin count as their mean prediction.
inline constexpr double kMaxShift = 3;
inline constexpr double kMaxShiftOfStream = 30;  // undoes what a pass of one class taught
inline constexpr double kPriorSamples = 100;
double ShiftToShare(const std::vector<report::ScoreBin>& bins, double target,
                    double most = kMaxShift);

}  // namespace cistern
