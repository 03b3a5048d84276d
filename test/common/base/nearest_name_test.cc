#include "common/base/nearest_name.h"

#include <gtest/gtest.h>

namespace cistern {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);  // the textbook pair
  EXPECT_EQ(EditDistance("batchsize", "bacthsize"), 1u);
  EXPECT_EQ(EditDistance("relu", "ReLU"), 0u);
  EXPECT_EQ(EditDistance("flaw", "lawn"), 2u);
}

TEST(NearestName, IsEmptyWhenNothingIsNear) {
  EXPECT_EQ(NearestName("batchsiz", {"display", "batchsize", "batchsize_eval"}), "batchsize");
  EXPECT_EQ(NearestName("zzzzzz", {"display", "batchsize"}), "");
  EXPECT_EQ(NearestName("ab", {"xy"}), "");
}

TEST(Suggest, ListsTheKnownNamesWhenNothingIsNear) {
  EXPECT_EQ(Suggest("leraning_rate", {"learning_rate", "beta1"}),
            "; did you mean 'learning_rate'?");
  EXPECT_EQ(Suggest("qqqqqqq", {"a", "b"}), "; known: a, b");
  EXPECT_EQ(Suggest("x", {}), "");
}

TEST(NearestName, LongWordsAreIgnoredAndLongListsAreCut) {
  EXPECT_EQ(NearestName(std::string(10000, 'a'), {std::string(9999, 'a')}), "");
  const std::string known = Suggest("zzzzzzzz", std::vector<std::string>(1000, "layer"));
  EXPECT_LT(known.size(), 1000u);
  EXPECT_NE(known.find("and 900 more"), std::string::npos);
}

}  // namespace
}  // namespace cistern
