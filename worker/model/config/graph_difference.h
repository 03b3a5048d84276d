// Compares the graphs of two model files: the computation that turns a sample into a prediction.
#pragma once

#include <string>

#include "worker/model/config/model_config.h"

namespace cistern::model {

// The first difference in layers, their tensors and their shapes, where `mine` has the first value:
// "layer 'relu1': type is ELU, not ReLU". Empty if there is none. Settings that only training uses
// (initializers, dropout rates, regularizers, optimizers) do not count.
std::string GraphDifference(const ModelConfig& mine, const ModelConfig& other);

}  // namespace cistern::model
