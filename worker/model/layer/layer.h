// The layer interface: inputs, outputs, and the forward and backward pass of a step.
//
// Layers compute only through ops (cuda/op), therefore they do not depend on the device. They do
// not allocate during a step and do not own their inputs and outputs: the graph plans that memory
// (graph.h).
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "cuda/collective/communicator.h"
#include "cuda/core/device_context.h"
#include "cuda/core/side_stream.h"
#include "cuda/core/stream.h"
#include "cuda/op/primitive/op.h"
#include "cuda/op/update/gradient_scaler.h"
#include "worker/model/batch/batch_stage.h"
#include "worker/model/batch/pass_table.h"
#include "worker/model/layer/parameters.h"
#include "worker/model/layer/tensor.h"

namespace cistern::model {

// The process group, as a step sees it. Layers return no status, therefore the first communication
// error is kept here, and the step exchanges nothing after it.
struct StepPeers {
  Communicator& communicator;
  absl::Status status;
};

// The context of a step on samples first .. first + size of a batch.
struct Step {
  const DeviceBatch& batch;
  size_t first = 0, size = 0;
  absl::Span<PassTable* const> tables;  // by embedding
  uint64_t number = 0;                  // 1, 2, ... in training
  Parameters& parameters;
  float* scratch = nullptr;                    // the maximum of ScratchFloats over the layers
  const op::GradientScaler* scaler = nullptr;  // in a training step
  // The factor on the gradients of the step, in device memory; null: 1.
  const float* loss_scale = nullptr;
  Stream& stream;
  SideStream& side;            // for embeddings, concurrent with the other layers
  StepPeers* peers = nullptr;  // null: single worker

  // The same step on the side stream, without scratch, which the main stream uses.
  Step Beside() const {
    return {.batch = batch,
            .first = first,
            .size = size,
            .tables = tables,
            .number = number,
            .parameters = parameters,
            .scaler = scaler,
            .loss_scale = loss_scale,
            .stream = side.stream(),
            .side = side,
            .peers = peers};
  }
  // The number of samples in the batches of all workers, and how many of them precede this step's.
  size_t all() const { return batch.all; }
  size_t first_of_all() const { return batch.first + first; }
};

// A tensor as the input of one layer. If several layers read the tensor, the graph decides which of
// them writes the gradient first; the others accumulate.
struct Input {
  Tensor* tensor = nullptr;
  bool wants_grad = false;
  op::Write write = op::Write::kOverwrite;

  op::ConstValues value() const { return tensor->value(); }
  // Null if the gradient of this input is not needed.
  op::Values grad() const { return wants_grad ? tensor->grad() : op::Values(nullptr); }
};

// One layer of a graph.
//
// Threads: one at a time.
class Layer {
 public:
  Layer(std::vector<Tensor*> inputs, std::vector<Tensor*> outputs);
  virtual ~Layer() = default;

  // Computes the outputs from the inputs, for training.
  virtual void Forward(const Step& step) = 0;
  // Computes the outputs from the inputs, for prediction. Changes only the outputs.
  virtual void Infer(const Step& step) { Forward(step); }
  // Computes the gradients of the parameters, and of the inputs that want one, from the gradients
  // of the outputs.
  virtual void Backward(const Step& step) = 0;

  // The scratch memory, in floats, that a step of `batch` samples needs.
  virtual size_t ScratchFloats(size_t batch) const { return 0; }
  // Allocates memory for state that the layer keeps from forward to backward.
  virtual absl::Status Allocate(size_t batch, DeviceContext& device) { return absl::OkStatus(); }

  // Properties for the memory plan.
  virtual bool has_parameters() const { return false; }
  // Backward reads the values of the outputs; they must not be overwritten.
  virtual bool reads_outputs() const { return false; }
  // The output value can be stored in the memory of the input value; backward does not read the
  // input.
  virtual bool can_replace_input() const { return false; }
  // If the input ends in a ReLU, the layer can compute the gradient of the ReLU's input directly.
  virtual bool can_undo_relu() const { return false; }
  // The output can have wide rows (Tensor::is_wide); the layer leaves columns beyond its own alone.
  virtual bool can_write_wide() const { return false; }
  // The input can have wide rows.
  virtual bool can_read_wide() const { return false; }
  // The output, or any input, can be a part of a Concat's output: samples that are
  // Storage::stride() elements apart.
  virtual bool can_write_strided() const { return false; }
  virtual bool can_read_strided() const { return false; }
  // Whether the output consists of the inputs side by side, so that each can be a part of it.
  virtual bool joins_columns() const { return false; }
  // The input gradient can be stored in the memory of the output gradient.
  virtual bool can_replace_grad() const { return false; }

  std::vector<Input>& inputs() { return inputs_; }
  const std::vector<Tensor*>& outputs() const { return outputs_; }

 protected:
  const Input& input(size_t i = 0) const { return inputs_[i]; }
  const Tensor& output(size_t i = 0) const { return *outputs_[i]; }
  // The number of rows of the tensor's matrix in this step.
  static size_t RowsOf(const Tensor& tensor, const Step& step) {
    return tensor.shape.rows * step.size;
  }

 private:
  std::vector<Input> inputs_;
  std::vector<Tensor*> outputs_;
};

inline Layer::Layer(std::vector<Tensor*> inputs, std::vector<Tensor*> outputs)
    : outputs_(std::move(outputs)) {
  for (Tensor* tensor : inputs) inputs_.push_back({tensor});
}

}  // namespace cistern::model
