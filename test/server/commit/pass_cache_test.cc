#include "server/commit/pass_cache.h"

#include <gtest/gtest.h>

#include <limits>

namespace cistern::server {
namespace {

constexpr uint64_t kRowBytes = 100;

// Rows in memory, if all of `rows` were kept; they were seen `age` passes ago.
ScoreHistogram Rows(uint64_t rows, uint64_t age = 0) {
  ScoreHistogram scores(ScoreOfPass(50));
  for (uint64_t i = 0; i < rows; ++i) scores.Add(ScoreOfPass(50 - age), kRowBytes);
  return scores;
}

PassRows Pass(uint64_t rows, uint64_t found) {
  return {rows, found, rows * kRowBytes};
}

TEST(PassCache, KeepsAllRowsWhileThereIsRoom) {
  PassCache cache({"deep", /*num_blocks=*/3, /*target_hit_rate=*/.5, /*max_num_evict=*/0});
  for (const uint64_t rows : {10, 20, 30}) {
    const PassCache::Step step = cache.Next(Pass(10, 0), Rows(rows));
    EXPECT_TRUE(step.cut.keeps_all());
    EXPECT_TRUE(step.admits);
  }
  const PassCache::Step full = cache.Next(Pass(10, 0), Rows(31));
  EXPECT_TRUE(full.cut.keeps_all());
  EXPECT_FALSE(full.admits);
  // A larger pass makes room.
  EXPECT_TRUE(cache.Next(Pass(11, 0), Rows(33)).admits);
}

TEST(PassCache, ExchangesRowsOnlyForPassesThatFindTooFew) {
  PassCache cache({"deep", 3, .5, /*max_num_evict=*/100});
  EXPECT_TRUE(cache.Next(Pass(10, 4), Rows(40)).admits);
  EXPECT_FALSE(cache.Next(Pass(10, 5), Rows(40)).admits);
  EXPECT_FALSE(cache.Next(Pass(10, 10), Rows(40)).admits);
  const PassCache::Step step = cache.Next(Pass(10, 0), Rows(40));
  EXPECT_FALSE(step.cut.keeps_all());
  // 30 of 40 rows with equal scores stay: three quarters of them.
  int kept = 0;
  for (Key key = 0; key < 10000; ++key) kept += step.cut.Keeps(ScoreOfPass(50), key) ? 1 : 0;
  EXPECT_NEAR(kept, 7500, 150);
}

TEST(PassCache, FreezesAfterSoManyExchanges) {
  PassCache cache({"deep", 3, 1, /*max_num_evict=*/2});
  EXPECT_TRUE(cache.Next(Pass(10, 0), Rows(30)).admits);  // there was room: no exchange
  EXPECT_TRUE(cache.Next(Pass(10, 9), Rows(31)).admits);
  EXPECT_TRUE(cache.Next(Pass(10, 9), Rows(31)).admits);
  EXPECT_FALSE(cache.Next(Pass(10, 0), Rows(31)).admits);
  EXPECT_FALSE(cache.Next(Pass(10, 0), Rows(40)).admits);
}

TEST(PassCache, ManyBlocksHaveRoomForAll) {
  PassCache cache({"deep", std::numeric_limits<uint64_t>::max(), 1, 0});
  EXPECT_TRUE(cache.Next(Pass(10, 0), Rows(1000)).cut.keeps_all());
  EXPECT_TRUE(cache.Next(Pass(10, 0), Rows(1000)).admits);
}

}  // namespace
}  // namespace cistern::server
