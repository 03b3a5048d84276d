#include "serve/server/metrics.h"

#include <algorithm>

#include "common/base/version.h"
#include "common/metrics/process_figures.h"

namespace cistern::serve {
namespace {

constexpr const char* kProtocolNames[] = {"grpc", "http"};
constexpr const char* kMethodNames[] = {"infer", "health", "metadata", "metrics", "other"};

uint64_t Read(const std::atomic<uint64_t>& counter) {
  return counter.load(std::memory_order_relaxed);
}

}  // namespace

void ServeMetrics::Count(Protocol protocol, ServeMethod method, absl::StatusCode outcome,
                         absl::Duration took) {
  const auto p = static_cast<size_t>(protocol);
  const size_t code = std::min<size_t>(static_cast<size_t>(outcome), kCodes - 1);
  requests_[p][static_cast<size_t>(method)][code].fetch_add(1, std::memory_order_relaxed);
  if (method != ServeMethod::kInfer) return;
  seconds_[p].Add(took);
}

void ServeMetrics::CountPrediction(uint64_t samples, uint64_t keys, uint64_t unseen) {
  samples_.fetch_add(samples, std::memory_order_relaxed);
  keys_.fetch_add(keys, std::memory_order_relaxed);
  unseen_.fetch_add(unseen, std::memory_order_relaxed);
}

void ServeMetrics::CountFirstOpen(bool opened) {
  if (!opened) first_open_failures_.fetch_add(1, std::memory_order_relaxed);
  first_open_failing_ = !opened;
}

void ServeMetrics::AddRequests(MetricText* text) const {
  text->Family("requests_total", MetricType::kCounter,
               "Calls answered, by protocol, method and outcome.");
  for (size_t p = 0; p < kProtocols; ++p) {
    for (size_t m = 0; m < kMethods; ++m) {
      for (size_t c = 0; c < kCodes; ++c) {
        const uint64_t count = Read(requests_[p][m][c]);
        if (count == 0) continue;
        text->Sample({{"protocol", kProtocolNames[p]},
                      {"method", kMethodNames[m]},
                      {"outcome", absl::StatusCodeToString(static_cast<absl::StatusCode>(c))}},
                     count);
      }
    }
  }
}

std::string ServeMetrics::Text(const ServeGauges& gauges) const {
  MetricText text("cistern_serve_");
  text.Family("info", MetricType::kGauge, "The model and the version of Cistern.");
  text.Sample({{"model", gauges.model}, {"version", kVersion}}, 1);
  text.Gauge("ready",
             "1 if health checks say so; 0 before the first version and while the server stops.",
             gauges.ready ? 1 : 0);
  if (!gauges.model.empty()) text.Gauge("commit", "The commit that is served.", gauges.commit);
  text.Counter("open_failures_total",
               "Attempts to read the serving folder or to open its current version that failed.",
               Read(first_open_failures_) + gauges.open_failures);
  text.Gauge("open_failing",
             "1 if the last such attempt failed: an older version is served, or none.",
             first_open_failing_ || gauges.open_failing ? 1 : 0);
  text.Counter("certificates_renewed_total", "Renewed certificates that new connections use.",
               Read(certificates_));
  text.Gauge("certificates_failing",
             "1 if the files of the certificates cannot be used; those before are.",
             certificates_failing_ ? 1 : 0);
  AddRequests(&text);
  text.Family("infer_seconds", MetricType::kHistogram,
              "Seconds from the arrival of an infer request to its answer.");
  for (size_t p = 0; p < kProtocols; ++p) {
    text.Sample({{"protocol", kProtocolNames[p]}}, seconds_[p]);
  }
  text.Counter("samples_total", "Samples predicted.", Read(samples_));
  text.Counter("keys_total", "Keys of those samples.", Read(keys_));
  text.Counter("unseen_keys_total", "Keys that the model has no row for.", Read(unseen_));
  text.Gauge("in_flight", "Infer requests that wait or are computed.", gauges.in_flight);
  text.Gauge("in_flight_limit", "Above it requests are refused.", gauges.max_in_flight);
  text.Counter("refused_total", "Requests refused because of overload.", Read(refused_));
  text.Counter("logged_total", "Requests written to the request log.", gauges.logged);
  text.Counter("log_dropped_total",
               "Requests that the log missed: its writer was behind, or the disk failed.",
               gauges.log_dropped);
  AddProcessFigures(&text);
  return text.Take();
}

}  // namespace cistern::serve
