// Several labels with a loss each, as HugeCTR 3.5 has them, become one loss over all labels.
//
//   {"type": "Data", "label": {"top": ["click", "buy"], "label_dim": [1, 1]}, ...}
//   {"type": "BinaryCrossEntropyLoss", "bottom": ["click_logit", "click"], "loss_weight": 0.3}
//   {"type": "BinaryCrossEntropyLoss", "bottom": ["buy_logit", "buy"], "loss_weight": 0.7}
//
// HugeCTR minimizes the sum of weight * mean. MultiCrossEntropyLoss divides by samples and columns
// together (cuda/op/loss/label_loss.h), so the columns of a label have the target weight
// weight * columns of all labels / columns of the label. A label below -0.5 is masked there.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/model/config/json_document.h"

namespace cistern::model {

// Rewrites a file whose label has several names: its label gets one name, its losses become a
// Concat of their logits and a MultiCrossEntropyLoss. Leaves other files as they are.
//
// names: gets the name of each column of the label; empty for other files. kInvalidArgument: a
// label without a loss or with two, a loss of another type, numbers that are no weights.
absl::Status JoinLosses(Json* file, std::vector<std::string>* names);

}  // namespace cistern::model
