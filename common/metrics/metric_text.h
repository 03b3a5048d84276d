// Writes figures in the text format of Prometheus, version 0.0.4: the only writer of that format.
//
//   MetricText text("cistern_server_");
//   text.Counter("pulled_keys_total", "Keys pulled.", pulled);
//   text.Family("rows", MetricType::kGauge, "Rows of a table.");
//   text.Sample({{"table", name}}, rows);
//   return text.Take();
//
// The object that counts owns its counters and gauges, and they are read when a page is asked for;
// there is no registry. Why not prometheus-cpp:
// docs/decisions/2026-11-27-metrics-are-written-by-hand.md.
//
// Names follow the conventions of Prometheus, and a name that does not is a bug that stops the
// process: [a-z0-9_], a counter ends in _total, and nothing else does. The values of labels may be
// any bytes; those that are not UTF-8, which would make Prometheus refuse the whole page, become
// '?', and long ones are cut.
//
// Threads: one at a time.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/metrics/duration_histogram.h"

namespace cistern {

enum class MetricType { kCounter, kGauge, kHistogram };

class MetricText {
 public:
  using Labels = std::initializer_list<std::pair<absl::string_view, absl::string_view>>;
  static constexpr size_t kMaxLabelBytes = 200;
  static constexpr char kContentType[] = "text/plain; version=0.0.4; charset=utf-8";

  // prefix: of all names, e.g. "cistern_server_".
  explicit MetricText(absl::string_view prefix) : prefix_(prefix) {}

  // Begins a family. Its samples follow, at most one for each set of labels.
  void Family(absl::string_view name, MetricType type, absl::string_view help);
  // A sample of the last family, a counter or a gauge.
  template <std::integral Number>
  void Sample(Labels labels, Number value) {
    Append("", labels, {}, absl::StrCat(value));
  }
  void Sample(Labels labels, double value);
  // A sample of the last family, a histogram.
  void Sample(Labels labels, const DurationHistogram& histogram);

  // A family of one sample without labels.
  void Counter(absl::string_view name, absl::string_view help, uint64_t value);
  void Counter(absl::string_view name, absl::string_view help, double value);
  template <std::integral Number>
  void Gauge(absl::string_view name, absl::string_view help, Number value) {
    Family(name, MetricType::kGauge, help);
    Sample({}, value);
  }
  void Gauge(absl::string_view name, absl::string_view help, double value);

  // The names that follow begin with `prefix`.
  void set_prefix(absl::string_view prefix) { prefix_ = std::string(prefix); }

  // The page.
  std::string Take() { return std::move(text_); }

 private:
  void Append(absl::string_view suffix, Labels labels, absl::string_view bound,
              absl::string_view value);

  std::string prefix_;
  std::string family_;  // the full name of the last one
  MetricType type_ = MetricType::kGauge;
  std::string text_;
};

}  // namespace cistern
