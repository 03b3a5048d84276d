// What of a model file does not change predictions: constants of optimizers, first values of rows,
// thresholds of the ctr accessor. A trained model is evaluated with its own.
#pragma once

#include "proto/schema.pb.h"
#include "worker/model/config/model_config.h"

namespace cistern::model {

// Replaces these constants in `config` by those of a trained model, in each table that is otherwise
// the same: name, accessor, width and kind of rule. Other tables stay as they are, so that loading
// them reports the difference.
void TakeTrainedConstants(const v1::Schema& trained, ModelConfig* config);

}  // namespace cistern::model
