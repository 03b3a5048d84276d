#include "worker/export/cache/show_threshold.h"

#include <algorithm>
#include <cmath>

#include "common/value/cache_share.h"

namespace cistern {

ShowThreshold::ShowThreshold(const ShardMap& map, const std::vector<uint64_t>& rows, double rate)
    : map_(map), tops_(map.shard_num()) {
  for (uint32_t rank = 0; rank < rows.size(); ++rank) {
    k_.push_back(CachedRowsOfShard(rows[rank], rate, map.local_shard_num(rank)));
  }
}

void ShowThreshold::Add(uint32_t shard, double show) {
  Smallest& top = tops_[shard];
  if (top.size() < k_[shard % k_.size()]) return top.push(show);
  if (show <= top.top()) return;
  top.pop();
  top.push(show);
}

double ShowThreshold::Value() const {
  std::vector<double> sums(k_.size());
  for (uint32_t shard = 0; shard < tops_.size(); ++shard) {
    if (!tops_[shard].empty()) sums[shard % k_.size()] += tops_[shard].top();
  }
  double sum = 0;
  for (uint32_t rank = 0; rank < sums.size(); ++rank) {
    sum += std::trunc(sums[rank] / map_.local_shard_num(rank));
  }
  return sum / static_cast<double>(sums.size());
}

}  // namespace cistern
