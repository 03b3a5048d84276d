// A simple and slow implementation of a model file in double, with which the tests compare layers.
//
// It has only a forward pass. Derivatives are finite differences of the loss, so that no backward
// formula is shared with the code under test.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "worker/data/source/batch.h"
#include "worker/model/config/model_config.h"

namespace cistern {

// A matrix per sample block: [rows * batch, columns], row-major. A tensor of three dimensions [rows
// * batch, columns / last, last] has `last`; 0: it has two.
struct ReferenceTensor {
  size_t columns = 0;
  std::vector<double> values;
  size_t last = 0;
  size_t rows() const { return columns == 0 ? 0 : values.size() / columns; }
};

class ReferenceModel {
 public:
  // weights: in the order of the dense table. tables: one [rows, vec_size] per embedding.
  explicit ReferenceModel(const ModelConfig& config) : config_(config) {}
  std::vector<double> weights;
  std::vector<std::vector<double>> tables;
  std::vector<double> running;  // BatchNorm's statistics: mean and variance of each layer in order

  // The loss of a training step, regularizers included. Step 0 computes a prediction instead
  // (no dropout, running statistics).
  double Loss(const HostBatch& batch, uint64_t step);
  // The probability of each label.
  std::vector<double> Predict(const HostBatch& batch);

  // d Loss / d *x by central differences.
  double Derivative(const HostBatch& batch, uint64_t step, double* x);

 private:
  void Embed(const HostBatch& batch);
  void Compute(const LayerConfig& layer, size_t index, size_t batch);
  // The layers of HugeCTR 3.x.
  void ComputeOf3(const LayerConfig& layer, size_t batch);
  size_t VectorSize(const std::string& embedding) const;
  double* Take(size_t count);  // the next `count` weights, in layer order

  const ModelConfig config_;
  std::map<std::string, ReferenceTensor> tensors_;
  size_t next_weight_ = 0, next_running_ = 0;
  uint64_t step_ = 0;
};

}  // namespace cistern
