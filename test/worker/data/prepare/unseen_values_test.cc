#include "worker/data/prepare/unseen_values.h"

#include <gmock/gmock.h>

#include "worker/data/prepare/row_overlap.h"

namespace cistern::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ConvertSummary Slot(uint64_t values, uint64_t rare) {
  ConvertSummary summary;
  ConvertSummary::Slot& slot = summary.slots.emplace_back();
  slot.column = "user";
  slot.values = values;
  slot.rare = rare;
  return summary;
}

TEST(UnseenValues, NameASlotOfWhichMostValuesAreNotKnown) {
  const ConvertSummary training = Slot(1000, 100);
  EXPECT_THAT(UnseenValues(Slot(200, 190), &training),
              ElementsAre(HasSubstr("slot 'user': 95 % of its values")));
  EXPECT_THAT(UnseenValues(Slot(200, 198), nullptr), ElementsAre(HasSubstr("99 %")));
}

TEST(UnseenValues, AreSilentAboutASlotThatIsAsRareInTraining) {
  const ConvertSummary training = Slot(1000, 700);
  EXPECT_THAT(UnseenValues(Slot(200, 160), &training), IsEmpty());
  EXPECT_THAT(UnseenValues(Slot(200, 180), nullptr), IsEmpty());
  EXPECT_THAT(UnseenValues(Slot(0, 0), nullptr), IsEmpty());
}

TEST(UnseenValues, NameNumbersOfAnotherSize) {
  ConvertSummary summary;
  summary.samples = 1000;
  // Pieces between quantiles are narrow.
  summary.dense = {{.column = "price", .beyond = 660},
                   {.column = "price", .beyond = 900},
                   {.column = "age", .beyond = 150},
                   {.column = "age", .beyond = 880}};
  EXPECT_THAT(UnseenValues(summary, nullptr),
              ElementsAre(HasSubstr("column 'price': 66 % of its numbers are far beyond")));
}

TEST(NewValues, NameASlotOfWhichMostValuesAreNew) {
  const GrownColumn item = {"item", 7, 400, 380, 0.03, ""}, user = {"user", 3, 400, 150, 0.03, ""},
                    session = {"session", 300, 400, 380, 0.9, ""}, few = {"few", 3, 10, 10, 0, ""};
  EXPECT_THAT(
      NewValues({item, user, session, few}),
      ElementsAre(HasSubstr("slot 'item': 95 % of its 400 values are new to the model (3 %")));
}

TEST(NewValues, SayHowTheyAreKnownInsteadIfTheyAre) {
  const GrownColumn item = {"item", 7, 400, 380, 0.03, "but knows 'i17'"};
  EXPECT_THAT(NewValues({item}), ElementsAre("but knows 'i17'"));
  ConvertSummary summary = Slot(200, 190);
  summary.slots[0].spelling = "but knows 'i17'";
  EXPECT_THAT(UnseenValues(summary, nullptr), ElementsAre("but knows 'i17'"));
}

std::string OverlapOf(int training, int evaluation, int distinct) {
  RowOverlap overlap;
  const auto row = [&](int i) { return std::to_string(i % distinct); };
  for (int i = 0; i < training; ++i) overlap.AddTraining({"1", row(i)});
  for (int i = 0; i < evaluation; ++i) overlap.AddEvaluation({"1", row(i)});
  return overlap.Warning();
}

TEST(RowOverlap, NamesRowsThatAreInBoth) {
  EXPECT_THAT(OverlapOf(1000, 500, 100000), HasSubstr("500 of 500 evaluation rows"));
  EXPECT_EQ(OverlapOf(100, 500, 100000), "");  // 100 of 500
}

TEST(RowOverlap, IsSilentAboutRowsThatAreEqualByChance) {
  EXPECT_EQ(OverlapOf(1000, 500, 50), "");
}

}  // namespace
}  // namespace cistern::data
