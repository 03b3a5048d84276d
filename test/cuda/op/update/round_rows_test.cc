// The rounding of rows to bfloat16, compared with its definition.
#include "cuda/op/update/round_rows.h"

#include "test/cuda/op/op_test.h"

namespace cistern::op {
namespace {

// b: rows. n: rounded cells, after one cell that stays and before another.
class RoundRowsTest : public OpTest {};

TEST_P(RoundRowsTest, RoundsTheCellsOfEveryRow) {
  const size_t stride = n() + 2;
  const CellRounding rounding = {1, static_cast<uint32_t>(1 + n()), 5, 7};
  std::vector<uint64_t> keys;
  for (size_t r = 0; r < b(); ++r) keys.push_back(1000 + 7 * r);
  const Doubles values = Random(b() * stride, -1, 1);
  std::vector<float> expected(values.begin(), values.end());
  for (size_t r = 0; r < b(); ++r) RoundCells(rounding, keys[r], &expected[r * stride]);
  Floats rounded(values);
  RoundRows(rounding, Array<uint64_t>(keys).data(), rounded.data(), stride, b(), stream());
  EXPECT_EQ(rounded.Read(), expected);
}

INSTANTIATE_TEST_SUITE_P(Op, RoundRowsTest, testing::ValuesIn(OpCases()), OpCaseName);

}  // namespace
}  // namespace cistern::op
