#include "server/table/shard_filler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/server/table/table_specs.h"

namespace cistern::server {
namespace {

constexpr uint32_t kShardNum = 4;
constexpr ShardIndex kShard = 1;  // its keys are 1, 5, 9, ...

Key KeyOf(uint64_t i) {
  return i * kShardNum + kShard;
}

// Adds `count` rows, every third without embedx: several full batches and a partial one.
void AddRows(ShardFiller& filler, const ValueLayout& layout, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    const bool has_embedx = i % 3 != 0;
    const std::vector<float> value = TestValue(layout, KeyOf(i), 1, has_embedx);
    ASSERT_TRUE(filler.Add(KeyOf(i), value.data(), has_embedx).ok());
  }
}

TEST(ShardFiller, FinishStoresEveryRow) {
  const auto table = Table(CtrSpec(), Map(kShardNum, 1));
  ShardFiller filler(*table, kShard);
  AddRows(filler, table->layout(), 2500);
  EXPECT_FALSE(filler.Finish().has_value());
  EXPECT_EQ(filler.rows(), 2500u);
  EXPECT_EQ(table->counts().rows, 2500u);
  EXPECT_EQ(table->counts().embedx_rows, 2500u - 834u);
  std::vector<float> found(table->layout().full_floats());
  for (uint64_t i = 0; i < 2500; ++i) {
    bool has_embedx = false;
    ASSERT_TRUE(*table->Find(KeyOf(i), found.data(), &has_embedx));
    EXPECT_EQ(has_embedx, i % 3 != 0);
    EXPECT_EQ(found, TestValue(table->layout(), KeyOf(i), 1, has_embedx));
  }
}

// A repeat in a batch of its own, within one batch, and after a written batch.
TEST(ShardFiller, ReportsTheNumberOfTheFirstRepeat) {
  for (const uint64_t rows : {1ull, 700ull, 1024ull, 2500ull}) {
    const auto table = Table(CtrSpec(), Map(kShardNum, 1));
    ShardFiller filler(*table, kShard);
    AddRows(filler, table->layout(), rows);
    const std::vector<float> other = TestValue(table->layout(), KeyOf(0), 2, true);
    ASSERT_TRUE(filler.Add(KeyOf(0), other.data(), true).ok());
    ASSERT_TRUE(filler.Add(KeyOf(rows), other.data(), true).ok());
    const auto repeat = filler.Finish();
    ASSERT_TRUE(repeat.has_value());
    EXPECT_EQ(repeat->number, rows + 1);
    EXPECT_EQ(repeat->key, KeyOf(0));
    EXPECT_EQ(table->counts().rows, rows);
    std::vector<float> found(table->layout().full_floats());
    bool has_embedx = true;
    ASSERT_TRUE(*table->Find(KeyOf(0), found.data(), &has_embedx));
    EXPECT_EQ(found, TestValue(table->layout(), KeyOf(0), 1, false)) << "it was overwritten";
  }
}

TEST(ShardFiller, RefusesReservedKeysAndKeysOfOtherShards) {
  const auto table = Table(CtrSpec(), Map(kShardNum, 1));
  ShardFiller filler(*table, kShard);
  const std::vector<float> value(table->layout().full_floats());
  EXPECT_THAT(filler.Add(6, value.data(), false).ToString(),
              testing::HasSubstr("key 6 belongs to shard 2, not to shard 1"));
  ShardFiller of_reserved(*table, static_cast<uint32_t>(kReservedKey64 % kShardNum));
  EXPECT_EQ(of_reserved.Add(kReservedKey64, value.data(), false).code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace cistern::server
