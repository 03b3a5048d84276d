#include "app/data/table_options.h"

#include <gtest/gtest.h>

namespace cistern::app {
namespace {

TEST(TableOptions, NameTheFirstThatIsGiven) {
  TableOptions options;
  EXPECT_EQ(GivenOption(options), "");
  options.test = "t.csv";
  EXPECT_EQ(GivenOption(options), "test");
  options.model = "lr";
  EXPECT_EQ(GivenOption(options), "model");
  options.wishes.separator = '|';
  EXPECT_EQ(GivenOption(options), "separator");
  options.wishes.label = "click";
  EXPECT_EQ(GivenOption(options), "label");
}

TEST(TableOptions, TestDataIsForTheEndIfOtherDataChooses) {
  TableOptions options;
  EXPECT_EQ(options.evaluation(), "");
  options.test = "t.csv";
  EXPECT_EQ(options.evaluation(), "t.csv");
  EXPECT_EQ(options.final_test(), "");
  options.valid = "v.csv";
  EXPECT_EQ(options.evaluation(), "v.csv");
  EXPECT_EQ(options.final_test(), "t.csv");
}

TEST(TableOptions, CharactersAreTypedInSeveralWays) {
  EXPECT_EQ(*ParseCharacter(""), '\0');
  EXPECT_EQ(*ParseCharacter(";"), ';');
  EXPECT_EQ(*ParseCharacter("tab"), '\t');
  EXPECT_EQ(*ParseCharacter("\\t"), '\t');
  EXPECT_EQ(*ParseCharacter("space"), ' ');
  EXPECT_EQ(*ParseCharacter("\\x01"), '\x01');
  for (const char* wrong : {"ab", "\\x00", "\\xzz", "tabs"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseCharacter(wrong).status())) << wrong;
  }
}

}  // namespace
}  // namespace cistern::app
