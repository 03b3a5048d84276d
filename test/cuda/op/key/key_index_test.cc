#include "cuda/op/key/key_index.h"

#include <bit>

#include "common/base/hash.h"
#include "test/cuda/op/op_test.h"

namespace cistern::op {
namespace {

// b: keys in the index. k: how many of them share one prefix, the one with all bits set.
// n: keys to look up.
class KeyIndexTest : public OpTest {
 protected:
  // b() mixed keys, including the lowest and the highest possible one.
  std::vector<uint64_t> MixedKeys() {
    std::vector<uint64_t> mixed;
    for (size_t i = 0; i < b(); ++i) {
      if (i < k()) {
        mixed.push_back(~uint64_t{0} - i * i);
      } else if (i == k()) {
        mixed.push_back(0);
      } else {
        mixed.push_back(MixKey(RandomIndex(size_t{1} << 40)));
      }
    }
    std::sort(mixed.begin(), mixed.end());
    mixed.erase(std::unique(mixed.begin(), mixed.end()), mixed.end());
    return mixed;
  }
  Array<uint32_t> Build(const Array<uint64_t>& mixed) {
    Array<uint32_t> index(KeyIndexEntries(mixed.size()), kSentinel);
    BuildKeyIndex(mixed.data(), mixed.size(), index.data(), stream());
    return index;
  }
  std::vector<Row> Find(const std::vector<Key>& keys, const Array<uint64_t>& mixed) {
    const Array<uint32_t> index = Build(mixed);
    const Array<Key> wanted(keys);
    Array<Row> rows(keys.size() + 1, kSentinel);
    FindKeys(wanted.data(), keys.size(), mixed.data(), mixed.size(), index.data(), rows.data(),
             stream());
    std::vector<Row> result = rows.Read();
    EXPECT_EQ(result.back(), kSentinel);
    result.pop_back();
    return result;
  }

  static constexpr uint32_t kSentinel = 0xABCDEF01;
};

TEST_P(KeyIndexTest, HoldsTheFirstIndexOfEachPrefix) {
  const std::vector<uint64_t> mixed = MixedKeys();
  const std::vector<uint32_t> index = Build(Array<uint64_t>(mixed)).Read();
  const size_t prefixes = index.size() - 1;
  ASSERT_TRUE(std::has_single_bit(prefixes));
  ASSERT_GE(prefixes, mixed.size());
  ASSERT_LE(prefixes, 2 * mixed.size() + 2);
  const int shift = 64 - std::countr_zero(prefixes);
  for (size_t p = 0; p < prefixes; ++p) {
    const auto first = std::lower_bound(mixed.begin(), mixed.end(), uint64_t{p} << shift);
    ASSERT_EQ(index[p], static_cast<size_t>(first - mixed.begin())) << "prefix " << p;
  }
  EXPECT_EQ(index[prefixes], mixed.size());
}

TEST_P(KeyIndexTest, FindsTheRowOfEveryKey) {
  const std::vector<uint64_t> mixed = MixedKeys();
  std::vector<Key> keys;
  std::vector<Row> expected;
  for (size_t i = 0; i < n() && !mixed.empty(); ++i) {
    // Each key once, then random ones.
    const size_t place = i < mixed.size() ? mixed.size() - 1 - i : RandomIndex(mixed.size());
    keys.push_back(UnmixKey(mixed[place]));
    expected.push_back(static_cast<Row>(place));
  }
  EXPECT_EQ(Find(keys, Array<uint64_t>(mixed)), expected);
}

TEST_P(KeyIndexTest, ReturnsNoRowForAbsentKeys) {
  const std::vector<uint64_t> mixed = MixedKeys();
  std::vector<Key> keys;
  for (size_t i = 0; i < n(); ++i) {
    // Absent keys next to present ones, at both ends, and random ones.
    uint64_t absent = MixKey(~RandomIndex(size_t{1} << 40));
    if (i < mixed.size()) absent = mixed[i] + (i % 2 == 0 ? 1 : ~uint64_t{0});
    if (std::binary_search(mixed.begin(), mixed.end(), absent)) continue;
    keys.push_back(UnmixKey(absent));
  }
  EXPECT_EQ(Find(keys, Array<uint64_t>(mixed)), std::vector<Row>(keys.size(), kNoRow));
}

std::vector<OpCase> KeyIndexCases() {
  std::vector<OpCase> cases;
  for (const DeviceKind device : TestedDevices()) {
    for (const auto& [b, k, n] : std::vector<std::array<size_t, 3>>{{0, 0, 0},
                                                                    {0, 0, 5},
                                                                    {1, 0, 3},
                                                                    {1, 1, 3},
                                                                    {2, 1, 4},
                                                                    {3, 2, 9},
                                                                    {4, 0, 4},
                                                                    {5, 5, 20},
                                                                    {300, 300, 999},
                                                                    {1025, 100, 3000},
                                                                    {100000, 3000, 100000}}) {
      cases.push_back({device, b, k, n});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Devices, KeyIndexTest, testing::ValuesIn(KeyIndexCases()), OpCaseName);

}  // namespace
}  // namespace cistern::op
