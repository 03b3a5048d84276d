#include "cuda/op/key/sort_scores.h"

#include <limits>

#include "test/cuda/op/scratch_guard.h"

namespace cistern::op {
namespace {

class SortScoresTest : public OpTest {};

TEST_P(SortScoresTest, SortsAscendingWithTiesAndExtremes) {
  for (const size_t count : {b() * k() * n(), b() + 1, size_t{1}, size_t{0}}) {
    const Doubles drawn = Random(count, 0, 1);
    std::vector<float> expected(drawn.begin(), drawn.end());
    for (size_t i = 0; i < count; i += 3) expected[i] = expected[i / 2];
    if (count > 9) {
      expected[4] = 0;
      expected[5] = 1;
      expected[9] = std::numeric_limits<float>::denorm_min();
    }
    Floats x(expected);
    std::sort(expected.begin(), expected.end());
    ScratchGuard scratch(SortScoresScratchBytes(count, stream()));
    SortScores(x.data(), count, scratch.data(), stream());
    EXPECT_EQ(x.Read(), expected) << count;
    scratch.ExpectNothingBehind();
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, SortScoresTest, testing::ValuesIn(OpCases()), OpCaseName);

}  // namespace
}  // namespace cistern::op
