// The dense parameters of a model in flat buffers, in layer order.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/value/update_rule.h"
#include "cuda/core/device_context.h"
#include "cuda/op/update/gradient_scaler.h"
#include "proto/schema.pb.h"
#include "worker/model/layer/device_buffer.h"
#include "worker/model/layer/weight_init.h"

namespace cistern::model {

// A contiguous range of the flat buffers.
struct Parameter {
  size_t offset = 0, count = 0;
};

// Holds trainable parameters with their gradients and optimizer state, and running statistics,
// which have no gradient. Layers register what they need while the graph is built; then Allocate.
//
// With 16-bit activations, matrix products read a copy of the weights that is rounded to that type.
// The optimizer updates, and checkpoints store, the float weights.
//
// Running statistics have two copies. A training step writes the next one, and Advance makes it the
// current one if the gradient scaler allows updates.
//
// Threads: one at a time.
class Parameters {
 public:
  Parameter Add(size_t count, const WeightInit& init);
  Parameter AddRunning(size_t count, float first);
  // seed: of the first weights; nullopt: they are 0. activations: the element type of the layers'
  // tensors.
  absl::Status Allocate(const RuleParams& rule, std::optional<uint64_t> seed,
                        ElementType activations, DeviceContext& device);

  // The last parameter of one number that starts at a value of the model file: the bias of a layer
  // with a bias_value and one output. nullopt: there is none.
  std::optional<Parameter> LogitBias() const;

  size_t count() const { return count_; }
  size_t running_count() const { return running_count_; }
  const RuleParams& rule() const { return rule_; }

  float* weight(Parameter p) { return weights_.data() + p.offset; }
  float* grad(Parameter p) { return grads_.data() + p.offset; }
  float* weights() { return weights_.data(); }
  // The weights in the type of the activations, as of the last Round.
  op::ConstValues rounded(Parameter p) const;
  void Round(Stream& stream);
  float* grads() { return grads_.data(); }
  float* states() { return states_.data(); }

  const float* running(Parameter p) const { return running_.data() + p.offset; }
  float* next_running(Parameter p) { return next_running_.data() + p.offset; }
  void StartStep(Stream& stream);  // copies the current running statistics to the next ones
  void Advance(const op::GradientScaler* scaler, Stream& stream);

  // The tables "dense" (if there are parameters) and "dense_state" (if there are statistics).
  std::vector<v1::DenseTableSpec> tables() const;
  // The number of values of tables()[i], rows by columns.
  size_t ValuesOf(size_t i) const;
  // Enqueues a copy of the values of tables()[i] to `to`, [rows, columns] in device memory.
  void CopyTable(size_t i, float* to, Stream& stream) const;
  // The values of tables()[i]: [rows, columns]. Both functions wait for the stream.
  absl::StatusOr<std::vector<float>> Read(size_t i, DeviceContext& device) const;
  absl::Status Write(size_t i, absl::Span<const float> values, Stream& stream);

 private:
  struct Block {
    Parameter where;
    WeightInit init;
  };
  bool IsRunning(size_t i) const { return count_ == 0 || i == 1; }
  absl::Status FillFirst(std::optional<uint64_t> seed, Stream& stream);

  RuleParams rule_;
  size_t count_ = 0, running_count_ = 0;
  std::vector<Block> blocks_, running_blocks_;
  ElementType activations_ = ElementType::kFloat;
  DeviceFloats weights_, grads_, states_;
  DeviceBuffer<uint16_t> rounded_;  // empty if activations are floats
  DeviceFloats running_, next_running_;
};

}  // namespace cistern::model
