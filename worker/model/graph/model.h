// The model interface: training and prediction with the layers of a model file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "cuda/collective/communicator.h"
#include "cuda/core/device_context.h"
#include "proto/checkpoint.pb.h"
#include "proto/schema.pb.h"
#include "worker/data/source/batch.h"
#include "worker/model/batch/pass_table.h"
#include "worker/model/config/model_config.h"
#include "worker/model/graph/precision.h"

namespace cistern {

struct StepResult {
  double loss = 0;       // mean over the batch, regularizers included
  double grad_norm = 0;  // of all gradients, dense and sparse, before clipping
  bool skipped = false;  // the updates were skipped: loss or grad_norm is not finite or overflows
};

// Dense parameters and their optimizer state are in flat buffers. The servers store them as two
// dense tables: "dense" (columns w and the optimizer state, one row per trainable parameter, in
// layer order) and, if a layer has running statistics, "dense_state" (column w: the running
// statistics of BatchNorm). A model without trainable parameters outside its embeddings has no
// table "dense".
//
// Several workers can train one model. Each worker has a part of every batch, owns a part of the
// rows, and has a copy of the dense parameters; all copies stay bit-identical. In every step the
// workers sum gradients and losses and exchange rows (Batch::exchanged). BatchNorm computes its
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
  virtual ~Model() = default;

  // The embedding tables in the order of config.embeddings, then the dense tables.
  virtual const v1::Schema& schema() const = 0;

  // Enqueues a training step: forward, loss, backward, clipping, sparse and dense updates. Finish
  // returns its result. At most kStepsInFlight steps can be launched and not finished.
  //
  // tables: by embedding; rows are updated in place.
  // step: 1, 2, ...
  // lr_scale: factor on the learning rates of the schedule.
  // next: the batch of the next call, which is copied to the device while this step is computed;
  // null: not known.
  // With peers, this call or Finish also returns the errors of other workers; afterwards the rows
  // and parameters are unusable.
  static constexpr size_t kStepsInFlight = 2;
  virtual absl::Status Launch(const Batch& batch, absl::Span<PassTable* const> tables,
                              uint64_t step, double lr_scale, const Batch* next) = 0;
  // Waits for the oldest step that is not finished. kDataLoss if its loss or norm is not finite and
  // cistern.not_finite is "stop"; neither that step nor a later one has updated anything then.
  virtual absl::StatusOr<StepResult> Finish() = 0;
  // Launches one step and finishes it.
  absl::StatusOr<StepResult> Train(const Batch& batch, absl::Span<PassTable* const> tables,
                                   uint64_t step, double lr_scale, const Batch* next = nullptr) {
    CISTERN_RETURN_IF_ERROR(Launch(batch, tables, step, lr_scale, next));
    return Finish();
  }

  // The step number and learning rate history of tables with deferred updates
  // (common/value/deferred_updates.h), as of the last step or SetClock. A model that continues from
  // the rows of an earlier run must be given the clock of that run. Unset if no table defers
  // updates.
  virtual v1::StepClock clock() const = 0;
  virtual void SetClock(const v1::StepClock& clock) = 0;
  // The dynamic loss scale as of the last finished step or SetLossScale. A resumed run must be
  // given the loss scale of the earlier run.
  //
  // SetLossScale: no step may be in flight. Does nothing if the scale is not dynamic. kDataLoss if
  // the scale is not a power of two within its range.
  virtual LossScale loss_scale() const = 0;
  virtual absl::Status SetLossScale(const LossScale& at) = 0;

  // The number of CUDA graphs launched by the steps so far (solver.cuda_graph).
  virtual uint64_t graphs_launched() const = 0;

  // Applies the deferred updates of all rows of `tables` up to the last step. Call it before
  // Predict.
  virtual absl::Status BringUp(absl::Span<PassTable* const> tables) = 0;

  // Predicts a batch of any size. Dropout is off, and BatchNorm uses its running statistics.
  // Changes neither rows nor parameters.
  //
  // predictions: [size, label_dim], the probability of each label (loss.h), in sample order.
  // logits: [size, columns of the logit], the input of the loss layer; null: not wanted.
  virtual absl::Status Predict(const Batch& batch, absl::Span<PassTable* const> tables,
                               std::vector<float>* predictions, std::vector<float>* logits) = 0;

  // The dense tables as the servers store them: [rows, columns] of schema().dense_tables(i).
  virtual absl::StatusOr<std::vector<float>> ReadDense(size_t i) const = 0;
  virtual absl::Status WriteDense(size_t i, absl::Span<const float> values) = 0;
};

}  // namespace cistern
