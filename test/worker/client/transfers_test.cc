#include "worker/client/transfers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <tuple>

namespace cistern {
namespace {

std::vector<Key> RandomKeys(size_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Key> keys(n);
  for (Key& key : keys) key = random();
  return keys;
}

// The reference order: a stable sort by (server, shard).
std::vector<uint32_t> SortedOrder(uint32_t shard_num, uint32_t server_num,
                                  const std::vector<Key>& keys) {
  std::vector<uint32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const uint64_t x = keys[a] % shard_num, y = keys[b] % shard_num;
    return std::pair(x % server_num, x) < std::pair(y % server_num, y);
  });
  return order;
}

TEST(RouteKeys, SortsByServerThenShardAndKeepsTheOrderWithin) {
  for (uint32_t shard_num : {1u, 3u, 64u, 65536u}) {
    for (uint32_t server_num : {1u, 2u, 3u}) {
      if (server_num > shard_num) continue;
      const ShardMap map = ShardMap::Create(shard_num, server_num).value();
      const std::vector<Key> keys = RandomKeys(5000, shard_num + server_num);
      EXPECT_EQ(RouteKeys(map, keys, 100).order, SortedOrder(shard_num, server_num, keys));
    }
  }
}

TEST(RouteKeys, SortsTheKeysOfAShardIfAsked) {
  const ShardMap map = ShardMap::Create(64, 3).value();
  const std::vector<Key> keys = RandomKeys(5000, 3);
  const KeyRouting plain = RouteKeys(map, keys, 333);
  const KeyRouting sorted = RouteKeys(map, keys, 333, /*ascending=*/true);
  std::vector<uint32_t> expected = plain.order;
  std::sort(expected.begin(), expected.end(), [&](uint32_t a, uint32_t b) {
    const uint64_t x = keys[a] % 64, y = keys[b] % 64;
    return std::tuple(x % 3, x, keys[a]) < std::tuple(y % 3, y, keys[b]);
  });
  EXPECT_EQ(sorted.order, expected);
  EXPECT_EQ(sorted.chunks.size(), plain.chunks.size());
}

TEST(RouteKeys, ChunksCoverEveryKeyOnceAndNameItsServer) {
  const ShardMap map = ShardMap::Create(64, 3).value();
  const std::vector<Key> keys = RandomKeys(1000, 7);
  for (size_t chunk_keys : {size_t{1}, size_t{7}, size_t{333}, size_t{5000}}) {
    const KeyRouting routing = RouteKeys(map, keys, chunk_keys);
    uint32_t next = 0;
    for (const KeyRouting::Chunk& chunk : routing.chunks) {
      EXPECT_EQ(chunk.begin, next);
      EXPECT_GT(chunk.end, chunk.begin);
      EXPECT_LE(chunk.end - chunk.begin, chunk_keys);
      for (uint32_t k = chunk.begin; k < chunk.end; ++k) {
        EXPECT_EQ(keys[routing.order[k]] % 64 % 3, chunk.server);
      }
      next = chunk.end;
    }
    EXPECT_EQ(next, keys.size());
  }
}

TEST(RouteKeys, IsEmptyForNoKeys) {
  const KeyRouting routing = RouteKeys(ShardMap::Create(64, 2).value(), {}, 10);
  EXPECT_TRUE(routing.order.empty());
  EXPECT_TRUE(routing.chunks.empty());
}

}  // namespace
}  // namespace cistern
