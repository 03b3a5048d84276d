// Mapping of keys to shards and servers: the modulus without a division, and the example of
// spec/003 section 1.6.
#include "common/value/shard_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

namespace cistern {
namespace {

TEST(FastModulus, IsTheRemainderForEveryDivisor) {
  std::mt19937_64 random(3);
  for (uint32_t d = 1; d <= 65536; ++d) {
    const FastModulus modulus(d);
    const uint64_t last = ~0ull - ~0ull % d;  // the largest multiple, or 2^64 - 1 for d = 1
    const uint64_t edges[] = {0,
                              1,
                              d - 1,
                              d,
                              d + 1ull,
                              ~0ull,
                              ~0ull - 1,
                              last,
                              last - 1,
                              last - d,
                              1ull << 63,
                              (1ull << 63) - 1,
                              1ull << 32,
                              (1ull << 32) - 1,
                              random(),
                              random(),
                              random() >> 20,
                              random() % d};
    for (const uint64_t x : edges) {
      ASSERT_EQ(modulus(x), x % d) << x << " % " << d;
    }
  }
}

TEST(FastModulus, IsTheRemainderForManyKeys) {
  std::mt19937_64 random(4);
  for (const uint32_t d : {1u, 2u, 3u, 63u, 64u, 65u, 1000u, 1950u, 65535u, 65536u}) {
    const FastModulus modulus(d);
    for (int i = 0; i < 200000; ++i) {
      const uint64_t x = random();
      ASSERT_EQ(modulus(x), x % d) << x << " % " << d;
    }
  }
}

// spec/003 section 1.6: 1950 shards on 15 servers; server 7 holds 130: 7, 22, 37, 52, 67 ...
TEST(ShardMap, ServerSevenOfFifteenMatchesTheSpec) {
  const ShardMap map = ShardMap::Create(1950, 15).value();
  EXPECT_EQ(map.local_shard_num(7), 130u);
  const ShardIndex expected[] = {7, 22, 37, 52, 67, 82, 97, 112};
  for (uint32_t local = 0; local < 8; ++local) {
    EXPECT_EQ(map.global_shard(7, local), expected[local]);
  }
  EXPECT_EQ(map.shard(1950 * 3 + 22), 22u);
  EXPECT_EQ(map.server(22), 7u);
  EXPECT_EQ(map.local_index(22), 1u);
}

TEST(ShardMap, EveryShardHasOneServerAndOneLocalIndex) {
  for (const uint32_t shard_num : {1u, 2u, 7u, 64u, 100u}) {
    for (uint32_t server_num = 1; server_num <= shard_num; ++server_num) {
      const ShardMap map = ShardMap::Create(shard_num, server_num).value();
      std::set<ShardIndex> seen;
      for (uint32_t rank = 0; rank < server_num; ++rank) {
        for (uint32_t local = 0; local < map.local_shard_num(rank); ++local) {
          const ShardIndex shard = map.global_shard(rank, local);
          EXPECT_LT(shard, shard_num);
          EXPECT_EQ(map.server(shard), rank);
          EXPECT_EQ(map.local_index(shard), local);
          EXPECT_TRUE(seen.insert(shard).second);
        }
      }
      EXPECT_EQ(seen.size(), shard_num);
    }
  }
}

TEST(ShardMap, ShardOfAKeyDoesNotDependOnTheServers) {
  const ShardMap two = ShardMap::Create(64, 2).value(), three = ShardMap::Create(64, 3).value();
  for (Key key : {Key{0}, Key{63}, Key{64}, Key{1} << 60, ~Key{0}}) {
    EXPECT_EQ(two.shard(key), key % 64);
    EXPECT_EQ(three.shard(key), key % 64);
  }
}

TEST(ShardMap, HashDistinguishesMaps) {
  std::set<uint64_t> hashes;
  for (const auto& [shards, servers] :
       {std::pair{64, 1}, {64, 2}, {64, 3}, {128, 2}, {6, 4}, {64, 11}, {641, 1}}) {
    const auto map = ShardMap::Create(shards, servers);
    ASSERT_TRUE(map.ok());
    EXPECT_TRUE(hashes.insert(map->hash()).second) << shards << " " << servers;
  }
  EXPECT_EQ(ShardMap::Create(64, 2)->hash(), ShardMap::Create(64, 2)->hash());
}

TEST(ShardMap, RefusesInvalidNumbers) {
  for (const auto& [shards, servers] : {std::pair{64, 0}, {0, 0}, {0, 1}, {4, 5}, {65537, 1}}) {
    EXPECT_EQ(ShardMap::Create(shards, servers).status().code(), absl::StatusCode::kInvalidArgument)
        << shards << " " << servers;
  }
  EXPECT_TRUE(ShardMap::Create(65536, 65536).ok());
}

}  // namespace
}  // namespace cistern
