// A model: trains and predicts with the layers of a model file.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "cuda/collective/communicator.h"
#include "cuda/core/device_context.h"
#include "cuda/core/side_stream.h"
#include "cuda/core/work_capture.h"
#include "cuda/op/update/gradient_scaler.h"
#include "proto/checkpoint.pb.h"
#include "proto/schema.pb.h"
#include "worker/data/source/batch.h"
#include "worker/model/batch/batch_stage.h"
#include "worker/model/batch/pass_table.h"
#include "worker/model/config/model_config.h"
#include "worker/model/graph/graph.h"
#include "worker/model/graph/precision.h"
#include "worker/model/layer/dense_snapshot.h"
#include "worker/model/layer/device_buffer.h"

namespace cistern::model {

struct StepResult {
  double loss = 0;       // mean over the batch, regularizers included
  double grad_norm = 0;  // of all gradients, dense and sparse, before clipping
  bool skipped = false;  // the updates were skipped: loss or grad_norm is not finite or overflows
  // From the start of the step on the device to its end, by the device's clock. Deferred updates
  // come before the start. Gaps between kernels, and waits for other workers, are included.
  double device_seconds = 0;
};

// A model on one device: the graph of its layers, its dense parameters, and the steps that train
// them and the rows of its pass tables.
//
// Dense parameters and their optimizer state are in flat buffers. The servers store them as two
// dense tables: "dense" (columns w and the optimizer state, one row per trainable parameter, in
// layer order) and, if a layer has running statistics, "dense_state" (column w: the running
// statistics of BatchNorm). A model without trainable parameters outside its embeddings has no
// table "dense".
//
// Several workers can train one model. Each worker has a part of every batch, owns a part of the
// rows, and has a copy of the dense parameters; all copies stay bit-identical. In every step the
// workers sum gradients and losses and exchange rows (HostBatch::exchanged). BatchNorm computes its
// statistics from the worker's own part of the batch, as HugeCTR does; the running statistics are
// the mean over the workers, weighted by samples.
//
// Threads: one at a time.
class Model {
 public:
  // Builds the graph and checks every shape.
  //
  // device: the device on which the model computes; it must outlive the model.
  // peers: the process group; it must outlive the model. All workers must call Launch and Predict
  // in the same order. Null: one worker.
  //
  // kInvalidArgument for an undefined bottom (with the nearest defined name), mismatched shapes
  // (with both) or a missing loss; it names the layer and its path.
  static absl::StatusOr<std::unique_ptr<Model>> Create(const ModelConfig& config,
                                                       DeviceContext& device,
                                                       Communicator* peers = nullptr);

  // The embedding tables in the order of config.embeddings, then the dense tables.
  const v1::Schema& schema() const { return schema_; }

  // Enqueues a training step: forward, loss, backward, clipping, sparse and dense updates. Finish
  // returns its result. At most kStepsInFlight steps can be launched and not finished.
  //
  // tables: by embedding; rows are updated in place.
  // step: 1, 2, ...
  // lr_scale: factor on the learning rates of the schedule.
  // next: the batches of the next calls, at most kBatchesAhead, as far as they are known; they are
  // copied to the device while this step is computed.
  // With peers, this call or Finish also returns the errors of other workers; afterwards the rows
  // and parameters are unusable.
  static constexpr size_t kStepsInFlight = 2;
  static constexpr size_t kBatchesAhead = BatchStage::kAhead;
  absl::Status Launch(const data::HostBatch& batch, absl::Span<PassTable* const> tables,
                      uint64_t step, double lr_scale,
                      absl::Span<const data::HostBatch* const> next = {});
  // Waits for the oldest step that is not finished. kDataLoss if its loss or norm is not finite and
  // cistern.not_finite is "stop"; neither that step nor a later one has updated anything then.
  absl::StatusOr<StepResult> Finish();
  // Launches one step and finishes it.
  absl::StatusOr<StepResult> Train(const data::HostBatch& batch,
                                   absl::Span<PassTable* const> tables, uint64_t step,
                                   double lr_scale,
                                   absl::Span<const data::HostBatch* const> next = {}) {
    CISTERN_RETURN_IF_ERROR(Launch(batch, tables, step, lr_scale, next));
    return Finish();
  }

  // The step number and learning rate history of tables with deferred updates
  // (common/value/deferred_updates.h), as of the last step or SetClock. A model that continues from
  // the rows of an earlier run must be given the clock of that run. Unset if no table defers
  // updates.
  v1::StepClock clock() const;
  void SetClock(const v1::StepClock& clock);
  // The dynamic loss scale as of the last finished step or SetLossScale. A resumed run must be
  // given the loss scale of the earlier run.
  //
  // SetLossScale: no step may be in flight. Does nothing if the scale is not dynamic. kDataLoss if
  // the scale is not a power of two within its range.
  LossScale loss_scale() const { return LossScaleOf(last_scaler_, scaling_); }
  absl::Status SetLossScale(const LossScale& at);

  // The number of CUDA graphs launched by the steps so far (solver.cuda_graph).
  uint64_t graphs_launched() const;
  // The number that had to be built anew instead of updated: a few in a model's first steps.
  uint64_t graphs_built() const;
  // Of this model's steps: Stream::ProductKernels.
  std::map<std::string, std::string> product_kernels() const { return stream_.ProductKernels(); }

  // Applies the deferred updates of all rows of `tables` up to the last step. Call it before
  // Predict.
  absl::Status BringUp(absl::Span<PassTable* const> tables);

  // Predicts a batch of any size. Dropout is off, and BatchNorm uses its running statistics.
  // Changes neither rows nor parameters.
  //
  // predictions: [size, label_dim], the probability of each label (loss.h), in sample order.
  // logits: [size, columns of the logit], the input of the loss layer; null: not wanted.
  absl::Status Predict(const data::HostBatch& batch, absl::Span<PassTable* const> tables,
                       std::vector<float>* predictions, std::vector<float>* logits);

  // The model only predicts from now on, and nobody calls WriteDense any more. Predict becomes
  // faster and keeps its bits.
  void Freeze() { graph_->Freeze(parameters_, stream_); }

  // The dense tables as the servers store them: [rows, columns] of schema().dense_tables(i).
  absl::StatusOr<std::vector<float>> ReadDense(size_t i) const {
    return parameters_.Read(i, device_);
  }
  // As they are after the steps launched so far, for another thread. Does not wait.
  absl::Status TakeDense(DenseSnapshot& to) const { return to.Take(parameters_); }
  absl::Status WriteDense(size_t i, absl::Span<const float> values) {
    return AddContext(parameters_.Write(i, values, stream_), config_.path);
  }
  // Adds `shift` to the bias of the layer with one output and a bias_value, and so to the log-odds
  // of all predictions if no nonlinear layer follows it. No step may be in flight.
  // kInvalidArgument: the model has no such layer.
  absl::Status ShiftLogits(double shift);

 private:
  Model(const ModelConfig& config, DeviceContext& device, Communicator* peers);
  absl::Status Build();

  // The sums of a step, in one array of sums() doubles, in the order of op::UpdateGradientScaler.
  enum Sum { kLoss, kDensePenalty, kDenseSquares, kOfEmbeddings };
  double* sum(size_t i) { return sums_.data() + i; }
  size_t sums() const { return kOfEmbeddings + 2 * graph_->live_embeddings().size(); }

  absl::Status Allocate();
  absl::Status CheckMemory() const;
  absl::Status CheckBatch(const data::HostBatch& batch, absl::Span<PassTable* const> tables) const;
  // With peers: true if enqueueing the step of `batch` and the copy of `next` would not wait.
  bool HasRoom(const DeviceBatch& batch, absl::Span<const data::HostBatch* const> next) const;
  // The parts of a step, each launched on a GPU as one CUDA graph. Without peers kAll is the whole
  // step. With peers: see shared_step.cc.
  enum Part { kAll, kAhead = kAll, kToRows, kBehind, kRows, kUpdates, kParts };
  // Enqueues `part` on `stream`, as a CUDA graph if solver.cuda_graph. begin: as WorkCapture::Run.
  void Enqueue(Part part, Stream& stream, const std::function<void()>& enqueue,
               Event* begin = nullptr);
  // Enqueues a whole step. scaler: pinned memory that receives the gradient scaler for the host.
  void Compute(const Step& step, double lr_scale, op::GradientScaler* scaler);
  void ComputeShared(const Step& step, double lr_scale, op::GradientScaler* scaler);
  void BeginStep(const Step& step);
  void ShareStatistics(const Step& step);
  void SumOverPeers(void* data, size_t count, ElementType type);
  void FinishEmbeddings(const Step& step);
  // Updates the scaler, then rows and parameters. All sums must be complete.
  void UpdateScalerAndRows(const Step& step, double lr_scale, op::GradientScaler* scaler);
  void FinishDense(const Step& step);
  void UpdateScaler(const Step& step);
  absl::Status ResetScaler();
  void Update(const Step& step, double lr_scale, op::GradientScaler* scaler);

  const ModelConfig config_;
  DeviceContext& device_;
  Stream& stream_;
  const op::LossScaling scaling_;
  BatchStage stage_;
  Parameters parameters_;
  std::unique_ptr<Graph> graph_;
  std::optional<SideStream> side_;  // set by Allocate
  std::optional<StepPeers> peers_;
  std::vector<Event> exchanged_;  // one, set by Allocate: the owners have the gradients of rows
  std::array<WorkCapture, kParts> captures_;
  DeviceFloats scratch_;       // for the loss and for sums over the parameters
  DeviceFloats predictions_;   // [planned_batch, label_dim]
  DeviceBuffer<double> sums_;  // by Sum; for each live embedding |w|^2 and its squared gradients
  DeviceFloats logits_;        // for Predict, if the graph's logits are not floats
  DeviceBuffer<op::GradientScaler> scaler_;
  op::GradientScaler last_scaler_;  // of the last finished step
  // A step that is launched and not finished, with the host's copy of its gradient scaler.
  struct InFlight {
    uint64_t number = 0;
    Memory scaler;                   // a GradientScaler, pinned
    std::vector<Event> begin, done;  // one each, set by Allocate
  };
  std::array<InFlight, kStepsInFlight> in_flight_;
  size_t first_in_flight_ = 0, in_flight_num_ = 0;
  v1::Schema schema_;
};

}  // namespace cistern::model
