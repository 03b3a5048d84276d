#include "server/table/dense_table.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstring>
#include <vector>

namespace cistern::server {
namespace {

v1::DenseTableSpec Spec(uint64_t rows) {
  v1::DenseTableSpec spec;
  spec.set_name("dense");
  spec.set_rows(rows);
  for (const char* column : {"w", "m", "v"}) spec.add_columns(column);
  return spec;
}

// Cell (row, column) = row + column / 4, row-major.
std::vector<float> Cells(uint64_t begin, uint64_t end) {
  std::vector<float> cells;
  for (uint64_t row = begin; row < end; ++row) {
    for (int column = 0; column < 3; ++column) {
      cells.push_back(static_cast<float>(row) + static_cast<float>(column) / 4);
    }
  }
  return cells;
}

TEST(DenseRange, MatchesTheSpecification) {
  // shared/spec/003 section 1.5: 465052 rows on 4 servers are 116264 per server.
  EXPECT_EQ(DenseRangeOf(465052, 2, 4).begin, 232528u);
  EXPECT_EQ(DenseRangeOf(465052, 2, 4).end, 348792u);
  EXPECT_EQ(DenseRangeOf(465052, 3, 4).end, 465052u);
}

TEST(DenseRange, CoversEveryRowOnce) {
  for (uint64_t rows : {0, 1, 2, 3, 4, 7, 100, 101}) {
    for (uint32_t servers : {1, 2, 3, 5, 8}) {
      uint64_t next = 0;
      for (uint32_t rank = 0; rank < servers; ++rank) {
        const DenseRange range = DenseRangeOf(rows, rank, servers);
        EXPECT_EQ(range.begin, next);
        EXPECT_LE(range.begin, range.end);
        next = range.end;
      }
      EXPECT_EQ(next, rows);
    }
  }
}

TEST(DenseTable, ReadsWrittenRows) {
  DenseTable table(Spec(100), 1, 3);  // rows 34 to 67
  const std::vector<float> all = Cells(34, 68);
  ASSERT_TRUE(table.Write(34, 34, all.data()).ok());
  std::vector<float> out(3 * 5);
  ASSERT_TRUE(table.Read(40, 5, out.data()).ok());
  EXPECT_EQ(out, Cells(40, 45));
  const std::vector<float> part(6, -1.0f);
  ASSERT_TRUE(table.Write(41, 2, part.data()).ok());
  ASSERT_TRUE(table.Read(40, 5, out.data()).ok());
  EXPECT_EQ(out[2], 40.5f);
  EXPECT_EQ(out[3], -1.0f);
  EXPECT_EQ(out[8], -1.0f);
  EXPECT_EQ(out[9], 43.0f);
}

TEST(DenseTable, RefusesRowsOfOtherServers) {
  DenseTable table(Spec(100), 1, 3);
  std::vector<float> cells(3 * 100);
  EXPECT_EQ(table.Write(33, 2, cells.data()).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(table.Write(67, 2, cells.data()).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(table.Write(68, ~uint64_t{0}, cells.data()).code(), absl::StatusCode::kOutOfRange);
  EXPECT_FALSE(table.written());
  ASSERT_TRUE(table.Write(34, 34, cells.data()).ok());
  EXPECT_EQ(table.Read(0, 1, cells.data()).code(), absl::StatusCode::kOutOfRange);
}

TEST(DenseTable, IsNotFoundBeforeTheFirstWrite) {
  DenseTable table(Spec(10), 0, 1);
  std::vector<float> cells = Cells(0, 10);
  EXPECT_EQ(table.Read(0, 10, cells.data()).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(table.Digest(), 0u);
  ASSERT_TRUE(table.Write(0, 10, cells.data()).ok());
  EXPECT_TRUE(table.written());
  table.Clear();
  EXPECT_FALSE(table.written());
  EXPECT_EQ(table.Read(0, 10, cells.data()).code(), absl::StatusCode::kNotFound);
}

TEST(DenseTable, DigestsOfServersAddUp) {
  const auto digest = [](uint32_t servers) {
    uint64_t sum = 0;
    for (uint32_t rank = 0; rank < servers; ++rank) {
      DenseTable table(Spec(50), rank, servers);
      const DenseRange range = table.range();
      const std::vector<float> cells = Cells(range.begin, range.end);
      EXPECT_TRUE(table.Write(range.begin, range.end - range.begin, cells.data()).ok());
      sum += table.Digest();
    }
    return sum;
  };
  uint64_t expected = 0;
  const std::vector<float> cells = Cells(0, 50);
  for (uint64_t i = 0; i < cells.size(); ++i) {
    const uint64_t row = i / 3;
    const uint32_t column = static_cast<uint32_t>(i % 3);
    char bytes[16];
    std::memcpy(bytes, &row, 8);
    std::memcpy(bytes + 8, &column, 4);
    std::memcpy(bytes + 12, &cells[i], 4);
    expected += XXH3_64bits(bytes, 16);
  }
  EXPECT_EQ(digest(1), expected);
  EXPECT_EQ(digest(3), expected);
  EXPECT_EQ(digest(60), expected);  // some own nothing
}

}  // namespace
}  // namespace cistern::server
