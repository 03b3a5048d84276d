// A model: layers over ops, in the order of the model file, forward and backward.
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
  bool skipped = false;  // one of them is not a finite number: nothing was updated
};

// Dense parameters live in flat buffers with their optimizer state; the servers see them as two
// dense tables: "dense" (columns w and the optimizer's state, one row a trainable parameter, in
// layer order) and, if some layer has any, "dense_state" (column w: running statistics of
// BatchNorm). A model without trainable parameters outside its embeddings has no table "dense".
//
// Several workers train one model: each has a part of every batch, rows of its own, and a copy of
// the dense parameters, which stay the same bit for bit; they sum gradients and losses, and
// exchange rows (Batch::exchanged), in every step. BatchNorm takes its statistics from the worker's
// own part, as HugeCTR does, and the running ones are the mean over the workers, by samples.
//
// Threads: one at a time.
class Model {
 public:
  // Builds the graph and checks every shape. kInvalidArgument names layer, path and both shapes: an
  // undefined bottom (with the nearest defined name), a wrong dim, a missing loss. device, on which
  // the model computes, outlives this, and so do the peers of several workers, which make the same
  // calls of Launch and Predict in the same order; null: one worker.
  static absl::StatusOr<std::unique_ptr<Model>> Create(const ModelConfig& config,
                                                       DeviceContext& device,
                                                       Communicator* peers = nullptr);
  virtual ~Model() = default;

  // Embedding tables in the order of config.embeddings, then the dense tables.
  virtual const v1::Schema& schema() const = 0;

  // Enqueues a training step: forward, loss, backward, clipping, sparse and dense updates. Finish
  // gives its result; at most kStepsInFlight are enqueued and not finished.
  // tables: by embedding; rows are updated in place. step: 1, 2, ... ; lr_scale multiplies the
  // learning rates of the schedule. next: the batch of the next call, which comes to the device
  // while this one is computed; null: not known. With peers, an error of theirs is returned here or
  // by Finish, and the rows and parameters are of no use any more.
  static constexpr size_t kStepsInFlight = 2;
  virtual absl::Status Launch(const Batch& batch, absl::Span<PassTable* const> tables,
                              uint64_t step, double lr_scale, const Batch* next) = 0;
  // Waits for the oldest step that is not finished. kDataLoss if its loss or norm is not finite and
  // the model stops there (cistern.not_finite): neither it nor a step after it has updated
  // anything.
  virtual absl::StatusOr<StepResult> Finish() = 0;
  // Both, for one step.
  absl::StatusOr<StepResult> Train(const Batch& batch, absl::Span<PassTable* const> tables,
                                   uint64_t step, double lr_scale, const Batch* next = nullptr) {
    CISTERN_RETURN_IF_ERROR(Launch(batch, tables, step, lr_scale, next));
    return Finish();
  }

  // Tables that make up missed steps (common/value/deferred_updates.h): how far training is and
  // with which rates, after the last step or since SetClock. A model that goes on from rows of an
  // earlier run must be given that run's. Unset if no table makes anything up.
  virtual v1::StepClock clock() const = 0;
  virtual void SetClock(const v1::StepClock& clock) = 0;
  // The dynamic loss scale after the last step that was finished, or since SetLossScale; a run that
  // goes on must be given that of the run before. SetLossScale: no step may be in flight; one that
  // is no power of two in its range is kDataLoss; nothing happens where the scale is not dynamic.
  virtual LossScale loss_scale() const = 0;
  virtual absl::Status SetLossScale(const LossScale& at) = 0;

  // How many CUDA graphs the steps so far were given to a GPU as (solver.cuda_graph).
  virtual uint64_t graphs_launched() const = 0;

  // Makes up what the rows of `tables`, all of them, have missed up to there: before Predict.
  virtual absl::Status BringUp(absl::Span<PassTable* const> tables) = 0;

  // Predictions of a batch of any size: the probability of each label (loss.h), [size, label_dim],
  // in sample order; logits: what the loss layer reads, [size, its columns], null: not wanted.
  // Dropout is off, BatchNorm uses its running statistics. Changes nothing.
  virtual absl::Status Predict(const Batch& batch, absl::Span<PassTable* const> tables,
                               std::vector<float>* predictions, std::vector<float>* logits) = 0;

  // The dense tables as the servers hold them: [rows, columns] of schema().dense_tables(i).
  virtual absl::StatusOr<std::vector<float>> ReadDense(size_t i) const = 0;
  virtual absl::Status WriteDense(size_t i, absl::Span<const float> values) = 0;
};

}  // namespace cistern
