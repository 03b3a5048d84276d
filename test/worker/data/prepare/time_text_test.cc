#include "worker/data/prepare/time_text.h"

#include <gtest/gtest.h>

#include <string>

namespace cistern::data {
namespace {

// The order of a text in the form that it has; 0: it has none.
int64_t OrderInItsForm(absl::string_view text) {
  TimeForms forms;
  forms.Add(text);
  return forms.any() ? TimeOrder(text, forms.form()).value_or(0) : 0;
}

TEST(TimeOrder, ReadsMonthsOfOtherLanguages) {
  for (const char* const text :
       {"1er janvier 2024", "1 janv. 2024", "1. Januar 2024", "01-Jan-2024", "1 de enero de 2024",
        "1 gennaio 2024", "1 J\xc3\xa4n 2024", "January 1, 2024"}) {
    EXPECT_EQ(OrderInItsForm(text), 20240101000000) << text;
  }
  EXPECT_EQ(OrderInItsForm("15 ao\xc3\xbbt 2024 10:15"), 20240815101500);
  EXPECT_EQ(OrderInItsForm("3. M\xc3\xa4rz 2024"), 20240303000000);
  EXPECT_EQ(OrderInItsForm("31-Okt-2024"), 20241031000000);
  EXPECT_EQ(OrderInItsForm("7 d\xc3\xa9"
                           "cembre 2024"),
            20241207000000);
  EXPECT_EQ(OrderInItsForm("30 juin 2024"), 20240630000000);
  EXPECT_EQ(OrderInItsForm("30 juillet 2024"), 20240730000000);
  for (const char* const text : {"3 de 2024", "1 janitor 20245", "room 1 Jan"}) {
    EXPECT_EQ(OrderInItsForm(text), 0) << text;
  }
}

// The dates are those of Python's date.fromisocalendar.
TEST(TimeOrder, ReadsDaysOfWeeksAndNetDates) {
  EXPECT_EQ(OrderInItsForm("2024-W12-7"), 20240324000000);
  EXPECT_EQ(OrderInItsForm("2021-W01-1"), 20210104000000);
  EXPECT_EQ(OrderInItsForm("2020-W53-5"), 20210101000000);
  EXPECT_EQ(OrderInItsForm("/Date(1711274400000)/"), 20240324100000);
  EXPECT_EQ(OrderInItsForm("/Date(1711274400000+0100)/"), 20240324100000);
  EXPECT_EQ(OrderInItsForm("/Date(soon)/"), 0);
}

// Expected: Python's datetime.strptime of the same texts.
TEST(TimeOrder, ReadsWhatDatabasesAndStatisticsProgramsWrite) {
  for (const char* const text :
       {"31MAY2024:13:15:00", "31May24:13:15:00", "31-MAY-24 01.15.00.000000 PM",
        "2024-05-31T13:15:00+00:00[Etc/UTC]", "May 31, 2024 01:15:00 PM GMT+1", "20240531_131500",
        "datetime.datetime(2024, 5, 31, 13, 15)", "np.datetime64('2024-05-31T13:15:00')",
        "2024. 5. 31. 13:15",
        "2024\xe5\xb9\xb4"
        "5\xe6\x9c\x88"
        "31\xe6\x97\xa5 13\xe6\x99\x82"
        "15\xe5\x88\x86"}) {
    EXPECT_EQ(OrderInItsForm(text), 20240531131500) << text;
  }
  EXPECT_EQ(OrderInItsForm("20141021 13"), 20141021130000);
  for (const char* const text : {"21OCT14", "21OCT2014", "21Okt14", "October 21st, 2014",
                                 "21st of October 2014", "2014-294", "2014-W43-2"}) {
    EXPECT_EQ(OrderInItsForm(text), 20141021000000) << text;
  }
  for (const char* const text : {"21A14", "u17", "20241341 13", "21OCT", "2024-367", "A21OCT14"}) {
    EXPECT_EQ(OrderInItsForm(text), 0) << text;
  }
}

TEST(TimeOrder, OrdersDatesAndNumbers) {
  EXPECT_EQ(TimeOrder("2024-05-31"), 20240531000000);
  EXPECT_EQ(TimeOrder("2024-05-31T12:30:00.5Z"), 20240531123000);
  EXPECT_EQ(TimeOrder("1700000000"), 1700000000);
  EXPECT_FALSE(TimeOrder("soon").has_value());
}

}  // namespace
}  // namespace cistern::data
