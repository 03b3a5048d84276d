#include "worker/data/source/pass_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "common/base/hash.h"

namespace cistern::data {
namespace {

std::vector<Key> RandomKeys(size_t count, Key key_max, uint32_t seed) {
  std::mt19937_64 random(seed);
  std::set<Key> keys;
  while (keys.size() < count) keys.insert(random() % key_max);
  return {keys.begin(), keys.end()};
}

PassKeys Ordered(std::vector<Key> keys) {
  std::sort(keys.begin(), keys.end(), [](Key a, Key b) { return MixKey(a) < MixKey(b); });
  return PassKeys::Ordered(std::move(keys));
}

PassKeys AsTheyCame(const std::vector<Key>& keys) {
  KeyIndex index;
  for (const Key key : keys) index.Add(key);
  return PassKeys(std::move(index));
}

void ExpectFinds(const PassKeys& keys, const std::vector<Key>& wanted) {
  std::vector<Row> rows(wanted.size());
  keys.Find(wanted, rows.data());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto at = std::find(keys.keys().begin(), keys.keys().end(), wanted[i]);
    const bool held = at != keys.keys().end();
    ASSERT_EQ(rows[i], held ? static_cast<Row>(at - keys.keys().begin()) : PassKeys::kNone) << i;
  }
}

TEST(PassKeys, FindsKeysInAnyOrder) {
  const std::vector<Key> held = RandomKeys(300, 1000, 1);
  std::vector<Key> wanted = RandomKeys(500, 1000, 2);
  wanted.push_back(wanted.front());
  wanted.push_back(~Key{0});
  for (const PassKeys& keys : {Ordered(held), AsTheyCame(held)}) {
    EXPECT_EQ(keys.size(), 300u);
    ExpectFinds(keys, wanted);
    const PassKeys walked = Ordered(wanted);
    ExpectFinds(keys, {walked.keys().begin(), walked.keys().end()});
    ExpectFinds(keys, {});
  }
}

TEST(PassKeys, FindsNothingWhenEmpty) {
  ExpectFinds(PassKeys(), {0, 5});
  ExpectFinds(Ordered({}), {0, 5});
}

TEST(PassKeys, SharedRowsAreTheRowsOfKeysInBoth) {
  const std::vector<Key> a = RandomKeys(200, 500, 3), b = RandomKeys(250, 500, 4);
  for (const auto& [keys, others] :
       {std::pair(Ordered(a), Ordered(b)), std::pair(AsTheyCame(a), AsTheyCame(b))}) {
    const SharedRows shared = FindShared(keys, others);
    ASSERT_EQ(shared.here.size(), shared.there.size());
    EXPECT_EQ(shared.here.size() + shared.missing.size(), a.size());
    for (size_t i = 0; i < shared.here.size(); ++i) {
      EXPECT_EQ(keys.keys()[shared.here[i]], others.keys()[shared.there[i]]);
    }
    for (const Row row : shared.missing) {
      EXPECT_FALSE(std::binary_search(b.begin(), b.end(), keys.keys()[row]));
    }
  }
}

}  // namespace
}  // namespace cistern::data
