#include "worker/model/batch/row_finder.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "common/base/hash.h"
#include "test/worker/model/test_device.h"
#include "worker/model/batch/device_keys.h"

namespace cistern::model {
namespace {

// Uses keys whose mixed keys are odd multiples of 2^53, so that the place of each is known.
class RowFinderTest : public testing::Test {
 protected:
  static constexpr size_t kKeys = 1000;

  void SetUp() override {
    std::vector<uint64_t> mixed;
    for (size_t place = 0; place < kKeys; ++place) mixed.push_back(Mixed(place));
    auto there = TestDevice().pool().Take(MemoryPlace::kDevice, kKeys * sizeof(uint64_t), "test");
    ASSERT_TRUE(there.ok()) << there.status();
    CopyToDevice(mixed.data(), there->data(), there->bytes(), stream());
    auto keys = DeviceKeys::Build(*std::move(there), kKeys, TestDevice(), stream());
    ASSERT_TRUE(keys.ok()) << keys.status();
    keys_ = *std::move(keys);
  }

  static uint64_t Mixed(size_t place) { return (2 * place + 1) << 53; }
  static Stream& stream() { return TestDevice().stream(); }
  // Random places with repetitions, and their keys.
  static std::vector<Row> Places(size_t count) {
    std::mt19937 random(static_cast<uint32_t>(count));
    std::vector<Row> places(count);
    for (Row& place : places) place = static_cast<Row>(random() % kKeys / 3 * 3);
    return places;
  }
  static std::vector<Key> KeysOf(const std::vector<Row>& places) {
    std::vector<Key> keys;
    for (const Row place : places) keys.push_back(UnmixKey(Mixed(place)));
    return keys;
  }

  std::shared_ptr<const DeviceKeys> keys_;
  RowFinder finder_{TestDevice(), stream()};
};

TEST_F(RowFinderTest, FindsMoreKeysThanFitInOnePiece) {
  for (const size_t count : {size_t{0}, size_t{1}, (size_t{1} << 20) + 3, size_t{700}}) {
    const std::vector<Row> places = Places(count);
    const absl::StatusOr<std::vector<Row>> found = finder_.Find(*keys_, KeysOf(places));
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, places) << count;
  }
}

TEST_F(RowFinderTest, RowsOfABatchIndexItsDistinctRows) {
  for (const size_t count : {300, 0, 5000, 1}) {
    const std::vector<Row> places = Places(count);
    const std::set<Row> distinct(places.begin(), places.end());
    data::HostSparseBatch batch;
    batch.keys = KeysOf(places);
    const absl::Status status = finder_.FindRows(*keys_, &batch);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(batch.segment_rows, std::vector<Row>(distinct.begin(), distinct.end()));
    std::vector<Row> found;
    for (const Row row : batch.rows) found.push_back(batch.segment_rows.at(row));
    EXPECT_EQ(found, places);
  }
}

}  // namespace
}  // namespace cistern::model
