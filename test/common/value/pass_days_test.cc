// The days of passes: which rows are how old, against a list of the day of every pass.
#include "common/value/pass_days.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace cistern {
namespace {

using ::testing::HasSubstr;

v1::Schema SchemaOf(const std::vector<uint32_t>& expire_days) {
  v1::Schema schema;
  for (const uint32_t days : expire_days) {
    v1::TableSpec& table = *schema.add_tables();
    if (days > 0) table.mutable_bounds()->set_expire_days(days);
  }
  return schema;
}

v1::PassDays Days(const std::vector<std::pair<PassId, uint32_t>>& entries) {
  v1::PassDays days;
  for (const auto& [pass, day] : entries) {
    v1::PassDays::Day& entry = *days.add_days();
    entry.set_first_pass(pass);
    entry.set_day(day);
  }
  return days;
}

TEST(PassDays, TheLongestOfAllTablesCounts) {
  EXPECT_EQ(LongestExpireDays(SchemaOf({})), 0u);
  EXPECT_EQ(LongestExpireDays(SchemaOf({0, 0})), 0u);
  EXPECT_EQ(LongestExpireDays(SchemaOf({0, 7, 3})), 7u);
}

TEST(PassDays, RowsBeforeTheFirstPassCountAsSeenThen) {
  v1::PassDays days;
  EXPECT_EQ(FirstPassWithin(days, 1), 0u);
  AddPassDay(41, 100, 3, &days);
  EXPECT_EQ(FirstPassWithin(days, 1), 0u);
  AddPassDay(42, 101, 3, &days);
  EXPECT_EQ(FirstPassWithin(days, 1), 42u);
  EXPECT_EQ(FirstPassWithin(days, 2), 0u);
}

// Random clocks, which also stand still and jump in both directions.
TEST(PassDays, AgreeWithTheDayOfEveryPass) {
  uint32_t expired = 0;
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 draw(seed);
    const uint32_t longest = 1 + draw() % 9;
    const v1::Schema schema = SchemaOf({longest});
    v1::PassDays days;
    std::vector<uint32_t> day_of = {1000};  // by pass; that of pass 0 is the first's
    uint32_t clock = 1000;
    for (PassId pass = 1; pass <= 60; ++pass) {
      const uint32_t move = draw() % 10;
      if (move < 3) clock += 1 + draw() % 3;
      if (move == 3) clock -= draw() % 20;
      day_of.push_back(std::max(pass == 1 ? 0 : day_of.back(), clock));
      if (pass == 1) day_of[0] = clock;
      AddPassDay(pass, clock, longest, &days);
      ASSERT_EQ(CheckPassDays(days, pass, schema), absl::OkStatus());
      for (uint32_t expire = 1; expire <= longest; ++expire) {
        const PassId first = FirstPassWithin(days, expire);
        for (PassId row = 0; row <= pass; ++row) {
          ASSERT_EQ(row < first, day_of[row] + expire <= day_of[pass]) << pass << " " << row;
          expired += row < first ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(expired, 10000u);
}

TEST(PassDays, TheLargestNumbersDoNotOverflow) {
  v1::PassDays days;
  AddPassDay(1, 0, UINT32_MAX, &days);
  AddPassDay(2, UINT32_MAX, UINT32_MAX, &days);
  EXPECT_EQ(FirstPassWithin(days, UINT32_MAX), 2u);
  EXPECT_EQ(FirstPassWithin(days, UINT32_MAX - 1), 2u);
  days = Days({{0, UINT32_MAX}});
  EXPECT_EQ(FirstPassWithin(days, UINT32_MAX), 0u);
}

TEST(PassDays, ImpossibleDaysAreRefused) {
  const v1::Schema schema = SchemaOf({2});
  EXPECT_EQ(CheckPassDays(Days({{0, 5}, {3, 6}, {4, 9}}), 4, schema), absl::OkStatus());
  EXPECT_EQ(CheckPassDays({}, 4, SchemaOf({0})), absl::OkStatus());
  for (const auto& [days, limits, why] :
       std::vector<std::tuple<v1::PassDays, v1::Schema, std::string>>{
           {Days({{0, 5}}), SchemaOf({0}), "no table expires"},
           {Days({{0, 5}, {3, 6}, {5, 9}}), schema, "name pass 5"},
           {Days({{0, 5}, {3, 5}}), schema, "does not follow"},
           {Days({{3, 5}, {3, 6}}), schema, "does not follow"},
           {Days({{0, 1}, {1, 2}, {2, 3}, {3, 4}}), schema, "4 days of passes"}}) {
    const absl::Status status = CheckPassDays(days, 4, limits);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << why;
    EXPECT_THAT(status.message(), HasSubstr(why));
  }
}

}  // namespace
}  // namespace cistern
