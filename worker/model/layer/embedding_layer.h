// An embedding: rows of a pass table pooled by slot, and the gradients of these rows.
#pragma once

#include <memory>

#include "common/value/step_clock.h"
#include "cuda/op/embedding/embedding_pool.h"
#include "worker/model/config/model_config.h"
#include "worker/model/layer/layer.h"

namespace cistern::model {

// Forward computes [b, slots, vec_size]. Backward computes one gradient for each distinct row of
// the batch, in the order of its segments. The regularizer, norm, clipping and update that follow
// work on these gradients.
//
// With several workers (Step::peers), each row has an owner. Before the forward pass the workers
// receive the rows of their samples from the owners (TakeRows). After the backward pass they return
// the gradients (ReturnGradients), and each owner sums the gradients of all workers in worker order
// (SumGradients). From there on each worker updates the rows that it owns.
//
// Threads: one at a time.
class EmbeddingLayer : public Layer {
 public:
  // index: index of the table in Step::tables. slots: number of slots of the input.
  EmbeddingLayer(const EmbeddingConfig& config, size_t index, size_t slots, Tensor* out);

  // Applies the deferred updates of the rows of a training batch, before the step reads them. Does
  // nothing if the table does not defer updates. If step numbers were skipped, the updates of the
  // gap are applied too.
  absl::Status ApplyDeferred(const Step& step, double lr_scale, DeviceContext& device);
  // Applies the deferred updates of all rows of a table up to the last step, for reading only.
  absl::Status BringUp(PassTable& rows, DeviceContext& device);
  // The number of steps so far and their step sizes, from which deferred updates are computed.
  // Update advances them.
  const StepSizes& step_sizes() const { return step_sizes_; }
  // Restores step_sizes() from a checkpoint.
  void SetClock(const v1::RateHistory& rates, uint64_t step);
  bool defers_updates() const { return config_.optimizer.rule.update_type != UpdateType::kLocal; }

  // With peers: true if ReserveExchange, Reserve and ApplyDeferred would not allocate. An
  // allocation waits for the stream.
  bool HasRoom(const DeviceBatch& batch) const;
  // Allocates memory for the rows that a step of this batch exchanges; nothing for a single worker.
  absl::Status ReserveExchange(const DeviceBatch& batch, DeviceContext& device);
  // Allocates memory for the backward pass of a training batch.
  virtual absl::Status Reserve(const DeviceBatch& batch, DeviceContext& device);
  void TakeRows(const Step& step);
  void ReturnGradients(const Step& step);
  void SumGradients(const Step& step);
  void Forward(const Step& step) override;
  void Backward(const Step& step) override;
  bool has_parameters() const override { return true; }
  bool can_write_strided() const override { return true; }

  // Adds l2 * w to the gradients. *square_sum = the sum of w^2 over the distinct rows of the batch.
  virtual void AddL2(float l2, double* square_sum, const Step& step);
  // *sum = the sum of squares of all gradients, unless the backward pass has already summed them
  // into *sum. sum, like square_sum, is a double in device memory.
  void SumOfSquares(double* sum, const Step& step);
  // From now on backward passes sum the squares of the gradients into *sum if they can. Only if
  // AddL2 is not called.
  void SumSquaresBackward(double* sum) { square_sum_ = sum; }
  // Updates the rows. lr_scale: factor on the learning rate of this step. The gradients, of the
  // mean of the losses until here, become those of their sum if the configuration says so.
  void Update(const Step& step, double lr_scale);

  const EmbeddingConfig& config() const { return config_; }
  size_t index() const { return index_; }
  const Storage* output_storage() const { return output().storage; }

 protected:
  // Updates the rows. rate: the learning rate.
  virtual void MoveRows(double rate, const Step& step);
  // Pools rows of the table for samples first .. first + size of `in`, each with `slots` slots.
  // out_stride: from a sample to the next; slots * vec_size unless can_write_strided().
  virtual void PoolRows(const PassTable& rows, const DeviceSparseBatch& in, size_t first,
                        size_t size, size_t slots, op::Pool pool, op::Values out, size_t out_stride,
                        Stream& stream) const;
  // op::EmbeddingPool of `in`; op::WeightedPool if its keys have weights. offsets: in in.offsets.
  static void Pool(const float* weights, size_t stride, const DeviceSparseBatch& in,
                   const uint32_t* offsets, op::Pool pool, op::Values out, size_t out_stride,
                   size_t b, size_t slots, size_t dim, Stream& stream);
  // Called when the gradients of all rows to update have been summed.
  virtual void GradientsMade(const Step& step) {}
  virtual bool changes_gradients() const { return false; }  // in GradientsMade
  const DeviceSparseBatch& sparse(const Step& step) const {
    return step.batch.sparse[config_.input];
  }
  const DeviceExchange& exchanged(const Step& step) const {
    return step.batch.exchanged[config_.input];
  }
  // The view whose segments list the rows to update.
  const DeviceSparseBatch& moved(const DeviceBatch& batch) const {
    return batch.exchanged.empty() ? batch.sparse[config_.input]
                                   : batch.exchanged[config_.input].served;
  }
  const DeviceSparseBatch& moved(const Step& step) const { return moved(step.batch); }
  PassTable& table(const Step& step) const { return *step.tables[index_]; }
  size_t slots() const { return slots_; }
  float* gradients() { return gradients_.data(); }  // [distinct, vec_size]
  op::Pool pool() const {
    return config_.combiner == Combiner::kMean ? op::Pool::kMean : op::Pool::kSum;
  }

 private:
  // Sends send[i] rows of `from` to worker i, and receives receive[i] rows from it into `to`.
  // from: [sum of send, vec_size]. to: [sum of receive, vec_size]. Both are in worker order.
  void Exchange(const float* from, absl::Span<const uint32_t> send, float* to,
                absl::Span<const uint32_t> receive, const Step& step) const;
  size_t ScratchFloats(const DeviceBatch& batch) const;
  // step_sizes_.sizes() in memory that ops can read.
  absl::StatusOr<const float*> SizesOn(DeviceContext& device);

  const EmbeddingConfig config_;
  // Sums `dout` by segment into `made`, and the squares of the sums if they are `final`.
  void PoolBackward(op::ConstValues dout, size_t dout_stride, const DeviceSparseBatch& in,
                    op::Pool pool, size_t slots, float* made, bool final, Stream& stream);

  const size_t index_, slots_;
  StepSizes step_sizes_;
  DeviceFloats sizes_;  // on a GPU: the sizes of the first sizes_brought_ steps
  size_t sizes_brought_ = 0;
  DeviceFloats gradients_, scratch_;
  double* square_sum_ = nullptr;
  bool squares_summed_ = false;  // in the last backward pass, into *square_sum_
  DeviceFloats taken_, given_;   // with peers: rows from and for each worker, then their gradients
};

}  // namespace cistern::model
