#include "worker/data/prepare/plain_time.h"

#include <gtest/gtest.h>

namespace cistern::data {
namespace {

TEST(PlainTime, RemovesWhatStandsAroundATime) {
  EXPECT_EQ(PlainTime("[24/Mar/2024:10:15:00 +0000]"), "24/Mar/2024:10:15:00 +0000");
  EXPECT_EQ(PlainTime("ISODate(\"2024-05-31T10:15:00Z\")"), "2024-05-31T10:15:00Z");
  EXPECT_EQ(PlainTime("pd.Timestamp('2024-05-31 10:15:00', tz='UTC')"), "2024-05-31 10:15:00");
  EXPECT_EQ(PlainTime("2024-05-31T10:15:00+02:00[Europe/Rome]"), "2024-05-31T10:15:00+02:00");
  EXPECT_EQ(PlainTime("31/05/2024 10:15 CEST"), "31/05/2024 10:15");
  EXPECT_EQ(PlainTime("'2024-05-31'"), "2024-05-31");
}

TEST(PlainTime, WordsOfOtherLanguagesBecomeEnglish) {
  // Names of months as CLDR writes them in dates.
  EXPECT_EQ(PlainTime("1 \xd0\xbc\xd0\xb0\xd1\x80\xd1\x82\xd0\xb0 2024 \xd0\xb3."), "1 Mar 2024");
  EXPECT_EQ(PlainTime("1 \xd0\xbc\xd0\xb0\xd1\x8f 2024"), "1 May 2024");
  EXPECT_EQ(PlainTime("3 pa\xc5\xba"
                      "dziernika 2024 r."),
            "3 Oct 2024");
  EXPECT_EQ(PlainTime("5 \xc5\x9eubat 2024"), "5 Feb 2024");
  EXPECT_EQ(PlainTime("7 maart 2024"), "7 Mar 2024");
  EXPECT_EQ(PlainTime("7 mei 2024"), "7 May 2024");
  EXPECT_EQ(PlainTime("2024\xeb\x85\x84 3\xec\x9b\x94 7\xec\x9d\xbc"), "2024-3-7");
  EXPECT_EQ(PlainTime("2nd of June 2024"), "2 Jun 2024");
}

// The dates are those of Python's date.fromisocalendar, and of its format %j.
TEST(PlainTime, WeeksAndDaysOfTheYearAreDates) {
  EXPECT_EQ(PlainTime("2024-W12"), "2024-03-18");
  EXPECT_EQ(PlainTime("2024W127"), "2024-03-24");
  EXPECT_EQ(PlainTime("2020-W53-5"), "2021-01-01");
  EXPECT_EQ(PlainTime("2024-061"), "2024-03-01");
  EXPECT_EQ(PlainTime("2023-366"), "2024-01-01");
}

TEST(PlainTime, OtherTextsStay) {
  for (const char* const text : {"", "u17", "Rome (Italy)", "2024-W54", "2024-000", "2024Q1",
                                 "IBM PC", "item: 5 USD", "datetime.date(2024)", "/Date(soon)/"}) {
    EXPECT_EQ(PlainTime(text), text);
  }
}

}  // namespace
}  // namespace cistern::data
