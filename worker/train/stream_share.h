// The share of positive labels that the predictions of a stream should have on average.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "worker/report/score_bins.h"

namespace cistern {

// A part of the worker's position. It starts at cistern.calibrate, and follows the labels of the
// stream: as soon as kMinExpected of the rarer label were expected since it last moved, it becomes
// their DriftedShare (calibration.h), so another click rate is believed at once. Rows among which
// hardly any have the rarer label are no click rate but a fault, or labels that come later: 0
// clicks of 4,000 rows would make a model that predicts none. Fewer than kMinRarer of either label
// where kExpectedOfNearlyNone were expected move the odds by a factor of kMaxOddsStep only. If such
// rows go on, the share follows them, each step taking twice the rows of the last one.
struct StreamShare {
  double share = 0.5;                 // between 0 and 1
  double samples = 0, positives = 0;  // since the share last moved
  // The latest samples have less than a tenth of the rarer label that was expected, at least
  // kMinRarer. If the mean were restored after each of several such passes, the rows of the model
  // would learn from the next one what the bias must not: that its users and items are bad. So only
  // a pass for which the share moved is corrected.
  bool lacks_label = false;
  bool operator==(const StreamShare&) const = default;
};

inline constexpr double kMinExpected = 50;
inline constexpr double kMinRarer = 20;
inline constexpr double kExpectedOfNearlyNone = 200;
inline constexpr double kMaxOddsStep = 2;

// Adds the scored samples of a pass; with weights, the positives are their weighted share of the
// samples. Returns a warning if the rows are nearly of one class.
//
// bins: of an evaluation, with at least one sample.
//
// *corrects: whether the predictions on this pass should be moved to the share.
std::optional<std::string> AddToShare(const std::vector<report::ScoreBin>& bins, StreamShare* share,
                                      bool* corrects);

}  // namespace cistern
