// What both protocols share: which model and version are meant, a prediction from the decoded
// request to the reply, the queue, the figures and the log.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "serve/predictor/predictor.h"
#include "serve/server/infer_call.h"
#include "serve/server/metadata.h"
#include "serve/server/metrics.h"
#include "serve/server/prediction_queue.h"
#include "serve/server/request_log.h"

namespace cistern {

// Threads: any thread.
class InferenceCore {
 public:
  using Answer = std::function<void(absl::StatusOr<InferReply>)>;

  // predictor: outlives the core. log: may be null.
  InferenceCore(Predictor& predictor, int threads, size_t max_in_flight,
                std::unique_ptr<RequestLog> log);

  // kNotFound unless the model is the one that is served, and the version is empty or the current
  // commit; the message names the right one.
  absl::Status CheckModel(const std::string& name, const std::string& version) const;
  ModelMetadata Model() const { return DescribeModel(predictor_); }
  std::string ModelConfig() const {
    const std::shared_ptr<const OwnedEncoder> encoder = predictor_.encoder();
    return ModelConfigJson(Model(), predictor_.max_samples(),
                           encoder == nullptr ? nullptr : &encoder->recipe());
  }
  // False once the server has begun to stop.
  bool ready() const { return ready_.load(std::memory_order_relaxed); }

  // Decodes the samples, predicts, and calls `answer` once, on this thread; then logs the request.
  // arrived: when the request did, for its timeout. Errors: those of CheckModel, Samples::Decode
  // and Predict; kInvalidArgument for an unknown output; kDeadlineExceeded if the timeout has
  // passed before the prediction begins.
  void Infer(const InferRequest& request, absl::Time arrived, const Answer& answer);

  // Counts a call that has been answered.
  void Count(Protocol protocol, ServeMethod method, const absl::Status& outcome,
             absl::Time arrived);
  std::string MetricsText() const;

  PredictionQueue& queue() { return queue_; }
  // Refuses new predictions, and waits for those in flight; false: some are left after `grace`.
  bool Drain(absl::Duration grace);

 private:
  struct Prediction;

  absl::Status CheckOutputs(const InferRequest& request) const;
  absl::StatusOr<Prediction> Predict(const InferRequest& request, absl::Time arrived);
  InferReply ReplyTo(const InferRequest& request, const Prediction& prediction) const;

  Predictor& predictor_;
  std::atomic<bool> ready_{true};
  ServeMetrics metrics_;
  const std::unique_ptr<RequestLog> log_;
  PredictionQueue queue_;  // destroyed first: its threads use the members above
};

}  // namespace cistern
