#include "cli/terminal/aligned_text.h"

#include <gtest/gtest.h>

namespace cistern::cli {
namespace {

TEST(AlignedText, AlignsWordsLeftAndNumbersRight) {
  EXPECT_EQ(
      AlignedText({{"NAME", "ROWS", "STATE"}, {"a", "1200", "ready"}, {"longer", "7", "down"}}),
      "NAME    ROWS  STATE\n"
      "a       1200  ready\n"
      "longer     7  down\n");
}

TEST(AlignedText, KeepsAColumnWithAWordLeft) {
  EXPECT_EQ(AlignedText({{"A", "B"}, {"12", "x"}, {"none", "y"}}),
            "A     B\n"
            "12    x\n"
            "none  y\n");
}

}  // namespace
}  // namespace cistern::cli
