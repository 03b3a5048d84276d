// How many shows a row needs to be in the feature cache: PSLib's estimate of the k-th largest
// number of shows of a table, without a sort over all servers.
//
//   k              common/value/cache_share.h
//   of a shard     its k-th largest show, the smallest if it has fewer rows, 0 without rows
//   of a server    the mean over its shards, truncated to an integer
//   of the fleet   the mean over the servers
//
// All rows of a table count, also those that no cache may hold.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "common/value/shard_map.h"

namespace cistern {

// Threads: one at a time. Memory: 8 bytes * rate per row, and at least 8 per shard.
class ShowThreshold {
 public:
  // rows: of the table, by server. rate: 0 to 1.
  ShowThreshold(const ShardMap& map, const std::vector<uint64_t>& rows, double rate);

  void Add(uint32_t shard, double show);
  double Value() const;

 private:
  using Smallest = std::priority_queue<double, std::vector<double>, std::greater<>>;

  const ShardMap map_;
  std::vector<uint64_t> k_;     // by server
  std::vector<Smallest> tops_;  // by shard: its k largest shows
};

}  // namespace cistern
