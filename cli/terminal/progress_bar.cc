#include "cli/terminal/progress_bar.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/amount_text.h"

namespace cistern::cli {
namespace {

constexpr int kMinBar = 6, kMaxBar = 30;

// The fields after the bar, the most important first.
std::vector<std::string> FieldsOf(const BarState& state) {
  std::vector<std::string> fields;
  if (!state.phase.empty()) {
    fields.push_back(state.phase);
  } else if (state.samples_per_second) {
    fields.push_back(CountText(*state.samples_per_second) + "/s");
  }
  if (state.seconds_left) fields.push_back(DurationText(*state.seconds_left) + " left");
  if (state.loss) fields.push_back(absl::StrFormat("loss %.4f", *state.loss));
  if (state.auc) fields.push_back(absl::StrFormat("auc %.4f", *state.auc));
  return fields;
}

std::string Repeat(const char* text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

std::string Bar(double share, int width, const BarStyle& style) {
  const int full = static_cast<int>(std::floor(share * width));
  const char* done = style.unicode ? "\xE2\x94\x81" : "=";
  const char* open = style.unicode ? "\xE2\x94\x80" : "-";
  if (!style.colour) return Repeat(done, full) + Repeat(open, width - full);
  return absl::StrCat("\x1b[36m", Repeat(done, full), "\x1b[0m\x1b[2m", Repeat(open, width - full),
                      "\x1b[0m");
}

}  // namespace

std::string BarLine(const BarState& state, const BarStyle& style) {
  const int room = std::max(style.columns - 1, 1);
  std::string begin = CountText(static_cast<double>(state.samples)) + " samples";
  if (state.share) begin = absl::StrFormat("%3.0f%%", 100 * std::clamp(*state.share, 0.0, 1.0));
  std::string end;
  for (const std::string& field : FieldsOf(state)) {
    if (static_cast<int>(begin.size() + end.size() + 2 + field.size()) > room) continue;
    absl::StrAppend(&end, "  ", field);
  }
  const int left = room - static_cast<int>(begin.size() + 1 + end.size());
  if (state.share && left >= kMinBar) {
    absl::StrAppend(&begin, " ",
                    Bar(std::clamp(*state.share, 0.0, 1.0), std::min(left, kMaxBar), style));
  } else if (static_cast<int>(begin.size()) > room) {
    begin.resize(static_cast<size_t>(room));
  }
  return begin + end;
}

}  // namespace cistern::cli
