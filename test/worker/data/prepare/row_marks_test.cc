#include "worker/data/prepare/row_marks.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "test/worker/data/prepare/table_plan_fixture.h"

namespace cistern::data {
namespace {

using testing::HasSubstr;
using testing::Not;

using RowMarksTest = TablePlanTest;

TEST_F(RowMarksTest, PartsOfAnExperimentAreNoFeatures) {
  const char* const kParts[] = {"Train", "train", "test", "VAL"};
  ASSERT_TRUE(Make(Rows("click,city,split,fold,is_train,part,cv_folds,set,test", 600,
                        [&](size_t i, int y, std::mt19937& draw) {
                          return absl::StrCat(y, ",c", draw() % 9, ",", i % 3, ",", draw() % 5, ",",
                                              i % 4 == 0 ? "False" : "True", ",", kParts[i % 4],
                                              ",", draw() % 10, ",", draw() % 7, ",", draw() % 2);
                        }))
                  .ok());
  for (const char* const name : {"split", "fold", "is_train", "part", "cv_folds"}) {
    EXPECT_EQ(Choice(name).role, ColumnRole::kIgnored) << name;
    EXPECT_THAT(Choice(name).note, HasSubstr("to which part a row belongs")) << name;
  }
  EXPECT_THAT(Choice("is_train").note, HasSubstr("(False: 150, True: 450)"));
  for (const char* const name : {"city", "set", "test"}) {
    EXPECT_EQ(Choice(name).role, ColumnRole::kSlot) << name;
  }
  TableWishes wishes;
  wishes.sparse = {"split"};
  ASSERT_TRUE(Make(Rows("click,city,split", 600,
                        [](size_t i, int y, std::mt19937& draw) {
                          return absl::StrCat(y, ",c", draw() % 9, ",", i % 3);
                        }),
                   wishes)
                  .ok());
  EXPECT_EQ(Choice("split").role, ColumnRole::kSlot);
}

TEST_F(RowMarksTest, NumbersOfRowsThatBeginAnewAreNoFeatures) {
  ASSERT_TRUE(Make(Rows("Unnamed: 0,click,city,Row Number,index,position", 900,
                        [](size_t i, int y, std::mt19937& draw) {
                          return absl::StrCat(i % 300, ",", y, ",c", draw() % 9, ",", i % 450 + 1,
                                              ",", draw() % 2000, ",", draw() % 60);
                        }))
                  .ok());
  EXPECT_EQ(Choice("Unnamed: 0").note, "numbers the rows, by its name");
  EXPECT_EQ(Choice("Row Number").role, ColumnRole::kIgnored);
  EXPECT_THAT(Choice("index").note, Not(HasSubstr("numbers the rows")));  // with gaps
  EXPECT_NE(Choice("position").role, ColumnRole::kIgnored);
}

}  // namespace
}  // namespace cistern::data
