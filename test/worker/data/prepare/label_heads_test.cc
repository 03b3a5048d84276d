#include "worker/data/prepare/label_heads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/worker/data/prepare/table_plan_fixture.h"

namespace cistern::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kTwoLabels[] =
    "click,a,buy\n"
    "1,u,1.0\n"
    "0,v,0\n"
    "1,u,\n"
    "1,w,-1\n"
    "0,w,1\n";

class LabelHeads : public TablePlanTest {
 protected:
  TableWishes Labels(const std::string& label) const {
    TableWishes wishes;
    wishes.label = label;
    return wishes;
  }
};

TEST(LabelNames, AreOneColumnOrItsPartsBetweenCommas) {
  EXPECT_THAT(LabelNames({"click", "buy"}, "click,buy"), ElementsAre("click", "buy"));
  EXPECT_THAT(LabelNames({}, "click, buy"), ElementsAre("click", "buy"));
  EXPECT_THAT(LabelNames({"click,buy", "a"}, "click,buy"), ElementsAre("click,buy"));
  EXPECT_THAT(LabelNames({"a"}, ""), ElementsAre());
}

TEST_F(LabelHeads, HaveOneZeroAndRowsThatAreNotKnown) {
  ASSERT_TRUE(Make(kTwoLabels, Labels("buy,click")).ok());
  ASSERT_EQ(plan_.heads.size(), 2u);
  EXPECT_EQ(plan_.heads[0].column, 2u);
  EXPECT_EQ(plan_.label.column, 2u);
  EXPECT_EQ(Choice("click").role, ColumnRole::kLabel);
  EXPECT_EQ(Choice("buy").note, "not known in 2 rows");
  EXPECT_THAT(plan_.options.label, ElementsAre("buy", "click"));
  EXPECT_THAT(plan_.options.positive, ElementsAre());
  const HeadRows rows = RowsOf(profile_, plan_.heads[0]);
  EXPECT_EQ(rows.positive, 2u);
  EXPECT_EQ(rows.known, 3u);
  EXPECT_EQ(rows.rarer(), 1u);
}

TEST_F(LabelHeads, ABrokenOrderIsCounted) {
  ASSERT_TRUE(Make(kTwoLabels, Labels("click,buy")).ok());
  const BrokenOrder order = OrderOf(profile_, plan_.heads[0], plan_.heads[1]);
  EXPECT_EQ(order.of, 2u);
  EXPECT_EQ(order.rows, 1u);
}

TEST_F(LabelHeads, WhatCannotBeOneIsRefused) {
  EXPECT_THAT(ErrorOf(kTwoLabels, Labels("click,a")),
              HasSubstr("the label 'a' holds 'u', but one of several labels is 1 or 0, and -1 or "
                        "empty where it is not known"));
  EXPECT_THAT(ErrorOf(kTwoLabels, Labels("click,click")), HasSubstr("'click' is named twice"));
  EXPECT_THAT(ErrorOf(kTwoLabels, Labels("click,sale")), HasSubstr("there is no column 'sale'"));
  EXPECT_THAT(ErrorOf("a,b,c\n1,1,u\n0,1,v\n", Labels("a,b")),
              HasSubstr("the label 'b' is never 0: there is nothing to learn"));
  EXPECT_THAT(ErrorOf("a,b,c\n1,0,u\n0,2,v\n", Labels("a,b")), HasSubstr("'b' holds '2'"));
  TableWishes wishes = Labels("click,buy");
  wishes.positive = {"1"};
  EXPECT_THAT(ErrorOf(kTwoLabels, wishes), HasSubstr("several labels must each be 1 or 0"));
}

// A column that only the second label decides is no feature.
TEST_F(LabelHeads, ALeakOfAnyLabelIsLeftOut) {
  const std::string text = Rows("click,buy,paid,item", 2000, [](size_t, int y, std::mt19937& draw) {
    const int buy = static_cast<int>(draw() % 2);
    return absl::StrCat(y, ",", buy, ",", buy == 1 ? "yes" : "", ",i", draw() % 9);
  });
  ASSERT_TRUE(Make(text, Labels("click,buy")).ok());
  EXPECT_THAT(Choice("paid").note, HasSubstr("LEAK? of 'buy': decides the label by being missing"));
  EXPECT_EQ(Choice("paid").role, ColumnRole::kIgnored);
  EXPECT_EQ(Choice("item").role, ColumnRole::kSlot);
}

}  // namespace
}  // namespace cistern::data
