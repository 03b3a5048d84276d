// What a model file describes, counted before anything is read or allocated: its graph with shapes
// and parameters, the memory of a step, its tables and what a row of each costs.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/model/config/model_config.h"
#include "worker/model/layer/tensor.h"

namespace cistern {

// A layer as the model file has it; an embedding too.
struct LayerSummary {
  std::string name, type, path;
  std::vector<std::string> bottoms, tops;
  // One a top; empty for the loss. A ReLU or Dropout that is computed within an earlier layer has
  // the shape of what comes out of both.
  std::vector<TensorShape> shapes;
  size_t parameters = 0;  // in the order of the table "dense", as all layers are
  size_t running = 0;     // statistics, in the order of "dense_state": BatchNorm's means, variances
  bool live = true;       // leads to the loss; others are shaped and never computed
};

// Floats of a step, at the larger of both batch sizes.
struct StepMemory {
  size_t values = 0, gradients = 0, scratch = 0;
};

struct TableSummary {
  std::string name, input;
  uint32_t slots = 0, vec_size = 0;
  std::string combiner, accessor, rule;
  size_t value_bytes = 0;  // of a row: weights, optimizer state, statistics
};

struct ModelSummary {
  std::vector<LayerSummary> layers;  // in the order of the file; embeddings first
  std::vector<TableSummary> tables;
  size_t batchsize = 0;
  size_t parameters = 0;  // dense, trainable
  size_t running = 0;     // statistics of BatchNorm
  size_t parameter_bytes =
      0;  // weights (and rounded ones), gradients, optimizer state; statistics twice
  StepMemory step;
  size_t step_bytes() const {
    return (step.values + step.gradients + step.scratch) * sizeof(float);
  }
};

// kInvalidArgument: what Model::Create refuses.
absl::StatusOr<ModelSummary> Summarize(const ModelConfig& config);

}  // namespace cistern
