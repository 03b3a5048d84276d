// The implementation of Model: a graph of layers with its parameters and its steps, for one worker
// or a process group.
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

// model.cc builds the model and predicts, model_step.cc trains, and shared_step.cc trains with
// several workers.
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
  // The sums of a step, in one array of sums() doubles, in the order of op::UpdateGradientScaler.
  enum Sum { kLoss, kDensePenalty, kDenseSquares, kOfEmbeddings };
  double* sum(size_t i) { return sums_.data() + i; }
  size_t sums() const { return kOfEmbeddings + 2 * graph_->live_embeddings().size(); }

  absl::Status Allocate();
  absl::Status CheckMemory() const;
  absl::Status CheckBatch(const Batch& batch, absl::Span<PassTable* const> tables) const;
  // With peers: true if enqueueing the step of `batch` and the copy of `next` would not wait.
  bool HasRoom(const BatchView& batch, const Batch* next) const;
  // The parts of a step, each launched on a GPU as one CUDA graph. Without peers kAll is the whole
  // step. With peers: see shared_step.cc.
  enum Part { kAll, kAhead = kAll, kToRows, kBehind, kRows, kUpdates, kParts };
  // Enqueues `part` on `stream`, as a CUDA graph if solver.cuda_graph.
  void Give(Part part, Stream& stream, const std::function<void()>& enqueue);
  // Enqueues a whole step. scaler: pinned memory that receives the gradient scaler for the host.
  void Compute(const Step& step, double lr_scale, op::GradientScaler* scaler);
  void ComputeShared(const Step& step, double lr_scale, op::GradientScaler* scaler);
  void BeginStep(const Step& step);
  void ComputeLoss(const Step& step);
  void ShareStatistics(const Step& step);
  void SumOverPeers(void* data, size_t count, ElementType type);
  void FinishEmbeddings(const Step& step);
  // Updates the scaler, then rows and parameters. All sums must be complete.
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
    Memory scaler;  // a GradientScaler, pinned
    std::vector<Event> done;
  };
  std::array<InFlight, kStepsInFlight> in_flight_;
  size_t first_in_flight_ = 0, in_flight_num_ = 0;
  v1::Schema schema_;
};

}  // namespace cistern
