#include "cuda/op/key/segments.h"

#include <map>

#include "test/cuda/op/scratch_guard.h"

namespace cistern::op {
namespace {

// b: outputs. k: mean number of occurrences per output; each has fewer than 2 k. n: rows.
class SegmentsTest : public OpTest {
 protected:
  void SetUp() override {
    OpTest::SetUp();
    offsets_ = {0};
    for (size_t output = 0; output < b(); ++output) {
      const size_t count = k() == 1 ? 1 : (k() == 0 ? 0 : RandomIndex(2 * k()));
      for (size_t i = 0; i < count; ++i) {
        // With at least as many rows as occurrences: all rows differ, in descending order.
        const size_t at = rows_.size();
        rows_.push_back(static_cast<Row>(n() >= b() * 2 * k() ? n() - 1 - at : RandomIndex(n())));
        expected_[rows_.back()].push_back(static_cast<uint32_t>(output));
      }
      offsets_.push_back(static_cast<uint32_t>(rows_.size()));
    }
  }

  std::vector<uint32_t> offsets_;
  std::vector<Row> rows_;
  std::map<Row, std::vector<uint32_t>> expected_;  // outputs of each row, in order
};

constexpr uint32_t kAfterSegments = 0xABCDEF01;

TEST_P(SegmentsTest, ListTheOutputsOfEachRowInOrder) {
  const size_t count = rows_.size();
  const Array<uint32_t> offsets(offsets_);
  const Array<Row> rows(rows_);
  Array<Row> segment_rows(count + 1, kAfterSegments);
  Array<uint32_t> segment_offsets(count + 2, kAfterSegments),
      segment_outputs(count + 1, kAfterSegments), distinct(1, kAfterSegments);
  ScratchGuard scratch(MakeSegmentsScratchBytes(count, stream()));
  MakeSegments(offsets.data(), rows.data(), b(), count, segment_rows.data(), segment_offsets.data(),
               segment_outputs.data(), distinct.data(), scratch.data(), stream());
  scratch.ExpectNothingBehind();
  ASSERT_EQ(distinct.Read()[0], expected_.size());
  const std::vector<Row> found_rows = segment_rows.Read();
  EXPECT_EQ(found_rows.back(), kAfterSegments);
  EXPECT_EQ(segment_offsets.Read().back(), kAfterSegments);
  EXPECT_EQ(segment_outputs.Read().back(), kAfterSegments);
  EXPECT_EQ(offsets.Read(), offsets_);
  EXPECT_EQ(rows.Read(), rows_);
  std::vector<uint32_t> ends = segment_offsets.Read();
  const std::vector<uint32_t>& all = segment_outputs.Read();
  ASSERT_EQ(ends[0], 0u);
  for (size_t i = 0; const auto& [row, outputs] : expected_) {
    ASSERT_EQ(found_rows[i], row) << "segment " << i;
    ASSERT_EQ(ends[i + 1] - ends[i], outputs.size()) << "segment " << i;
    ASSERT_TRUE(std::equal(outputs.begin(), outputs.end(), all.begin() + ends[i]))
        << "segment " << i;
    ++i;
  }
}

std::vector<OpCase> SegmentsCases() {
  constexpr size_t kRows = size_t{1} << 32;
  std::vector<OpCase> cases;
  for (const DeviceKind device : TestedDevices()) {
    for (const auto& [b, k, n] : std::vector<std::array<size_t, 3>>{{0, 1, 1},
                                                                    {5, 0, 1},
                                                                    {1, 1, 1},
                                                                    {1000, 1, 1},
                                                                    {1000, 1, kRows},
                                                                    {257, 7, 50},
                                                                    {3, 1000, 100},
                                                                    {1000, 40, 300},
                                                                    {100000, 1, 20000}}) {
      cases.push_back({device, b, k, n});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Devices, SegmentsTest, testing::ValuesIn(SegmentsCases()), OpCaseName);

}  // namespace
}  // namespace cistern::op
