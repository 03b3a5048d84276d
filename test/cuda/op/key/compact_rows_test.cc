#include "cuda/op/key/compact_rows.h"

#include <set>

#include "test/cuda/op/scratch_guard.h"

namespace cistern::op {
namespace {

// b: rows per batch. n: number of possible rows.
class CompactRowsTest : public OpTest {};

constexpr uint32_t kSentinel = 0xABCDEF01;

TEST_P(CompactRowsTest, AreReplacedByIndicesOfDistinctRows) {
  std::vector<Row> rows(b());
  // Random rows, including the highest, n - 1.
  for (Row& row : rows) row = static_cast<Row>(n() - 1 - RandomIndex(n()));
  if (!rows.empty()) rows.back() = static_cast<Row>(n() - 1);
  const std::set<Row> expected(rows.begin(), rows.end());
  std::vector<Row> given = rows;
  given.push_back(kSentinel);
  Array<Row> there(given), distinct_rows(b() + 1, kSentinel);
  Array<uint32_t> distinct(1, kSentinel);
  ScratchGuard scratch(CompactRowsScratchBytes(b(), stream()));
  CompactRows(there.data(), b(), distinct_rows.data(), distinct.data(), scratch.data(), stream());
  scratch.ExpectNothingBehind();
  const std::vector<Row> indices = there.Read();
  EXPECT_EQ(indices.back(), kSentinel);
  EXPECT_EQ(distinct_rows.Read().back(), kSentinel);
  ASSERT_EQ(distinct.Read()[0], expected.size());
  std::vector<Row> found = distinct_rows.Read();
  found.resize(expected.size());
  EXPECT_EQ(found, std::vector<Row>(expected.begin(), expected.end()));
  for (size_t k = 0; k < b(); ++k) {
    ASSERT_LT(indices[k], found.size()) << k;
    ASSERT_EQ(found[indices[k]], rows[k]) << k;
  }
}

TEST(CompactRowsOnGpu, RejectCountsThatOverflowAnInt) {
  absl::StatusOr<Stream> stream = Stream::OnGpu(0);
  if (!stream.ok()) GTEST_SKIP() << stream.status();
  CompactRowsScratchBytes(1000, *stream);
  EXPECT_TRUE(stream->status().ok()) << stream->status();
  CompactRowsScratchBytes(size_t{1} << 31, *stream);
  EXPECT_TRUE(absl::IsOutOfRange(stream->status())) << stream->status();
}

std::vector<OpCase> CompactRowsCases() {
  std::vector<OpCase> cases;
  for (const DeviceKind device : TestedDevices()) {
    for (const auto& [b, n] : std::vector<std::array<size_t, 2>>{{0, 1},
                                                                 {1, 1},
                                                                 {1, size_t{1} << 32},
                                                                 {2, 2},
                                                                 {255, 9},
                                                                 {257, size_t{1} << 32},
                                                                 {5000, 1},
                                                                 {20000, 6000},
                                                                 {70000, size_t{1} << 32}}) {
      cases.push_back({device, b, 1, n});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Devices, CompactRowsTest, testing::ValuesIn(CompactRowsCases()),
                         OpCaseName);

}  // namespace
}  // namespace cistern::op
