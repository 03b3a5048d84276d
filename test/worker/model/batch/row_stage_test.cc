#include "worker/model/batch/row_stage.h"

#include <gtest/gtest.h>

#include <numeric>

#include "test/worker/model/test_device.h"

namespace cistern::model {
namespace {

ValueLayout SmallLayout(v1::TableSpec::Accessor accessor = v1::TableSpec::EMBEDDING) {
  v1::TableSpec spec;
  spec.set_name("t");
  spec.set_dim(3);
  spec.set_accessor(accessor);
  spec.mutable_rule()->set_kind(v1::UpdateRule::SGD);
  return ValueLayout::Create(spec).value();
}

// The contents of row r in generation g.
float Cell(size_t g, size_t r) {
  return static_cast<float>(g * 1000003 + r);
}
uint8_t Full(size_t g, size_t r) {
  return static_cast<uint8_t>((g + r) % 2);
}

RowStage::Fill Give(size_t generation, size_t stride) {
  return [=](size_t first, size_t count, absl::Span<const Row> at, float* values,
             uint8_t* has_embedx) {
    for (size_t i = 0; i < count; ++i) {
      const size_t row = at.empty() ? i : at[i];
      std::fill_n(values + row * stride, stride, Cell(generation, first + i));
      has_embedx[row] = Full(generation, first + i);
    }
    return absl::OkStatus();
  };
}

// Returns (first float, has_embedx) of each row.
std::vector<std::pair<float, uint8_t>> RowsOf(const PassTable& table) {
  std::vector<std::pair<float, uint8_t>> rows;
  const absl::Status read =
      RowStage(TestDevice())
          .Read(table,
                [&](size_t first, size_t count, const float* values, const uint8_t* has_embedx) {
                  EXPECT_EQ(first, rows.size());
                  for (size_t i = 0; i < count; ++i) {
                    rows.emplace_back(values[i * table.stride()], has_embedx[i]);
                    EXPECT_EQ(values[(i + 1) * table.stride() - 1], values[i * table.stride()]);
                  }
                  return absl::OkStatus();
                });
  EXPECT_TRUE(read.ok()) << read;
  return rows;
}

// More rows than fit in a chunk.
constexpr size_t kRows = 3 << 20;

TEST(RowStage, WritesAndReadsEveryRow) {
  PassTable table(SmallLayout(), TestDevice());
  ASSERT_TRUE(table.Resize(kRows).ok());
  RowStage stage(TestDevice());
  const absl::Status written = stage.Write(Give(1, table.stride()), table);
  ASSERT_TRUE(written.ok()) << written;
  const auto rows = RowsOf(table);
  ASSERT_EQ(rows.size(), kRows);
  for (size_t r = 0; r < kRows; ++r) {
    ASSERT_EQ(rows[r], std::make_pair(Cell(1, r), Full(1, r))) << r;
  }
}

TEST(RowStage, WritesToGivenRowsAndCarriesOthersOver) {
  PassTable before(SmallLayout(), TestDevice()), now(SmallLayout(), TestDevice());
  ASSERT_TRUE(before.Resize(kRows).ok());
  ASSERT_TRUE(now.Resize(2 * kRows).ok());
  RowStage stage(TestDevice());
  ASSERT_TRUE(stage.Write(Give(1, before.stride()), before).ok());
  // Odd rows are new; even rows are copied from the previous table, in reverse order.
  std::vector<Row> odd(kRows), even(kRows), from(kRows);
  for (Row i = 0; i < kRows; ++i) {
    odd[i] = 2 * i + 1;
    even[i] = 2 * i;
    from[i] = static_cast<Row>(kRows) - 1 - i;
  }
  ASSERT_TRUE(stage.Write(odd, Give(2, now.stride()), now).ok());
  const absl::Status carried = stage.Carry(before, from, even, now);
  ASSERT_TRUE(carried.ok()) << carried;
  const auto rows = RowsOf(now);
  ASSERT_EQ(rows.size(), 2 * kRows);
  for (size_t r = 0; r < rows.size(); ++r) {
    const size_t i = r / 2, g = r % 2 == 1 ? 2 : 1, of = r % 2 == 1 ? i : kRows - 1 - i;
    ASSERT_EQ(rows[r], std::make_pair(Cell(g, of), Full(g, of))) << r;
  }
}

// Every third row, the last ones first.
TEST(RowStage, ReadsGivenRows) {
  PassTable table(SmallLayout(), TestDevice());
  ASSERT_TRUE(table.Resize(3 * kRows).ok());
  RowStage stage(TestDevice());
  const size_t stride = table.stride();
  ASSERT_TRUE(stage.Write(Give(1, stride), table).ok());
  std::vector<Row> wanted(kRows);
  for (Row i = 0; i < kRows; ++i) wanted[i] = static_cast<Row>(3 * (kRows - i) - 1);
  size_t read = 0;
  const auto take = [&](size_t first, size_t count, absl::Span<const Row> at, const float* values,
                        const uint8_t* has_embedx) -> absl::Status {
    if (first != read || first + count > kRows) return absl::InternalError("other rows");
    for (size_t i = 0; i < count; ++i, ++read) {
      const size_t row = at.empty() ? i : at[i];
      const float expected = Cell(1, wanted[read]);
      if (values[row * stride] != expected || values[(row + 1) * stride - 1] != expected ||
          has_embedx[row] != Full(1, wanted[read])) {
        return absl::InternalError(absl::StrCat("row ", wanted[read]));
      }
    }
    return absl::OkStatus();
  };
  const auto fail = [](auto...) { return absl::AbortedError("lost"); };
  // What was in flight when a caller failed disturbs no later call.
  EXPECT_EQ(stage.Read(table, wanted, fail).message(), "lost");
  const absl::Status status = stage.Read(table, wanted, take);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(read, kRows);
  EXPECT_TRUE(stage.Read(table, {}, fail).ok());
}

TEST(RowStage, ReturnsTheErrorOfTheFillFunction) {
  PassTable table(SmallLayout(), TestDevice());
  ASSERT_TRUE(table.Resize(10).ok());
  RowStage stage(TestDevice());
  const auto fail = [](size_t, size_t, absl::Span<const Row>, float*, uint8_t*) {
    return absl::AbortedError("lost");
  };
  EXPECT_EQ(stage.Write(fail, table).message(), "lost");
  EXPECT_EQ(stage.Write({3, 4}, fail, table).message(), "lost");
  EXPECT_TRUE(stage.Write(Give(1, table.stride()), table).ok());
  EXPECT_EQ(RowsOf(table)[9].first, Cell(1, 9));
}

TEST(RowStage, CopiesTheKeysOfCtrTablesWithTheRows) {
  PassTable table(SmallLayout(v1::TableSpec::CTR), TestDevice());
  ASSERT_TRUE(table.Resize(5).ok());
  const std::vector<Key> keys = {7, 1, 1ull << 60, 3, 9};
  table.set_keys(keys);
  RowStage stage(TestDevice());
  ASSERT_TRUE(stage.Write(Give(1, table.stride()), table).ok());
  std::vector<Key> read(keys.size());
  CopyToHost(table.device_keys(), read.data(), keys.size() * sizeof(Key), TestDevice().stream());
  ASSERT_TRUE(TestDevice().stream().Wait().ok());
  EXPECT_EQ(read, keys);
}

}  // namespace
}  // namespace cistern::model
