#include "cli/terminal/text_table.h"

#include <gtest/gtest.h>

namespace cistern {
namespace {

TEST(TextTable, AlignsWordsLeftAndNumbersRight) {
  EXPECT_EQ(TextTable({{"NAME", "ROWS", "STATE"}, {"a", "1200", "ready"}, {"longer", "7", "down"}}),
            "NAME    ROWS  STATE\n"
            "a       1200  ready\n"
            "longer     7  down\n");
}

TEST(TextTable, KeepsAColumnWithAWordLeft) {
  EXPECT_EQ(TextTable({{"A", "B"}, {"12", "x"}, {"none", "y"}}),
            "A     B\n"
            "12    x\n"
            "none  y\n");
}

}  // namespace
}  // namespace cistern
