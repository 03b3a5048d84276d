// The memory in which one thread predicts.
#pragma once

#include <memory>
#include <vector>

#include "common/base/status.h"
#include "cuda/core/device_context.h"
#include "serve/predictor/served_state.h"
#include "worker/data/source/batch.h"
#include "worker/model/batch/pass_table.h"
#include "worker/model/graph/model.h"

namespace cistern::serve {

// A model of one served state, and buffers for a request. Every occurrence of a key is a row of its
// pass table: the rows of a request are few, and each is read once.
//
// Threads: one at a time.
class Workspace {
 public:
  static absl::StatusOr<std::unique_ptr<Workspace>> Create(
      std::shared_ptr<const ServedState> state);

  const ServedState& state() const { return *state_; }

  // As Predictor::Predict, for a request that fits the shape of the state. Computes on the calling
  // thread alone.
  absl::Status Predict(const PredictRequest& request, absl::Span<float> predictions,
                       uint64_t* unseen);

 private:
  explicit Workspace(std::shared_ptr<const ServedState> state) : state_(std::move(state)) {}
  absl::Status Build();
  // Predicts samples of unseen keys, so that no request waits for the first access to memory.
  absl::Status WarmUp();
  absl::Status FillBatch(const PredictRequest& request, uint64_t* unseen);

  const std::shared_ptr<const ServedState> state_;
  DeviceContext device_;
  std::unique_ptr<model::Model> model_;
  std::vector<std::unique_ptr<model::PassTable>> tables_;
  std::vector<model::PassTable*> borrowed_;
  data::HostBatch batch_;
  std::vector<data::SparseColumn> places_;  // of inputs with sequences
  std::vector<float> predictions_;
};

}  // namespace cistern::serve
