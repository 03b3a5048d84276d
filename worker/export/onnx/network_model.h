// Builds the ONNX model of a dense network.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "proto/onnx.pb.h"
#include "worker/export/onnx/dense_network.h"
#include "worker/model/config/model_config.h"

namespace cistern {

inline constexpr char kProbabilityName[] = "probability", kLogitName[] = "logit";

// The graph's names for what its caller supplies.
struct NetworkInputs {
  std::string dense;                                       // empty: the network does not read it
  std::vector<std::pair<size_t, std::string>> embeddings;  // index into config.embeddings; name
  std::vector<std::pair<size_t, std::string>> lengths;     // index into config.data.sparse; name
};

struct NetworkModel {
  onnx::Model model;  // without metadata
  NetworkInputs inputs;
};

// Inputs and tensors are called like those of the model file; one called like an output of the file
// or like an earlier tensor gets another name (OnnxGraph). Inputs, in this order: the dense
// features [batch, dense_dim], if the network reads them; the pooled vectors of each embedding that
// it reads, [batch, places, vec_size], in the order of the model file; the lengths of sequences,
// [batch, sequences], of each input whose length_top it reads. Outputs: probability [batch,
// label_dim], then, with `with_logit`, logit [batch, label_dim] (two classes: [batch, 2]).
absl::StatusOr<NetworkModel> MakeNetworkModel(const model::ModelConfig& config,
                                              const DenseNetwork& network,
                                              const DenseValues& values, bool with_logit);

}  // namespace cistern
