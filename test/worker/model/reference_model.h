// A simple and slow implementation of a model file in double, with which the tests compare layers.
//
// It has only a forward pass. Derivatives are finite differences of the loss, so that no backward
// formula is shared with the code under test.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "test/worker/model/reference_layers.h"
#include "worker/data/source/batch.h"
#include "worker/model/config/model_config.h"

namespace cistern::model {

class ReferenceModel {
 public:
  // weights: in the order of the dense table. tables: one [rows, vec_size] per embedding.
  explicit ReferenceModel(const ModelConfig& config) : config_(config) {}
  std::vector<double> weights;
  std::vector<std::vector<double>> tables;
  std::vector<double> running;  // BatchNorm's statistics: mean and variance of each layer in order

  // The loss of a training step, regularizers included. Step 0 computes a prediction instead
  // (no dropout, running statistics).
  double Loss(const data::HostBatch& batch, uint64_t step);
  // The probability of each label.
  std::vector<double> Predict(const data::HostBatch& batch);

  // d Loss / d *x by central differences.
  double Derivative(const data::HostBatch& batch, uint64_t step, double* x);

 private:
  void Embed(const data::HostBatch& batch);
  void Compute(const LayerConfig& layer, size_t index, size_t batch);
  size_t VectorSize(const std::string& embedding) const;

  const ModelConfig config_;
  std::map<std::string, ReferenceTensor> tensors_;
  ReferenceParameters next_weight_, next_running_;
  uint64_t step_ = 0;
};

}  // namespace cistern::model
