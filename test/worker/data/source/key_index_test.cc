#include "worker/data/source/key_index.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace cistern::data {
namespace {

TEST(KeyIndex, NumbersKeysInOrderOfFirstUse) {
  KeyIndex index;
  EXPECT_EQ(index.Find(5), KeyIndex::kNone);
  EXPECT_EQ(index.Add(5), 0u);
  EXPECT_EQ(index.Add(0), 1u);
  EXPECT_EQ(index.Add(5), 0u);
  EXPECT_EQ(index.Add(~Key{0}), 2u);
  EXPECT_EQ(index.Find(~Key{0}), 2u);
  EXPECT_EQ(index.Find(6), KeyIndex::kNone);
  EXPECT_EQ(index.keys(), absl::Span<const Key>({5, 0, ~Key{0}}));
}

TEST(KeyIndex, DoesNotMoveExpectedKeys) {
  KeyIndex index;
  index.Expect(3000);
  EXPECT_EQ(index.size(), 0u);
  index.Add(1);
  const Key* const first = index.keys().data();
  for (Key key = 2; key <= 3000; ++key) EXPECT_EQ(index.Add(key), key - 1);
  EXPECT_EQ(index.keys().data(), first);
  for (Key key = 3001; key <= 9000; ++key) EXPECT_EQ(index.Add(key), key - 1);
  EXPECT_EQ(index.Find(3000), 2999u);
}

TEST(KeyIndex, MatchesAMapForSingleAndBulkAdds) {
  std::mt19937_64 random(7);
  std::map<Key, Row> expected;
  KeyIndex one, bulk;
  for (int round = 0; round < 200; ++round) {
    std::vector<Key> keys(random() % 500);
    for (Key& key : keys) key = random() % 20000 * (round % 2 == 0 ? 1 : 0x100000000ull);
    std::vector<Row> rows(keys.size());
    bulk.Add(keys, rows.data());
    for (size_t i = 0; i < keys.size(); ++i) {
      const Row row = expected.try_emplace(keys[i], expected.size()).first->second;
      ASSERT_EQ(one.Add(keys[i]), row);
      ASSERT_EQ(rows[i], row);
    }
  }
  ASSERT_EQ(bulk.size(), expected.size());
  for (const auto& [key, row] : expected) ASSERT_EQ(bulk.Find(key), row);
  std::vector<Key> wanted(3001);
  for (Key& key : wanted) key = random() % 40000;  // half of them are not there
  std::vector<Row> rows(wanted.size()), none(wanted.size());
  bulk.Find(wanted, rows.data());
  KeyIndex().Find(wanted, none.data());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto there = expected.find(wanted[i]);
    ASSERT_EQ(rows[i], there == expected.end() ? KeyIndex::kNone : there->second) << wanted[i];
    ASSERT_EQ(none[i], KeyIndex::kNone);
  }
}

TEST(KeyIndex, TruncateRemovesTheNewestKeysEvenAfterGrowth) {
  std::mt19937_64 random(11);
  KeyIndex index, expected;
  std::vector<Key> first(1000), second(5000);
  for (Key& key : first) key = random() % 3000;
  for (Key& key : second) key = random() % 10000;
  for (Key key : first) {
    index.Add(key);
    expected.Add(key);
  }
  for (Key key : second) index.Add(key);
  index.Truncate(expected.size());
  EXPECT_EQ(index.keys(), expected.keys());
  for (Key key = 0; key < 10000; ++key) ASSERT_EQ(index.Find(key), expected.Find(key)) << key;
  for (Key key : second) ASSERT_EQ(index.Add(key), expected.Add(key));
}

}  // namespace
}  // namespace cistern::data
