// An embedding: rows of a pass table, pooled by slot, and the gradients that come back to them.
#pragma once

#include <memory>

#include "common/value/step_clock.h"
#include "cuda/op/embedding/embedding_pool.h"
#include "worker/model/config/model_config.h"
#include "worker/model/layer/layer.h"

namespace cistern {

// Forward: [b, slots, vec_size]. Backward: one gradient for each distinct row of the batch, in the
// order of its segments. What follows the backward pass (regularizer, norm, clipping, update) works
// on those.
//
// With other workers (Step::peers) the rows of a batch come from those that hold them, before the
// forward pass (TakeRows), and their gradients go back there (GiveGradients), where those of all
// workers are summed, worker by worker (SumGradients). From there on each moves the rows that it
// holds.
//
// Threads: one at a time.
class EmbeddingLayer : public Layer {
 public:
  // index: of the table in Step.tables. slots: of the input.
  EmbeddingLayer(const EmbeddingConfig& config, size_t index, size_t slots, Tensor* out);

  // What the rows of a training batch have missed, before the step reads them; nothing where the
  // table makes nothing up. (A step whose number is not the next one makes up the gap, too.)
  absl::Status ApplyDeferred(const Step& step, double lr_scale, DeviceContext& device);
  // The same for all rows of a table that is only read: up to the last step.
  absl::Status BringUp(PassTable& rows, DeviceContext& device);
  // The steps so far and their sizes, advanced by Update, which rows make up what they missed with.
  const StepSizes& step_sizes() const { return step_sizes_; }
  void SetClock(const v1::RateHistory& rates, uint64_t step);
  bool defers_updates() const { return config_.optimizer.rule.update_type != UpdateType::kLocal; }

  // With peers: the two below take no memory, for which they would wait, and nor does
  // ApplyDeferred.
  bool HasRoom(const BatchView& batch) const;
  // Takes memory for what a step of this batch exchanges; nothing where the worker is alone.
  absl::Status ReserveExchange(const BatchView& batch, DeviceContext& device);
  // Takes memory for the backward pass of a training batch in which `distinct` rows move.
  virtual absl::Status Reserve(size_t distinct, DeviceContext& device);
  void TakeRows(const Step& step);
  void GiveGradients(const Step& step);
  void SumGradients(const Step& step);
  void Forward(const Step& step) override;
  void Backward(const Step& step) override;
  bool has_parameters() const override { return true; }

  // Adds l2 * w to the gradients; *square_sum = the sum of w^2, over the distinct rows of the
  // batch.
  virtual void AddL2(float l2, double* square_sum, const Step& step);
  // *sum = the sum over all gradients, squared. Both are doubles of the device.
  void SumOfSquares(double* sum, const Step& step);
  // Moves the rows. lr_scale: of the learning rate of this step.
  void Update(const Step& step, double lr_scale);

  const EmbeddingConfig& config() const { return config_; }
  size_t index() const { return index_; }
  const Storage* output_storage() const { return output().storage; }

 protected:
  // step_size: StepSize of the rule.
  virtual void MoveRows(float step_size, const Step& step);
  // Pools rows of the table: `size` samples of `in` from `first` on, of so many slots.
  virtual void PoolRows(const PassTable& rows, const SparseView& in, size_t first, size_t size,
                        size_t slots, op::Pool pool, op::Values out, Stream& stream) const;
  // The gradients of all rows that move have been summed.
  virtual void GradientsMade(const Step& step) {}
  const SparseView& sparse(const Step& step) const { return step.batch.sparse[config_.input]; }
  const ExchangeView& exchanged(const Step& step) const {
    return step.batch.exchanged[config_.input];
  }
  // Whose segments say which rows of the table move.
  const SparseView& moved(const Step& step) const {
    return step.peers == nullptr ? sparse(step) : exchanged(step).served;
  }
  PassTable& table(const Step& step) const { return *step.tables[index_]; }
  size_t slots() const { return slots_; }
  float* gradients() { return gradients_.data(); }  // [distinct, vec_size]
  op::Pool pool() const {
    return config_.combiner == Combiner::kMean ? op::Pool::kMean : op::Pool::kSum;
  }

 private:
  // Sends `from`, rows [sum of send, vec_size] by worker, and receives `to` likewise.
  void Exchange(const float* from, absl::Span<const uint32_t> send, float* to,
                absl::Span<const uint32_t> receive, const Step& step) const;
  // step_sizes_.sizes() where ops can read them.
  absl::StatusOr<const float*> SizesOn(DeviceContext& device);

  const EmbeddingConfig config_;
  const size_t index_, slots_;
  StepSizes step_sizes_;
  DeviceFloats sizes_;  // on a GPU: those of the first sizes_brought_ steps
  size_t sizes_brought_ = 0;
  DeviceFloats gradients_, scratch_;
  DeviceFloats taken_, given_;  // with peers: rows from and for each of them, then their gradients
};

// The layer that the accessor of the table asks for.
std::unique_ptr<EmbeddingLayer> MakeEmbeddingLayer(const EmbeddingConfig& config, size_t index,
                                                   size_t slots, Tensor* out);

}  // namespace cistern
