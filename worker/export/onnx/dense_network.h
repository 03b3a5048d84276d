// The part of a model that an ONNX file holds: the layers between the pooled embeddings and the
// logit.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "worker/export/committed_model.h"
#include "worker/model/config/model_config.h"
#include "worker/model/graph/model_summary.h"
#include "worker/model/layer/tensor.h"

namespace cistern {

// A layer, and where its parameters are in the tables "dense" and "dense_state".
struct NetworkLayer {
  const model::LayerConfig* config = nullptr;
  size_t first_weight = 0, weights = 0;
  size_t first_running = 0, running = 0;
};

struct DenseNetwork {
  std::vector<NetworkLayer> layers;  // those that the logit depends on, in order of computation
  const model::LayerConfig* loss = nullptr;
  std::map<std::string, model::TensorShape> shapes;  // of all tensors of the model
  std::set<std::string> used;                        // the tensors that the logit depends on
  size_t weights = 0;                                // trainable parameters of `layers`

  const std::string& logit() const { return loss->bottoms[0]; }
  bool uses(const std::string& tensor) const { return used.count(tensor) > 0; }
};

// The bottoms that the layer computes with: a Concat ignores those without columns.
std::vector<std::string> BottomsOf(const model::LayerConfig& layer,
                                   const std::map<std::string, model::TensorShape>& shapes);

// Finds the network. config must outlive it.
// kInvalidArgument: those of Summarize; a layer of the network reads the label, or a tensor without
// columns; the network is too large for an ONNX file (2 GB).
absl::StatusOr<DenseNetwork> FindDenseNetwork(const model::ModelConfig& config);

// The parameters of a model, as its two dense tables hold them. Empty without such a table.
struct DenseValues {
  std::vector<float> weights;  // without the optimizer's state
  std::vector<float> running;  // statistics of BatchNorm
};

// Reads the parameters and checks those of the network.
// kDataLoss: a table is too small; a number is not finite, or a variance below 0, with its layer.
absl::StatusOr<DenseValues> ReadDenseValues(const DenseNetwork& network, CommittedModel& model);

}  // namespace cistern
