// The one kind of model there is: a graph of layers with its parameters, its steps and its peers.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cuda/core/side_stream.h"
#include "cuda/core/work_capture.h"
#include "cuda/op/update/gradient_scaler.h"
#include "worker/model/batch/batch_stage.h"
#include "worker/model/graph/graph.h"
#include "worker/model/graph/model.h"
#include "worker/model/layer/device_buffer.h"

namespace cistern {

// model.cc makes it and predicts with it; model_step.cc trains, shared_step.cc with other workers.
//
// Threads: one at a time.
class GraphModel : public Model {
 public:
  GraphModel(const ModelConfig& config, DeviceContext& device, Communicator* peers);
  absl::Status Build();

  const v1::Schema& schema() const override { return schema_; }
  absl::Status Launch(const Batch& batch, absl::Span<PassTable* const> tables, uint64_t step,
                      double lr_scale, const Batch* next) override;
  absl::StatusOr<StepResult> Finish() override;
  absl::Status Predict(const Batch& batch, absl::Span<PassTable* const> tables,
                       std::vector<float>* predictions, std::vector<float>* logits) override;
  v1::StepClock clock() const override;
  void SetClock(const v1::StepClock& clock) override;
  absl::Status BringUp(absl::Span<PassTable* const> tables) override;
  uint64_t graphs_launched() const override;
  LossScale loss_scale() const override { return LossScaleOf(last_scaler_, scaling_); }
  absl::Status SetLossScale(const LossScale& at) override;
  absl::StatusOr<std::vector<float>> ReadDense(size_t i) const override {
    return parameters_.Read(i, stream_);
  }
  absl::Status WriteDense(size_t i, absl::Span<const float> values) override {
    return AddContext(parameters_.Write(i, values, stream_), config_.path);
  }

 private:
  // The sums of a step, in one array: sums() of them, in the order of op::UpdateGradientScaler.
  enum Sum { kLoss, kDensePenalty, kDenseSquares, kOfEmbeddings };
  double* sum(size_t i) { return sums_.data() + i; }
  size_t sums() const { return kOfEmbeddings + 2 * graph_->live_embeddings().size(); }

  absl::Status Allocate();
  absl::Status CheckMemory() const;
  absl::Status CheckBatch(const Batch& batch, absl::Span<PassTable* const> tables) const;
  // With peers: what is enqueued for `batch`, and to bring `next`, waits for nothing.
  bool HasRoom(const BatchView& batch, const Batch* next) const;
  // Parts of a step that a GPU is given as one CUDA graph each: without peers one is all of it.
  // With peers: see shared_step.cc.
  enum Part { kAll, kAhead = kAll, kToRows, kBehind, kRows, kUpdates, kParts };
  // Enqueues `part` on `stream`, captured where the model says so.
  void Give(Part part, Stream& stream, const std::function<void()>& enqueue);
  // Enqueues all of a step; `scaler`: where the host reads its verdict.
  void Compute(const Step& step, double lr_scale, op::GradientScaler* scaler);
  void ComputeShared(const Step& step, double lr_scale, op::GradientScaler* scaler);
  void BeginStep(const Step& step);
  void ComputeLoss(const Step& step);
  void ShareStatistics(const Step& step);
  void SumOverPeers(void* data, size_t count, ElementType type);
  void FinishEmbeddings(const Step& step);
  // What follows once all sums are there.
  void UpdateScalerAndRows(const Step& step, double lr_scale, op::GradientScaler* scaler);
  void FinishDense(const Step& step);
  void UpdateScaler(const Step& step, op::GradientScaler* scaler);
  absl::Status ResetScaler();
  void Update(const Step& step, double lr_scale);

  const ModelConfig config_;
  DeviceContext& device_;
  Stream& stream_;
  const op::LossScaling scaling_;
  BatchStage stage_;
  Parameters parameters_;
  std::unique_ptr<Graph> graph_;
  std::optional<SideStream> side_;  // set by Allocate
  std::optional<StepPeers> peers_;
  std::vector<Event> exchanged_;  // one, set by Allocate: gradients of rows are where they belong
  std::array<WorkCapture, kParts> captures_;
  DeviceFloats scratch_;       // of the loss and of sums over the parameters
  DeviceFloats predictions_;   // [planned_batch, label_dim]
  DeviceBuffer<double> sums_;  // by Sum; then of each live embedding |w|^2 and its squares
  DeviceFloats logits_;        // of Predict, where the graph's are not floats
  DeviceBuffer<op::GradientScaler> scaler_;
  op::GradientScaler last_scaler_;  // of the last step that was finished
  // Steps that are not finished: what their gates held, for the host.
  struct InFlight {
    uint64_t number = 0;
    Memory scaler;  // a GradientScaler, pinned
    std::vector<Event> done;
  };
  std::array<InFlight, kStepsInFlight> in_flight_;
  size_t first_in_flight_ = 0, in_flight_num_ = 0;
  v1::Schema schema_;
};

}  // namespace cistern
