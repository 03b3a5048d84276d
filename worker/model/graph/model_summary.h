// A summary of a model, computed without reading data or allocating memory: its graph with shapes
// and parameter counts, the memory of a step, and its tables with the size of a row.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/model/config/model_config.h"
#include "worker/model/layer/tensor.h"

namespace cistern::model {

// A layer or embedding of the model file.
struct LayerSummary {
  std::string name, type, path;
  std::vector<std::string> bottoms, tops;
  // One per top; empty for the loss. A layer with a fused ReLU or Dropout has the shape of the
  // combined output, and so have the ReLU and the Dropout.
  std::vector<TensorShape> shapes;
  size_t parameters = 0;  // count; the layers are in the order of the table "dense"
  size_t running = 0;     // statistics, in the order of "dense_state": BatchNorm's means, variances
  bool live = true;       // leads to the loss; a dead layer is never computed
};

// The memory of a step in floats, at the larger of the two batch sizes.
struct StepMemory {
  size_t values = 0, gradients = 0, scratch = 0;
};

struct TableSummary {
  std::string name, input;
  uint32_t slots = 0, vec_size = 0;
  std::string combiner, accessor, rule;
  size_t value_bytes = 0;       // per row: weights, optimizer state, statistics
  size_t pass_value_bytes = 0;  // the same on a worker, where 16-bit rows are floats
};

struct ModelSummary {
  std::vector<LayerSummary> layers;  // embeddings first, then in file order
  std::vector<TableSummary> tables;
  size_t batchsize = 0;
  size_t parameters = 0;  // dense, trainable
  size_t running = 0;     // statistics of BatchNorm
  // Weights (and their rounded copies), gradients and optimizer state; running statistics twice.
  size_t parameter_bytes = 0;
  StepMemory step;
  size_t step_bytes() const {
    return (step.values + step.gradients + step.scratch) * sizeof(float);
  }
};

// Summarizes the model. kInvalidArgument as Model::Create.
absl::StatusOr<ModelSummary> Summarize(const ModelConfig& config);

}  // namespace cistern::model
