#include "common/base/json_depth.h"

#include <gtest/gtest.h>

namespace cistern {
namespace {

TEST(JsonDepth, CountsOpenBracketsOutsideOfStrings) {
  EXPECT_EQ(JsonDepth(""), 0u);
  EXPECT_EQ(JsonDepth("7"), 0u);
  EXPECT_EQ(JsonDepth(R"({"a": [1, [2]], "b": {}})"), 3u);
  EXPECT_EQ(JsonDepth(R"(["[[[", "\"[[", "\\", []])"), 2u);
  EXPECT_EQ(JsonDepth("[][][]"), 1u);
  EXPECT_EQ(JsonDepth("]]]}["), 1u);
  EXPECT_EQ(JsonDepth("[\"[[[ without an end"), 1u);
}

}  // namespace
}  // namespace cistern
