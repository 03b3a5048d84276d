#include "worker/export/cache/show_threshold.h"

#include <gtest/gtest.h>

namespace cistern {
namespace {

double Threshold(uint32_t shards, uint32_t servers, const std::vector<uint64_t>& rows, double rate,
                 const std::vector<std::vector<double>>& shows) {
  ShowThreshold threshold(ShardMap::Create(shards, servers).value(), rows, rate);
  for (uint32_t shard = 0; shard < shards; ++shard) {
    for (const double show : shows[shard]) threshold.Add(shard, show);
  }
  return threshold.Value();
}

// Worked out by hand from the rule.
TEST(ShowThreshold, OneServerTakesTheMeanOfItsShardsTruncated) {
  const std::vector<std::vector<double>> shows = {{1, 9, 5, 7}, {2, 2, 8, 3}};
  EXPECT_EQ(Threshold(2, 1, {8}, 0.5, shows), 5);   // k = 2: (7 + 3) / 2
  EXPECT_EQ(Threshold(2, 1, {8}, 0.75, shows), 3);  // k = 3: (5 + 2) / 2 = 3.5
  EXPECT_EQ(Threshold(2, 1, {8}, 1, shows), 1);     // k = 4: (1 + 2) / 2 = 1.5
}

TEST(ShowThreshold, KIsAtLeastOne) {
  EXPECT_EQ(Threshold(2, 1, {8}, 0.00055, {{1, 9, 5, 7}, {2, 2, 8, 3}}), 8);  // (9 + 8) / 2
}

TEST(ShowThreshold, AShardWithoutRowsCountsAsZero) {
  EXPECT_EQ(Threshold(3, 1, {4}, 0.1, {{10, 3}, {}, {20, 4}}), 10);  // (10 + 0 + 20) / 3
}

TEST(ShowThreshold, AShardOfFewerThanKRowsGivesItsSmallest) {
  EXPECT_EQ(Threshold(2, 1, {8}, 1, {{6}, {7, 6, 5, 4, 3, 2, 1}}), 5);  // k = 4: (6 + 4) / 2
}

TEST(ShowThreshold, TheFleetTakesTheMeanOfItsServers) {
  // Server 0 has shards 0 and 2, server 1 has shard 1. k: floor(6 * 0.5) / 2 = 1, floor(4 * 0.5).
  const std::vector<std::vector<double>> shows = {{5, 1, 2}, {9, 8, 7, 1}, {6, 3, 3}};
  EXPECT_EQ(Threshold(3, 2, {6, 4}, 0.5, shows), 6.5);  // (trunc((5 + 6) / 2) + 8) / 2
}

}  // namespace
}  // namespace cistern
