// The figures of a serving process, as a page for Prometheus (common/metrics/metric_text.h).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "common/base/status.h"
#include "common/metrics/duration_histogram.h"
#include "common/metrics/metric_text.h"

namespace cistern::serve {

enum class Protocol { kGrpc, kHttp };
enum class ServeMethod { kInfer, kHealth, kMetadata, kMetrics, kOther };

// Values at the moment of a scrape that no counter holds.
struct ServeGauges {
  std::string model;  // empty: there is none yet
  uint64_t commit = 0;
  size_t in_flight = 0, max_in_flight = 0;
  uint64_t logged = 0, log_dropped = 0;
  bool ready = false;
  // Attempts to open a version that failed while another one was served.
  uint64_t open_failures = 0;
  bool open_failing = false;  // the last attempt failed
};

// Threads: any thread.
class ServeMetrics {
 public:
  // A call has been answered. took: from its arrival; for kInfer it enters the histogram.
  void Count(Protocol protocol, ServeMethod method, absl::StatusCode outcome, absl::Duration took);
  // A prediction was made.
  void CountPrediction(uint64_t samples, uint64_t keys, uint64_t unseen);
  // A request was refused because too many are in flight, or too much memory is held.
  void CountRefused() { refused_.fetch_add(1, std::memory_order_relaxed); }

  // An attempt to open the first version.
  void CountFirstOpen(bool opened);
  // Renewed certificates are used from now on.
  void CountCertificates() { certificates_.fetch_add(1, std::memory_order_relaxed); }
  // Whether those that were read last cannot be used.
  void SetCertificatesFailing(bool failing) { certificates_failing_ = failing; }

  // The body of GET /metrics.
  std::string Text(const ServeGauges& gauges) const;

 private:
  static constexpr size_t kProtocols = 2, kMethods = 5, kCodes = 17;
  using Counter = std::atomic<uint64_t>;

  void AddRequests(MetricText* text) const;

  std::array<std::array<std::array<Counter, kCodes>, kMethods>, kProtocols> requests_{};
  std::array<DurationHistogram, kProtocols> seconds_{DurationHistogram(kRequestSeconds),
                                                     DurationHistogram(kRequestSeconds)};
  Counter samples_{0}, keys_{0}, unseen_{0}, refused_{0};
  Counter first_open_failures_{0}, certificates_{0};
  std::atomic<bool> first_open_failing_{false}, certificates_failing_{false};
};

}  // namespace cistern::serve
