// A layer: what it reads, what it writes, and the two directions of a step.
//
// Layers call ops (cuda/op) and nothing else that computes, so they know no device. They neither
// allocate in a step nor own what flows between them: the graph plans that memory (graph.h).
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

namespace cistern {

// The other workers of a run, in a step. Layers return nothing, so an error stays here, and nothing
// more is exchanged after it.
struct StepPeers {
  Communicator& communicator;
  absl::Status status;
};

// What a step works on: samples first .. first + size of a batch.
struct Step {
  const BatchView& batch;
  size_t first = 0, size = 0;
  absl::Span<PassTable* const> tables;  // by embedding
  uint64_t number = 0;                  // 1, 2, ... in training
  Parameters& parameters;
  float* scratch = nullptr;                    // as much as the greediest layer asked for
  const op::GradientScaler* scaler = nullptr;  // of a training step
  // What the gradients of the step are multiplied by, on the device; null: 1.
  const float* loss_scale = nullptr;
  Stream& stream;
  SideStream& side;            // where embeddings work beside the other layers
  StepPeers* peers = nullptr;  // null: this worker is alone

  // The same for what works on the side; scratch is not its own there.
  Step Beside() const {
    return {batch,   first,  size,       tables,        number, parameters,
            nullptr, scaler, loss_scale, side.stream(), side,   peers};
  }
  // Samples of the batch with those of other workers, and how many of them come before these.
  size_t all() const { return batch.all; }
  size_t first_of_all() const { return batch.first + first; }
};

// A tensor as one layer reads it. The graph decides who of several readers writes the gradient
// first.
struct Input {
  Tensor* tensor = nullptr;
  bool wants_grad = false;
  op::Write write = op::Write::kOverwrite;

  op::ConstValues value() const { return tensor->value(); }
  // Null: nobody needs the derivative by this input.
  op::Values grad() const { return wants_grad ? tensor->grad() : op::Values(nullptr); }
};

// Threads: one at a time.
class Layer {
 public:
  Layer(std::vector<Tensor*> inputs, std::vector<Tensor*> outputs);
  virtual ~Layer() = default;

  // Outputs from inputs, as training does it.
  virtual void Forward(const Step& step) = 0;
  // Outputs from inputs, as prediction does it. Changes nothing but outputs.
  virtual void Infer(const Step& step) { Forward(step); }
  // Gradients of parameters and of the inputs that want one, from those of the outputs.
  virtual void Backward(const Step& step) = 0;

  // Scratch that a step of `batch` samples needs, in floats.
  virtual size_t ScratchFloats(size_t batch) const { return 0; }
  // Takes memory for what the layer keeps from forward to backward.
  virtual absl::Status Allocate(size_t batch, DeviceContext& device) { return absl::OkStatus(); }

  // For the memory plan.
  virtual bool has_parameters() const { return false; }
  // Backward reads the values of the outputs: nobody may write over them.
  virtual bool reads_outputs() const { return false; }
  // The output may take the place of the input, in value; backward does not read that input.
  virtual bool can_replace_input() const { return false; }
  // An input that ends in a ReLU may get the gradient of what that was given.
  virtual bool can_undo_relu() const { return false; }
  // The gradient of the input may take the place of that of the output.
  virtual bool can_replace_grad() const { return false; }

  std::vector<Input>& inputs() { return inputs_; }
  const std::vector<Tensor*>& outputs() const { return outputs_; }

 protected:
  const Input& input(size_t i = 0) const { return inputs_[i]; }
  const Tensor& output(size_t i = 0) const { return *outputs_[i]; }
  // The parts of a step's matrix: rows of output i in a batch of `size` samples.
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

}  // namespace cistern
