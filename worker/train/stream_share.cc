#include "worker/train/stream_share.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "worker/train/calibration.h"

namespace cistern {
namespace {

double WithOdds(double share, double factor) {
  const double odds = factor * share / (1 - share);
  return odds / (1 + odds);
}

void AddSamples(const std::vector<report::ScoreBin>& bins, StreamShare* share) {
  double samples = 0, positives = 0, total = 0;
  for (const report::ScoreBin& bin : bins) {
    samples += static_cast<double>(bin.samples);
    positives += bin.positives;
    total += bin.total();
  }
  share->samples += samples;
  share->positives += positives / total * samples;
}

}  // namespace

std::optional<std::string> AddToShare(const std::vector<report::ScoreBin>& bins, StreamShare* share,
                                      bool* corrects) {
  const double pending = share->samples;
  AddSamples(bins, share);
  const double before = share->share, samples = share->samples, positives = share->positives;
  const double rare = std::min(before, 1 - before);
  const double expected = samples * rare;
  const double rarer = std::min(positives, samples - positives);
  if (expected >= kMinRarer) share->lacks_label = rarer < expected / 10;
  *corrects = !share->lacks_label;
  // Twice as many are enough alone: after rows of one class hardly any are expected.
  const bool are_enough = expected >= kMinExpected || rarer >= 2 * kMinExpected;
  if (are_enough && rarer >= kMinRarer) {
    *share = {.share = DriftedShare(positives / samples, rarer, before)};
    *corrects = true;
    return std::nullopt;
  }
  if (expected < kExpectedOfNearlyNone) return std::nullopt;
  *corrects = (samples - pending) * rare >= kExpectedOfNearlyNone;
  const bool falls = positives / samples < before;
  *share = {.share = WithOdds(before, falls ? 1 / kMaxOddsStep : kMaxOddsStep),
            .lacks_label = true};
  return absl::StrFormat(
      "%.0f of the last %.0f samples of the stream are positive, where %.0f were expected: they "
      "move the mean prediction that is right from %.4g to %.4g only; if labels are missing, "
      "restore them, and mix the rows of both labels",
      positives, samples, samples * before, before, share->share);
}

}  // namespace cistern
