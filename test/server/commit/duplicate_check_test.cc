#include "server/commit/duplicate_check.h"

#include <gtest/gtest.h>

#include "test/server/table/table_specs.h"

namespace cistern {
namespace {

TEST(FindDuplicateKey, FindsTheKeyThatOccursTwice) {
  ThreadPool pool(2);
  const ShardMap map = Map(7, 1);
  std::vector<Key> a, b;
  for (Key key = 0; key < 20000; ++key) (key % 2 == 0 ? a : b).push_back(key * key);
  const auto find = [&] {
    const ValueBlock blocks[] = {{a, nullptr, nullptr}, {b, nullptr, nullptr}};
    return FindDuplicateKey(map, 7, blocks, pool);
  };
  EXPECT_EQ(find(), absl::nullopt);
  b.push_back(a[1234]);  // in two blocks
  EXPECT_EQ(find(), absl::make_optional(a[1234]));
  b.pop_back();
  a.push_back(a[0]);  // in one block
  EXPECT_EQ(find(), absl::make_optional(a[0]));
}

TEST(FindDuplicateKey, FindsNoneInEmptyBlocks) {
  ThreadPool pool(1);
  EXPECT_EQ(FindDuplicateKey(Map(3, 1), 3, {}, pool), absl::nullopt);
}

}  // namespace
}  // namespace cistern
