#include "server/checkpoint/key_filter.h"

#include <gtest/gtest.h>

#include <random>

namespace cistern::server {
namespace {

std::vector<Key> Keys(uint64_t first, size_t count) {
  std::vector<Key> keys;
  for (size_t i = 0; i < count; ++i) keys.push_back((first + i) * 64 + 3);  // of one shard
  return keys;
}

double ShareThatPasses(const KeyFilter& filter, const std::vector<Key>& absent) {
  size_t passed = 0;
  for (const Key key : absent) passed += filter.MayHave(key);
  return static_cast<double>(passed) / static_cast<double>(absent.size());
}

TEST(KeyFilter, HasEveryKeyAndFewOthers) {
  const std::vector<Key> keys = Keys(0, 100000), absent = Keys(100000, 400000);
  // The rates of blocked filters with 512-bit lines and 8 bits a key (Putze et al. 2007, figure 3).
  for (const auto& [bits, most] : {std::pair(12u, .0065), std::pair(16u, .0016)}) {
    const KeyFilter filter(keys, bits);
    EXPECT_EQ(filter.bytes(), KeyFilter::BytesOf(keys.size(), bits));
    EXPECT_LE(filter.bytes(), keys.size() * bits / 8 + 64);
    for (const Key key : keys) ASSERT_TRUE(filter.MayHave(key)) << key;
    EXPECT_LE(ShareThatPasses(filter, absent), most) << bits;
    EXPECT_GT(ShareThatPasses(filter, absent), most / 10) << bits;
  }
}

TEST(KeyFilter, WithoutKeysHasNone) {
  EXPECT_EQ(ShareThatPasses(KeyFilter(), Keys(0, 1000)), 0);
  EXPECT_EQ(KeyFilter().bytes(), 0u);
}

TEST(KeyFilter, IsRestoredFromItsWords) {
  const KeyFilter filter(Keys(0, 1000), 12), restored(filter.words());
  for (const Key key : Keys(0, 5000)) ASSERT_EQ(filter.MayHave(key), restored.MayHave(key));
}

}  // namespace
}  // namespace cistern::server
