#include "serve/server/inference_core.h"

#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "serve/server/samples.h"

namespace cistern::serve {

struct InferenceCore::Prediction {
  PredictorShape shape;
  Samples samples;
  std::vector<float> probabilities;  // [samples, label_dim]
  ServedVersion version;
  uint64_t unseen = 0;
};

InferenceCore::InferenceCore(int threads, size_t max_in_flight, std::unique_ptr<RequestLog> log,
                             const std::atomic<bool>* stopping)
    : stopping_(stopping), log_(std::move(log)), queue_(threads, max_in_flight) {}

absl::StatusOr<Predictor*> InferenceCore::Served() const {
  Predictor* const predictor = predictor_.load();
  if (predictor != nullptr) return predictor;
  return absl::UnavailableError(
      "this server has no model yet: it waits for a version in its serving folder");
}

absl::Status InferenceCore::CheckReady() const {
  if (stopping()) return absl::UnavailableError("this server is stopping; ask another one");
  return Served().status();
}

absl::Status InferenceCore::CheckModel(const std::string& name, const std::string& version) const {
  CISTERN_ASSIGN_OR_RETURN(Predictor* const predictor, Served());
  const std::string served = predictor->name();
  if (name != served) {
    return absl::NotFoundError(
        absl::StrCat("this server has no model ", Quoted(name), "; it serves '", served, "'"));
  }
  const std::string current = absl::StrCat(predictor->version().commit);
  if (version.empty() || version == current) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("model '", name, "' has no version ", Quoted(version),
                                          " here; this server serves commit ", current,
                                          "; leave the version out to get whatever is served"));
}

absl::Status InferenceCore::CheckOutputs(const InferRequest& request) const {
  for (const InferRequest::Output& output : request.outputs) {
    const std::string& name = output.name;
    if (name == kProbability || name == kCommit || name == kUnseenKeys || name == kOutput0) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("this model has no output ", Quoted(name),
                     "; it has probability, commit, unseen_keys and OUTPUT0"));
  }
  return absl::OkStatus();
}

absl::StatusOr<InferenceCore::Prediction> InferenceCore::Predict(const InferRequest& request,
                                                                 absl::Time arrived) {
  CISTERN_RETURN_IF_ERROR(CheckModel(request.model, request.version));
  CISTERN_RETURN_IF_ERROR(CheckOutputs(request));
  CISTERN_ASSIGN_OR_RETURN(Predictor* const predictor, Served());
  const PredictorShape& shape = predictor->shape();
  CISTERN_ASSIGN_OR_RETURN(
      Samples samples,
      Samples::Decode(shape, predictor->max_samples(), request.inputs, predictor->encoder().get()));
  if (request.timeout_us > 0 &&
      absl::Now() - arrived > absl::Microseconds(static_cast<double>(request.timeout_us))) {
    return absl::DeadlineExceededError(absl::StrCat(
        "the request waited longer than its timeout of ", request.timeout_us, " microseconds"));
  }
  Prediction prediction{shape, std::move(samples), {}, {}, 0};
  prediction.probabilities.resize(prediction.samples.request().samples * shape.label_dim);
  CISTERN_RETURN_IF_ERROR(predictor->Predict(prediction.samples.request(),
                                             absl::MakeSpan(prediction.probabilities),
                                             &prediction.version, &prediction.unseen));
  // The commit may have been replaced since CheckModel.
  if (!request.version.empty() && request.version != absl::StrCat(prediction.version.commit)) {
    return absl::NotFoundError(absl::StrCat("model '", request.model, "' now serves commit ",
                                            prediction.version.commit, ", no longer ",
                                            request.version));
  }
  return prediction;
}

InferReply InferenceCore::ReplyTo(const InferRequest& request, const Prediction& prediction) const {
  const auto samples = static_cast<int64_t>(prediction.samples.request().samples);
  const auto label_dim = static_cast<int64_t>(prediction.shape.label_dim);
  const auto commit = static_cast<int64_t>(prediction.version.commit);
  const auto unseen = static_cast<int64_t>(prediction.unseen);
  const absl::Span<const float> probabilities = prediction.probabilities;

  InferReply reply;
  reply.model = request.model;  // CheckModel: the name of the one that is served
  reply.id = request.id;
  reply.commit = prediction.version.commit;
  std::vector<InferRequest::Output> outputs = request.outputs;
  if (outputs.empty()) outputs = {{kProbability, {}}, {kCommit, {}}};
  for (const InferRequest::Output& output : outputs) {
    if (output.name == kProbability) {
      reply.outputs.push_back(TensorOf(output.name, "FP32", {samples, label_dim}, probabilities));
    } else if (output.name == kOutput0) {
      reply.outputs.push_back(TensorOf(output.name, "FP32", {samples * label_dim}, probabilities));
    } else {
      const int64_t value = output.name == kCommit ? commit : unseen;
      reply.outputs.push_back(
          TensorOf(output.name, "INT64", {1}, absl::Span<const int64_t>(&value, 1)));
    }
    reply.binary.push_back(output.binary.value_or(request.binary_outputs));
  }
  return reply;
}

void InferenceCore::Infer(const InferRequest& request, absl::Time arrived, const Answer& answer) {
  const absl::StatusOr<Prediction> prediction = Predict(request, arrived);
  if (!prediction.ok()) return answer(prediction.status());
  const PredictRequest& samples = prediction->samples.request();
  metrics_.CountPrediction(samples.samples, prediction->samples.key_num(), prediction->unseen);
  const bool logged = log_ != nullptr && log_->Chooses();
  answer(ReplyTo(request, *prediction));
  if (!logged) return;
  log_->Add(request.id, prediction->shape, samples, prediction->probabilities,
            prediction->version.commit, prediction->unseen);
}

void InferenceCore::Count(Protocol protocol, ServeMethod method, const absl::Status& outcome,
                          absl::Time arrived) {
  metrics_.Count(protocol, method, outcome.code(), absl::Now() - arrived);
  if (absl::IsResourceExhausted(outcome)) metrics_.CountRefused();
}

std::string InferenceCore::MetricsText() const {
  ServeGauges gauges;
  if (const Predictor* const predictor = predictor_.load(); predictor != nullptr) {
    gauges.model = predictor->name();
    gauges.commit = predictor->version().commit;
    const FollowState following = predictor->follow_state();
    gauges.open_failures = following.failures;
    gauges.open_failing = following.failing;
  }
  gauges.ready = CheckReady().ok();
  gauges.in_flight = queue_.in_flight();
  gauges.max_in_flight = queue_.max_in_flight();
  if (log_ != nullptr) {
    gauges.logged = log_->logged();
    gauges.log_dropped = log_->dropped();
  }
  return metrics_.Text(gauges);
}

bool InferenceCore::Drain(absl::Duration grace) {
  BeginDrain();
  return queue_.Drain(grace);
}

}  // namespace cistern::serve
