#include "serve/server/metrics.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/version.h"

namespace cistern {
namespace {

constexpr const char* kProtocolNames[] = {"grpc", "http"};
constexpr const char* kMethodNames[] = {"infer", "health", "metadata", "metrics", "other"};
// In seconds: from a tenth of a millisecond, the cost of the protocol alone, to 10 s.
constexpr double kUpTo[] = {0.0001, 0.00025, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02,
                            0.05,   0.1,     0.25,   0.5,   1,     2.5,   10};

// Escapes a label's value.
std::string Escaped(const std::string& value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  return text;
}

void AppendHead(std::string* text, const char* name, const char* kind, const char* help) {
  absl::StrAppend(text, "# HELP cistern_serve_", name, " ", help, "\n# TYPE cistern_serve_", name,
                  " ", kind, "\n");
}

void AppendOne(std::string* text, const char* name, const char* kind, const char* help,
               uint64_t value) {
  AppendHead(text, name, kind, help);
  absl::StrAppend(text, "cistern_serve_", name, " ", value, "\n");
}

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
  const double seconds = absl::ToDoubleSeconds(took);
  const size_t bound = std::lower_bound(kUpTo, kUpTo + kBounds, seconds) - kUpTo;
  seconds_[p].counts[bound].fetch_add(1, std::memory_order_relaxed);
  seconds_[p].nanoseconds.fetch_add(
      static_cast<uint64_t>(std::max<int64_t>(0, absl::ToInt64Nanoseconds(took))),
      std::memory_order_relaxed);
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

void ServeMetrics::AppendRequests(std::string* text) const {
  AppendHead(text, "requests_total", "counter", "Calls answered, by protocol, method and outcome.");
  for (size_t p = 0; p < kProtocols; ++p) {
    for (size_t m = 0; m < kMethods; ++m) {
      for (size_t c = 0; c < kCodes; ++c) {
        const uint64_t count = Read(requests_[p][m][c]);
        if (count == 0) continue;
        absl::StrAppend(text, "cistern_serve_requests_total{protocol=\"", kProtocolNames[p],
                        "\",method=\"", kMethodNames[m], "\",outcome=\"",
                        absl::StatusCodeToString(static_cast<absl::StatusCode>(c)), "\"} ", count,
                        "\n");
      }
    }
  }
}

void ServeMetrics::AppendSeconds(std::string* text) const {
  static_assert(std::size(kUpTo) == kBounds);
  AppendHead(text, "infer_seconds", "histogram",
             "Seconds from the arrival of an infer request to its answer.");
  for (size_t p = 0; p < kProtocols; ++p) {
    const std::string labels = absl::StrCat("{protocol=\"", kProtocolNames[p], "\"");
    uint64_t count = 0;
    for (size_t i = 0; i <= kBounds; ++i) {
      count += Read(seconds_[p].counts[i]);
      absl::StrAppend(text, "cistern_serve_infer_seconds_bucket", labels, ",le=\"");
      if (i < kBounds) {
        absl::StrAppend(text, kUpTo[i]);
      } else {
        absl::StrAppend(text, "+Inf");
      }
      absl::StrAppend(text, "\"} ", count, "\n");
    }
    absl::StrAppend(
        text, "cistern_serve_infer_seconds_sum", labels, "} ",
        absl::StrFormat("%.9g", static_cast<double>(Read(seconds_[p].nanoseconds)) * 1e-9), "\n",
        "cistern_serve_infer_seconds_count", labels, "} ", count, "\n");
  }
}

std::string ServeMetrics::Text(const ServeGauges& gauges) const {
  std::string text;
  AppendHead(&text, "info", "gauge", "The model and the version of Cistern.");
  absl::StrAppend(&text, "cistern_serve_info{model=\"", Escaped(gauges.model), "\",version=\"",
                  kVersion, "\"} 1\n");
  AppendOne(&text, "ready", "gauge",
            "1 if health checks say so; 0 before the first version and while the server stops.",
            gauges.ready ? 1 : 0);
  if (!gauges.model.empty()) {
    AppendOne(&text, "commit", "gauge", "The commit that is served.", gauges.commit);
  }
  AppendOne(&text, "open_failures_total", "counter",
            "Attempts to read the serving folder or to open its current version that failed.",
            Read(first_open_failures_) + gauges.open_failures);
  AppendOne(&text, "open_failing", "gauge",
            "1 if the last such attempt failed: an older version is served, or none.",
            first_open_failing_ || gauges.open_failing ? 1 : 0);
  AppendOne(&text, "certificates_renewed_total", "counter",
            "Renewed certificates that new connections use.", Read(certificates_));
  AppendOne(&text, "certificates_failing", "gauge",
            "1 if the files of the certificates cannot be used; those before are.",
            certificates_failing_ ? 1 : 0);
  AppendRequests(&text);
  AppendSeconds(&text);
  AppendOne(&text, "samples_total", "counter", "Samples predicted.", Read(samples_));
  AppendOne(&text, "keys_total", "counter", "Keys of those samples.", Read(keys_));
  AppendOne(&text, "unseen_keys_total", "counter", "Keys that the model has no row for.",
            Read(unseen_));
  AppendOne(&text, "in_flight", "gauge", "Infer requests that wait or are computed.",
            gauges.in_flight);
  AppendOne(&text, "in_flight_limit", "gauge", "Above it requests are refused.",
            gauges.max_in_flight);
  AppendOne(&text, "refused_total", "counter", "Requests refused because of overload.",
            Read(refused_));
  AppendOne(&text, "logged_total", "counter", "Requests written to the request log.",
            gauges.logged);
  AppendOne(&text, "log_dropped_total", "counter",
            "Requests that the log missed: its writer was behind, or the disk failed.",
            gauges.log_dropped);
  return text;
}

}  // namespace cistern
