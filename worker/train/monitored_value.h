// What early stopping and the choice of the best epoch compare.
#pragma once

#include <optional>

namespace cistern {

// The value of an evaluation; higher is better. An epoch whose log loss is above that of a constant
// is below all that are not, whatever its AUC: its predictions are worse than the share of
// positives.
//
// auc: absent if the labels are of one class. entropy: the log loss of the share of positives among
// the evaluated labels. watches_log_loss: compares the log loss as a share of `entropy` (He et al.
// 2014: normalized entropy), else the AUC. With few positives the AUC of an epoch is mostly noise.
inline double MonitoredValue(std::optional<double> auc, double logloss, double entropy,
                             bool watches_log_loss) {
  if (!auc || entropy <= 0) return -logloss;
  const double gain = 1 - logloss / entropy;
  if (watches_log_loss) return gain;
  return gain < 0 ? *auc - 1 : *auc;
}

}  // namespace cistern
