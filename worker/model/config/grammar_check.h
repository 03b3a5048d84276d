// Checks a model file against its grammar and gives absent keys their defaults. After the check,
// every key with a default is present, and every value has the right type and is within its bounds.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/model/config/grammar.h"
#include "worker/model/config/json_document.h"

namespace cistern::model {

// Checks and completes the whole file.
//
// layers: the layer types that the file may have.
// notes: receives one line for every key that is accepted without effect.
// kInvalidArgument, starting with the path:
//   solver.batchsiz: unknown key; did you mean 'batchsize'?
//   solver.batchsize: expected integer >= 1, found the string "many"
//   layers[4].fc_param.num_output: missing; it must be integer >= 1
absl::Status CheckFile(const std::vector<LayerGrammar>& layers, Json* root,
                       std::vector<std::string>* notes);

}  // namespace cistern::model
