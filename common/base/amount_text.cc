#include "common/base/amount_text.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace cistern {

std::string DurationText(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds < 59.95) return absl::StrFormat("%.1fs", seconds);
  const auto whole = static_cast<uint64_t>(std::llround(seconds));
  if (whole < 3600) return absl::StrFormat("%dm%02ds", whole / 60, whole % 60);
  return absl::StrFormat("%dh%02dm", whole / 3600, whole % 3600 / 60);
}

std::string CountText(double count) {
  if (count < 1000) return absl::StrFormat("%.0f", count);
  if (count < 1e6) return absl::StrFormat("%.1fk", count / 1e3);
  if (count < 1e9) return absl::StrFormat("%.2fM", count / 1e6);
  return absl::StrFormat("%.1fG", count / 1e9);
}

std::string BytesText(uint64_t bytes) {
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  double amount = static_cast<double>(bytes);
  const char* unit = "B";
  for (const char* larger : {"KiB", "MiB", "GiB", "TiB"}) {
    if (amount < 1024) break;
    amount /= 1024;
    unit = larger;
  }
  return absl::StrFormat("%.1f %s", amount, unit);
}

}  // namespace cistern
