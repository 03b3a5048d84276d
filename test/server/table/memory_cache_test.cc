#include "server/table/memory_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/value/accessor/ctr_accessor.h"
#include "common/value/cache_share.h"
#include "test/server/table/table_specs.h"

namespace cistern::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A server with one ctr table and one table without statistics.
class MemoryCacheTest : public testing::Test {
 protected:
  explicit MemoryCacheTest(uint32_t shards = 2, bool days = false)
      : store_(Map(shards, 1), 0), pool_(2) {
    v1::Schema schema;
    *schema.add_tables() = CtrSpec();
    if (days) {
      schema.mutable_tables(0)->mutable_ctr()->set_day_id_decay(true);
      schema.mutable_tables(0)->mutable_ctr()->set_show_click_decay_rate(0.5);
    }
    *schema.add_tables() = EmbeddingSpec(4, "plain");
    EXPECT_TRUE(store_.Create(schema).ok());
  }

  void Insert(Key key, double show, float unseen = 0) {
    SparseTable& table = *store_.sparse_tables()[0];
    std::vector<float> value(table.layout().full_floats());
    table.layout().Initialize(key, value.data());
    value[CtrCells::kUnseenDays] = unseen;
    StoreDouble(&value[CtrCells::kShow], show);
    table.Insert(table.shard_map().local_index(table.shard_map().shard(key)), key, value.data(),
                 false);
  }

  TableStore store_;
  ThreadPool pool_;
};

// The example of spec/003 section 1.6 (1950 shards on 15 servers: 130 on server 7) with PSLib's
// rate.
TEST(CachedRowsOfShard, IsAFixedNumberPerShard) {
  EXPECT_EQ(CachedRowsOfShard(10'000'000, 0.00055, 130),
            42u);  // 5500 rows, truncated to 42 a shard
  EXPECT_EQ(CachedRowsOfShard(130, 1, 130), 1u);
  EXPECT_EQ(CachedRowsOfShard(1000, 0.00055, 130), 1u);  // less than a row: one
}

TEST_F(MemoryCacheTest, KeepsTheMostShownRowsOfEachShard) {
  for (Key key = 0; key < 40; ++key) Insert(key, static_cast<double>(key % 10));
  MemoryCache cache(0.1);
  EXPECT_FALSE(cache.is_filled());
  EXPECT_EQ(cache.Fill(store_, pool_), 4u);  // 40 rows * 0.1 over 2 shards: 2 of each
  EXPECT_TRUE(cache.is_filled());
  EXPECT_THAT(*cache.Of(0, 0), ElementsAre(8, 18));  // even keys: 9 shows do not occur
  EXPECT_THAT(*cache.Of(0, 1), ElementsAre(9, 19));
}

TEST_F(MemoryCacheTest, ComesFromTheMostShownToTheLeast) {
  for (const Key key : {2, 4, 6, 8}) Insert(key, static_cast<double>(key) * 1e9);
  MemoryCache cache(1);
  EXPECT_EQ(cache.Fill(store_, pool_), 2u + 0u);  // k = 4 rows / 2 shards
  EXPECT_THAT(*cache.Of(0, 0), ElementsAre(8, 6));
  EXPECT_THAT(*cache.Of(0, 1), IsEmpty());
}

TEST_F(MemoryCacheTest, StaysUntilItIsFilledAgain) {
  Insert(2, 5);
  MemoryCache cache(0.5);
  EXPECT_EQ(cache.Fill(store_, pool_), 1u);
  Insert(4, 9);
  EXPECT_THAT(*cache.Of(0, 0), ElementsAre(2));
  EXPECT_EQ(cache.Fill(store_, pool_), 1u);
  EXPECT_THAT(*cache.Of(0, 0), ElementsAre(4));
  cache.Drop();
  EXPECT_EQ(cache.Of(0, 0), nullptr);
  EXPECT_FALSE(cache.is_filled());
}

TEST_F(MemoryCacheTest, HasNothingOfTablesThatDoNotCountShows) {
  Insert(2, 5);
  MemoryCache cache(0.5), off(0);
  cache.Fill(store_, pool_);
  EXPECT_EQ(cache.Of(1, 0), nullptr);
  EXPECT_EQ(cache.Of(2, 0), nullptr);
  EXPECT_EQ(cache.Of(0, 2), nullptr);
  EXPECT_EQ(off.Fill(store_, pool_), 0u);
  EXPECT_FALSE(off.is_filled());
}

class MemoryCacheOfDays : public MemoryCacheTest {
 protected:
  MemoryCacheOfDays() : MemoryCacheTest(1, /*days=*/true) {}
};

// 8 shows of day 100 count as 1 on day 103, where 2 count as 2.
TEST_F(MemoryCacheOfDays, ShowsCountAsOfTheNewestDay) {
  Insert(1, 8, 100);
  Insert(2, 2, 103);
  MemoryCache cache(0.5);
  EXPECT_EQ(cache.Fill(store_, pool_), 1u);
  EXPECT_THAT(*cache.Of(0, 0), ElementsAre(2));
}

// Whatever the cells hold: they come from a file.
TEST_F(MemoryCacheOfDays, ImpossibleNumbersAreNoError) {
  Insert(1, NAN, NAN);
  Insert(2, INFINITY, INFINITY);
  Insert(3, -1, -1);
  MemoryCache cache(1);
  EXPECT_EQ(cache.Fill(store_, pool_), 3u);
}

}  // namespace
}  // namespace cistern::server
