// The line that shows on a terminal where a training is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cistern::cli {

struct BarState {
  std::optional<double> share;  // of the run that is done, 0 to 1; absent: its end is unknown
  uint64_t samples = 0;
  std::optional<double> samples_per_second, seconds_left, loss, auc;
  std::string phase;  // what happens now, instead of the rate: "evaluating"; empty: it trains
};

struct BarStyle {
  int columns = 80;
  bool colour = false;   // ANSI escapes
  bool unicode = false;  // UTF-8
};

// " 42% ━━━━━━━━────────  45.7k/s  2m10s left  loss 0.3412  auc 0.98123". At most columns - 1 wide,
// which keeps a terminal from wrapping: a narrow one gets a shorter bar, then fewer fields. Without
// a share there is no bar, and the samples are counted instead.
std::string BarLine(const BarState& state, const BarStyle& style);

}  // namespace cistern::cli
