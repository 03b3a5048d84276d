#include "worker/data/prepare/leak_check.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "test/worker/data/prepare/table_plan_fixture.h"

namespace cistern::data {
namespace {

using testing::HasSubstr;
using testing::Not;

using LeakCheckTest = TablePlanTest;

// One row in twenty has the other label.
int Noisy(int y, std::mt19937& draw) {
  return draw() % 20 == 0 ? 1 - y : y;
}

TEST_F(LeakCheckTest, NotesCopiesOfTheLabelWithNoise) {
  ASSERT_TRUE(
      Make(Rows("click,city,copy,text,score,grade", 3000, [](size_t, int y, std::mt19937& draw) {
        const double noise = static_cast<double>(draw() % 1000) / 2000;
        return absl::StrCat(
            y, ",c", draw() % 9, ",", Noisy(y, draw), ",", Noisy(y, draw) ? "bought" : "left", ",",
            0.8 * Noisy(y, draw) + noise, ",",
            Noisy(y, draw) ? "AB"[draw() % 2] - 'A' + 7 : static_cast<int>(draw() % 3));
      })).ok());
  for (const char* const name : {"copy", "text", "score", "grade"}) {
    EXPECT_NE(Choice(name).role, ColumnRole::kIgnored) << name;
    EXPECT_THAT(Choice(name).note, HasSubstr("LEAK? its AUC alone is 0.9")) << name;
    EXPECT_THAT(Choice(name).note, HasSubstr("known only after the label")) << name;
  }
  EXPECT_THAT(Choice("city").note, Not(HasSubstr("LEAK?")));
}

TEST_F(LeakCheckTest, WhatAUserNamesHasNoNote) {
  TableWishes wishes;
  wishes.sparse = {"copy"};
  ASSERT_TRUE(Make(Rows("click,city,copy", 1000,
                        [](size_t, int y, std::mt19937& draw) {
                          return absl::StrCat(y, ",c", draw() % 9, ",", Noisy(y, draw));
                        }),
                   wishes)
                  .ok());
  EXPECT_EQ(Choice("copy").note, "");
}

// A third of the clicks, and one in a hundred of the others.
TEST_F(LeakCheckTest, NotesWhatIsMostlyThereForPositiveRows) {
  ASSERT_TRUE(
      Make(Rows("click,city,source,watch_time", 4000, [](size_t, int y, std::mt19937& draw) {
        const bool there = draw() % 300 < (y ? 100 : 3);
        return absl::StrCat(y, ",c", draw() % 9, ",", there ? "card" : "", ",",
                            there ? absl::StrCat(draw() % 50) : "");
      })).ok());
  EXPECT_EQ(Choice("source").role, ColumnRole::kSlot);
  EXPECT_THAT(Choice("source").note, HasSubstr("of the rows with another value than '' are "
                                               "positive"));
  EXPECT_EQ(Choice("watch_time").role, ColumnRole::kIgnored);
  EXPECT_THAT(Choice("watch_time").note, HasSubstr("by its name it is known only after"));
}

// Values of few rows each, of which few are positive, tell nothing of other rows.
TEST_F(LeakCheckTest, ManyValuesAreNoLeak) {
  std::mt19937 draw(3);
  std::string text = "click,user,price\n";
  for (int i = 0; i < 6000; ++i) {
    absl::StrAppend(&text, draw() % 60 == 0, ",u", draw() % 550, ",", draw() % 5000, ".5\n");
  }
  ASSERT_TRUE(Make(text).ok());
  EXPECT_EQ(Choice("user").note, "");
  EXPECT_THAT(Choice("price").note, Not(HasSubstr("LEAK?")));
}

}  // namespace
}  // namespace cistern::data
