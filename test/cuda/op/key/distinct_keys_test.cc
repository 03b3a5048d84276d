#include "cuda/op/key/distinct_keys.h"

#include <set>

#include "common/base/hash.h"
#include "test/cuda/op/scratch_guard.h"

namespace cistern::op {
namespace {

// b: keys per batch. k: held keys. n: number of possible keys.
class DistinctKeysTest : public OpTest {
 protected:
  std::vector<Key> RandomKeys(size_t count) {
    std::vector<Key> keys(count);
    for (Key& key : keys) key = RandomIndex(n()) * 0x100000001 + 7;
    return keys;
  }

  // Runs the op on the test's device and checks that it writes nothing past its outputs.
  std::vector<uint64_t> Add(const std::vector<Key>& keys, const std::vector<uint64_t>& held,
                            bool names_added = true) {
    Array<Key> there(keys);
    Array<uint64_t> held_there(held), merged(keys.size() + held.size() + 1, kSentinel),
        merged_count(1, kSentinel), added(keys.size() + 1, kSentinel);
    ScratchGuard scratch(AddDistinctKeysScratchBytes(keys.size(), held.size(), stream()));
    AddDistinctKeys(there.data(), keys.size(), held_there.data(), held.size(), merged.data(),
                    merged_count.data(), names_added ? added.data() : nullptr, scratch.data(),
                    stream());
    scratch.ExpectNothingBehind();
    std::vector<uint64_t> result = merged.Read();
    EXPECT_EQ(result.back(), kSentinel);
    EXPECT_LE(merged_count.Read()[0], keys.size() + held.size());
    result.resize(std::min<size_t>(merged_count.Read()[0], result.size()));
    EXPECT_EQ(added.Read().back(), kSentinel);
    if (names_added) ExpectAdded(added.Read(), held, result);
    return result;
  }

  static void ExpectAdded(const std::vector<uint64_t>& added, const std::vector<uint64_t>& held,
                          const std::vector<uint64_t>& all) {
    std::vector<uint64_t> expected;
    std::set_difference(all.begin(), all.end(), held.begin(), held.end(),
                        std::back_inserter(expected));
    ASSERT_LT(expected.size(), added.size());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), added.begin()));
  }

  static constexpr uint64_t kSentinel = 0xABCDEF0123456789;
};

std::vector<uint64_t> Ordered(const std::set<uint64_t>& mixed) {
  return {mixed.begin(), mixed.end()};
}

TEST_P(DistinctKeysTest, AreTheUnionOfHeldKeysAndTheBatch) {
  std::set<uint64_t> held;
  for (const Key key : RandomKeys(k())) held.insert(MixKey(key));
  const std::vector<Key> keys = RandomKeys(b());
  std::set<uint64_t> all = held;
  for (const Key key : keys) all.insert(MixKey(key));
  EXPECT_EQ(Add(keys, Ordered(held)), Ordered(all));
  EXPECT_EQ(Add(keys, Ordered(held), /*names_added=*/false), Ordered(all));
}

TEST_P(DistinctKeysTest, GrowWithEveryBatch) {
  std::set<uint64_t> expected;
  std::vector<uint64_t> held;
  for (int batch = 0; batch < 3; ++batch) {
    const std::vector<Key> keys = RandomKeys(b());
    for (const Key key : keys) expected.insert(MixKey(key));
    held = Add(keys, held);
    ASSERT_EQ(held, Ordered(expected)) << "after batch " << batch;
  }
}

TEST_P(DistinctKeysTest, IncludeExtremeMixedValues) {
  const uint64_t edges[] = {~uint64_t{0}, 0, uint64_t{1} << 63, ~uint64_t{0} - 1, 1};
  std::vector<Key> keys = {0, 1, ~Key{0}, kReservedKey32, kReservedKey64};
  for (const uint64_t mixed : edges) keys.push_back(UnmixKey(mixed));
  std::set<uint64_t> expected = {~uint64_t{0} - 2, 2};
  const std::vector<uint64_t> held = Ordered(expected);
  for (const Key key : keys) expected.insert(MixKey(key));
  EXPECT_EQ(Add(keys, held), Ordered(expected));
}

TEST(DistinctKeysOnGpu, RejectCountsThatOverflowAnInt) {
  absl::StatusOr<Stream> stream = Stream::OnGpu(0);
  if (!stream.ok()) GTEST_SKIP() << stream.status();
  AddDistinctKeysScratchBytes(1000, 1000, *stream);
  EXPECT_TRUE(stream->status().ok()) << stream->status();
  AddDistinctKeysScratchBytes(size_t{1} << 30, size_t{1} << 30, *stream);
  EXPECT_TRUE(absl::IsOutOfRange(stream->status())) << stream->status();
}

std::vector<OpCase> DistinctKeysCases() {
  std::vector<OpCase> cases;
  for (const DeviceKind device : TestedDevices()) {
    for (const auto& [b, k, n] : std::vector<std::array<size_t, 3>>{{0, 0, 1},
                                                                    {0, 9, 100},
                                                                    {1, 0, 1},
                                                                    {1, 1, 1},
                                                                    {1000, 0, 1},
                                                                    {255, 1, size_t{1} << 40},
                                                                    {257, 5000, 3000},
                                                                    {5000, 257, 3000},
                                                                    {100000, 0, size_t{1} << 40},
                                                                    {100000, 100000, 50000}}) {
      cases.push_back({device, b, k, n});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Devices, DistinctKeysTest, testing::ValuesIn(DistinctKeysCases()),
                         OpCaseName);

}  // namespace
}  // namespace cistern::op
