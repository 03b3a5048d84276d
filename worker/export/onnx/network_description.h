// The JSON file beside an ONNX file, and the properties in it: where the network comes from, and
// how its inputs are made. docs/formats.md explains every member.
#pragma once

#include <string>

#include "proto/onnx.pb.h"
#include "worker/export/committed_model.h"
#include "worker/export/onnx/network_model.h"
#include "worker/model/config/model_config.h"

namespace cistern {

// "float32", "float16" or "bfloat16": the type of the activations in training. The exported network
// computes in float32 always.
std::string TrainedIn(const model::ModelConfig& config);

// Adds the properties cistern.commit, cistern.pass ... to the model.
void AddProperties(const model::ModelConfig& config, const CommittedModel& source,
                   onnx::Model* model);

// bytes: the ONNX file, called `name`.
std::string DescribeNetwork(const model::ModelConfig& config, const CommittedModel& source,
                            const NetworkModel& network, const std::string& name,
                            const std::string& bytes);

}  // namespace cistern
