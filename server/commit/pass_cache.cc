#include "server/commit/pass_cache.h"

#include <algorithm>
#include <limits>

namespace cistern::server {

PassCache::Step PassCache::Next(const PassRows& pass, const ScoreHistogram& scores) {
  largest_bytes_ = std::max(largest_bytes_, pass.bytes);
  uint64_t room = 0;
  if (__builtin_mul_overflow(options_.num_blocks, largest_bytes_, &room)) {
    room = std::numeric_limits<uint64_t>::max();
  }
  if (scores.total() <= room) return {};
  const bool found_enough =
      static_cast<double>(pass.found) >= options_.target_hit_rate * static_cast<double>(pass.rows);
  if (found_enough || evictions_ >= options_.max_num_evict) return {{}, /*admits=*/false};
  ++evictions_;
  return {ScoreCut(scores, room), /*admits=*/true};
}

}  // namespace cistern::server
