#include "server/commit/push_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "common/value/accessor/ctr_accessor.h"
#include "test/server/table/table_specs.h"

namespace cistern::server {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(FiniteScan, FindsTheFirstBadFloatAnywhere) {
  const FiniteScan scan(3u);
  for (size_t rows : {1, 2, 341, 342, 1000}) {
    std::vector<float> cells(rows * 3, std::numeric_limits<float>::max());
    EXPECT_EQ(scan.FirstBad(cells), cells.size());
    for (size_t i = 0; i < cells.size(); i += 7) {
      for (float bad : {kNan, -kNan, kInf, -kInf}) {
        cells[i] = bad;
        cells.back() = kNan;
        EXPECT_EQ(scan.FirstBad(cells), i);
        cells[i] = cells.back() = std::numeric_limits<float>::denorm_min();
      }
    }
  }
  EXPECT_EQ(scan.FirstBad({}), 0u);
}

TEST(FiniteScan, ReadsDoublesAsDoublesAndIgnoresUid) {
  const ValueLayout layout = Table(CtrSpec(8), Map(1, 1))->layout();
  const FiniteScan scan(layout);
  const size_t rows = 200, stride = layout.full_floats(), row = 150;
  std::vector<float> cells(rows * stride, 1.0f);
  float* value = cells.data() + row * stride;
  // Bits that are NaN when read as floats, but valid as doubles or as a uid.
  uint64_t bits = 0x3FF0000000000000ull | 0x7FC00000ull;
  double show;
  std::memcpy(&show, &bits, 8);
  StoreDouble(value + CtrCells::kShow, show);
  StoreDouble(value + CtrCells::kClick, 1e300);  // too large for a float, but finite
  StoreU64(value + SlotIndex(layout) + 1, 0xFFFFFFFFFFFFFFFFull);
  EXPECT_EQ(scan.FirstBad(cells), cells.size());

  StoreDouble(value + CtrCells::kClick, std::nan(""));
  EXPECT_EQ(scan.FirstBad(cells), row * stride + CtrCells::kClick + 1);
  StoreDouble(value + CtrCells::kClick, 1.0);
  StoreDouble(value + CtrCells::kShow, -HUGE_VAL);
  EXPECT_EQ(scan.FirstBad(cells), row * stride + CtrCells::kShow + 1);
  StoreDouble(value + CtrCells::kShow, 1.0);
  for (uint32_t cell :
       {CtrCells::kUnseenDays, CtrCells::kDeltaScore, CtrCells::kEmbedW, CtrCells::kEmbedState,
        SlotIndex(layout), layout.state_index(), layout.weight_index(), layout.full_floats() - 1}) {
    value[cell] = kInf;
    EXPECT_EQ(scan.FirstBad(cells), row * stride + cell);
    value[cell] = 1.0f;
  }
}

TEST(FindDuplicateKey, FindsTheKeyThatOccursTwice) {
  ThreadPool pool(2);
  const ShardMap map = Map(7, 1);
  std::vector<Key> a, b;
  for (Key key = 0; key < 20000; ++key) (key % 2 == 0 ? a : b).push_back(key * key);
  const auto find = [&] {
    const ValueBlock blocks[] = {{a, nullptr, nullptr}, {b, nullptr, nullptr}};
    return FindDuplicateKey(map, 7, blocks, pool);
  };
  EXPECT_EQ(find(), std::nullopt);
  b.push_back(a[1234]);  // in two blocks
  EXPECT_EQ(find(), std::make_optional(a[1234]));
  b.pop_back();
  a.push_back(a[0]);  // in one block
  EXPECT_EQ(find(), std::make_optional(a[0]));
}

TEST(FindDuplicateKey, FindsNoneInEmptyBlocks) {
  ThreadPool pool(1);
  EXPECT_EQ(FindDuplicateKey(Map(3, 1), 3, {}, pool), std::nullopt);
}

TEST(FiniteScan, ReadsBothNumbersOfAPackedCell) {
  v1::TableSpec spec = EmbeddingSpec(3);
  spec.set_row_type(v1::TableSpec::BFLOAT16);
  const ValueLayout layout = ValueLayout::CreateStored(spec).value();
  const FiniteScan scan(layout);
  const size_t rows = 200, stride = layout.full_floats(), row = 150;
  std::vector<float> cells(rows * stride, 0.0f), numbers(layout.unpacked().full_floats(), 3e38f);
  for (size_t r = 0; r < rows; ++r) layout.Pack(numbers.data(), &cells[r * stride]);
  EXPECT_EQ(scan.FirstBad(cells), cells.size());
  for (const float bad : {kNan, kInf, -kInf}) {
    for (size_t i = 0; i < 3; ++i) {
      std::vector<float> wrong = numbers;
      wrong[i] = bad;
      layout.Pack(wrong.data(), &cells[row * stride]);
      EXPECT_EQ(scan.FirstBad(cells), row * stride + i / 2);
    }
  }
}

}  // namespace
}  // namespace cistern::server
