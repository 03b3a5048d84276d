#include "server/checkpoint/sort_by_key.h"

#include <gtest/gtest.h>

#include <random>

namespace cistern::server {
namespace {

struct Row {
  Key key = 0;
  size_t place = 0;
  bool operator==(const Row&) const = default;
};

std::vector<Row> RowsOf(const std::vector<Key>& keys) {
  std::vector<Row> rows;
  for (const Key key : keys) rows.push_back({key, rows.size()});
  return rows;
}

void ExpectStableOrder(const std::vector<Key>& keys) {
  std::vector<Row> sorted = RowsOf(keys), expected = sorted;
  SortByKey(&sorted);
  std::stable_sort(expected.begin(), expected.end(),
                   [](const Row& a, const Row& b) { return a.key < b.key; });
  EXPECT_EQ(sorted, expected);
}

TEST(SortByKey, IsAStableSort) {
  std::mt19937_64 random(7);
  for (const size_t count : {0u, 1u, 2u, 3u, 255u, 256u, 10000u}) {
    for (const Key most : {Key{0}, Key{3}, Key{255}, Key{70000}, ~Key{0}}) {
      std::vector<Key> keys(count);
      for (Key& key : keys) key = most == ~Key{0} ? random() : random() % (most + 1);
      ExpectStableOrder(keys);
      for (Key& key : keys) key <<= 40;  // low bytes that are all equal
      ExpectStableOrder(keys);
      std::sort(keys.begin(), keys.end());
      ExpectStableOrder(keys);
      std::reverse(keys.begin(), keys.end());
      ExpectStableOrder(keys);
    }
  }
}

}  // namespace
}  // namespace cistern::server
