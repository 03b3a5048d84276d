#include "worker/data/recipe/known_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cistern::data {
namespace {

using testing::ElementsAre;

TEST(KnownNames, AreFoundInAnyCase) {
  EXPECT_THAT(KnownNames({"USER", " City ", "brand"}, {"user", "city", "price"}),
              ElementsAre("user", "city", "brand"));
}

TEST(KnownNames, StayWhereTwoColumnsFit) {
  EXPECT_THAT(KnownNames({"City", "CITY"}, {"city"}), ElementsAre("City", "CITY"));
  EXPECT_THAT(KnownNames({"city", "City"}, {"city"}), ElementsAre("city", "City"));
  EXPECT_THAT(KnownNames({"CITY"}, {"city", "City"}), ElementsAre("CITY"));
}

TEST(KnownNames, SeparateListsAsTheirColumnDoes) {
  const ListSeparators separators = {{"tags", ','}, {"Tags", ';'}};
  EXPECT_EQ(SeparatorOf(separators, "Tags"), ';');
  EXPECT_EQ(SeparatorOf({{"tags", ','}}, "TAGS"), ',');
  EXPECT_EQ(SeparatorOf(separators, "other"), kListSeparator);
}

}  // namespace
}  // namespace cistern::data
