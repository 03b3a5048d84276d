#include "server/table/hot_rows.h"

#include <numeric>

namespace cistern::server {

uint64_t ScoreHistogram::total() const {
  return std::accumulate(bytes_.begin(), bytes_.end(), uint64_t{0});
}

ScoreCut::ScoreCut(const ScoreHistogram& scores, uint64_t limit) : now_(scores.now_) {
  uint64_t kept = 0;
  for (int bin = ScoreHistogram::kBins; bin-- > 0;) {
    const uint64_t bytes = scores.bytes_[static_cast<size_t>(bin)];
    if (bytes <= limit - kept) {
      kept += bytes;
      continue;
    }
    bin_ = bin;
    share_ = static_cast<uint64_t>(static_cast<double>(limit - kept) / static_cast<double>(bytes) *
                                   4294967296.0);
    return;
  }
}

}  // namespace cistern::server
