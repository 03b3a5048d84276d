// What both protocols share: which model and version are meant, a prediction from the decoded
// request to the reply, the queue, the figures and the log.
#pragma once

#include <atomic>
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

namespace cistern::serve {

// Threads: any thread.
class InferenceCore {
 public:
  using Answer = std::function<void(absl::StatusOr<InferReply>)>;

  // log: may be null. stopping: InferenceServerOptions. There is no model until Serve.
  InferenceCore(int threads, size_t max_in_flight, std::unique_ptr<RequestLog> log,
                const std::atomic<bool>* stopping = nullptr);

  // Serves `predictor`, which outlives the core, from now on. Call it once.
  void Serve(Predictor& predictor) { predictor_.store(&predictor); }

  // kNotFound unless the model is the one that is served, and the version is empty or the current
  // commit; the message names the right one. kUnavailable: there is no model yet.
  absl::Status CheckModel(const std::string& name, const std::string& version) const;
  // The model after CheckModel.
  ModelMetadata Model() const { return DescribeModel(*predictor_.load()); }
  // kUnavailable, with the reason, while there is no model and once the server has begun to stop.
  absl::Status CheckReady() const;
  // The server has begun to stop.
  bool stopping() const { return draining_ || (stopping_ != nullptr && *stopping_); }
  // Not ready from now on; requests are answered all the same.
  void BeginDrain() { draining_ = true; }

  // Decodes the samples, predicts, and calls `answer` once, on this thread; then logs the request.
  // arrived: when the request did, for its timeout. Errors: those of CheckModel, Samples::Decode
  // and Predict; kInvalidArgument for an unknown output; kDeadlineExceeded if the timeout has
  // passed before the prediction begins.
  void Infer(const InferRequest& request, absl::Time arrived, const Answer& answer);

  // Counts a call that has been answered.
  void Count(Protocol protocol, ServeMethod method, const absl::Status& outcome,
             absl::Time arrived);
  ServeMetrics& metrics() { return metrics_; }
  std::string MetricsText() const;

  PredictionQueue& queue() { return queue_; }
  // Refuses new predictions, and waits for those in flight; false: some are left after `grace`.
  bool Drain(absl::Duration grace);

 private:
  struct Prediction;

  absl::Status CheckOutputs(const InferRequest& request) const;
  absl::StatusOr<Prediction> Predict(const InferRequest& request, absl::Time arrived);
  // kUnavailable: there is no model yet.
  absl::StatusOr<Predictor*> Served() const;
  InferReply ReplyTo(const InferRequest& request, const Prediction& prediction) const;

  std::atomic<Predictor*> predictor_{nullptr};
  std::atomic<bool> draining_{false};
  const std::atomic<bool>* const stopping_;
  ServeMetrics metrics_;
  const std::unique_ptr<RequestLog> log_;
  PredictionQueue queue_;  // destroyed first: its threads use the members above
};

}  // namespace cistern::serve
