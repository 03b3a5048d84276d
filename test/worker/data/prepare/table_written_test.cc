// Tables as people write them: numbers, labels, times and names in forms of their own.
#include <gmock/gmock.h>

#include <cmath>

#include "test/worker/data/prepare/table_plan_fixture.h"

namespace cistern::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class TableWritten : public TablePlanTest {
 protected:
  // A table with one more column, of prices from 0 to 199.99.
  absl::Status MakePrices(const std::function<std::string(size_t, double)>& write) {
    return Make(Rows("click,city,price", 2000, [&](size_t i, int y, std::mt19937& draw) {
      return absl::StrCat(y, ",c", draw() % 9, ",\"", write(i, 0.01 * (draw() % 20000)), "\"");
    }));
  }
};

TEST_F(TableWritten, NumbersAreNumbersInAnyForm) {
  const auto fixed = [](double x, char point) {
    const int cents = static_cast<int>(std::lround(100 * x));
    return absl::StrCat(cents / 100, std::string(1, point), cents % 100 / 10, cents % 10);
  };
  const std::function<std::string(size_t, double)> forms[] = {
      [&](size_t, double x) { return fixed(x, ','); },
      [&](size_t, double x) { return "$" + fixed(x, '.'); },
      [&](size_t, double x) { return fixed(x, ',') + " \xe2\x82\xac"; },
      [&](size_t, double x) { return fixed(x, '.') + "%"; },
      [&](size_t i, double x) { return i % 10 == 0 ? "-" : fixed(x, '.'); },
      [&](size_t i, double x) { return i % 7 == 0 ? "Varies with device" : fixed(x, '.'); },
      [&](size_t i, double x) { return i % 9 == 0 ? "#DIV/0!" : fixed(x, '.'); }};
  for (const auto& form : forms) {
    ASSERT_TRUE(MakePrices(form).ok());
    EXPECT_EQ(Choice("price").role, ColumnRole::kDense) << form(1, 3.5);
    EXPECT_NEAR(Column("price").mean, 100, 5) << form(1, 3.5);
    EXPECT_EQ(plan_.options.numbers.count("price"), 1u) << form(1, 3.5);
  }
  EXPECT_EQ(Column("price").missing, 223u);
  EXPECT_THAT(Choice("price").note, HasSubstr("'#DIV/0!' counts as missing"));
  // Plain numbers need no form; texts among few numbers, and ids, stay texts.
  ASSERT_TRUE(MakePrices([&](size_t, double x) { return fixed(x, '.'); }).ok());
  EXPECT_TRUE(plan_.options.numbers.empty());
  ASSERT_TRUE(
      MakePrices([&](size_t i, double x) { return i % 2 == 0 ? "none" : fixed(x, '.'); }).ok());
  EXPECT_EQ(Column("price").type, ColumnType::kText);
  ASSERT_TRUE(Make(Rows("click,user_id", 2000, [](size_t, int y, std::mt19937& draw) {
                return absl::StrCat(y, ",$", draw() % 90);
              })).ok());
  EXPECT_EQ(Choice("user_id").role, ColumnRole::kSlot);
}

TEST_F(TableWritten, ASentinelCanBeInMostRows) {
  ASSERT_TRUE(Make(Rows("click,city,pdays", 3000, [](size_t i, int y, std::mt19937& draw) {
                return absl::StrCat(y, ",c", draw() % 9, ",",
                                    i % 20 != 0 ? 999.5 : 0.5 + 0.01 * (draw() % 2000));
              })).ok());
  ASSERT_TRUE(Choice("pdays").bounds.has_value());
  EXPECT_LT(Choice("pdays").bounds->second, 200);
  EXPECT_TRUE(Choice("pdays").tells_missing);
}

TEST_F(TableWritten, MeasuresOfThingsAreNoIds) {
  ASSERT_TRUE(Make(Rows("click,user_age,item_price,item_id,category1", 3000,
                        [](size_t, int y, std::mt19937& draw) {
                          return absl::StrCat(y, ",", 10 + draw() % 70, ",", draw() % 5000 * 7, ",",
                                              draw() % 300 * 7, ",", draw() % 300 * 7);
                        }))
                  .ok());
  EXPECT_EQ(Choice("user_age").role, ColumnRole::kDense);
  EXPECT_EQ(Choice("item_price").role, ColumnRole::kDense);
  EXPECT_EQ(Choice("item_id").role, ColumnRole::kSlot);
  EXPECT_EQ(Choice("category1").role, ColumnRole::kSlot);
  ASSERT_TRUE(
      Make(Rows("click,os_version,temperature", 3000, [](size_t, int y, std::mt19937& draw) {
        return absl::StrCat(y, ",", draw() % 9, ".", draw() % 12, ",", draw() % 9, ".",
                            draw() % 12);
      })).ok());
  EXPECT_EQ(Choice("os_version").role, ColumnRole::kSlot);
  EXPECT_EQ(Choice("temperature").role, ColumnRole::kDense);
}

TEST_F(TableWritten, TheEventIsPositiveThoughItIsTheMoreFrequent) {
  const char* const pairs[][2] = {{"clicked", "not clicked"},
                                  {"click", "no_click"},
                                  {"on", "off"},
                                  {"positive", "negative"},
                                  {"subscribed", "unsubscribed"},
                                  {"click", "impression"},
                                  {"\xe6\x98\xaf", "\xe5\x90\xa6"},
                                  {"oui", "non"},
                                  {"Converted", "Non-Converted"},
                                  {"+", "-"},
                                  {"high", "low"},
                                  {"label_1", "label_0"},
                                  {"100%", "0%"},
                                  {"class 1", "class 0"},
                                  {"1 (click)", "0 (none)"},
                                  {"one", "zero"},
                                  {"Churned", "Stayed"},
                                  {"did click", "did not click"},
                                  {"watched", "skipped"},
                                  {"Klick", "Kein Klick"},
                                  {"fraud", "other"},
                                  {"item", "ignored"},
                                  {"P", "N"},
                                  {"\xf0\x9f\x91\x8d", "\xf0\x9f\x91\x8e"},
                                  {"\xd0\x94\xd0\xb0", "\xd0\x9d\xd0\xb5\xd1\x82"},
                                  {">=30", "<30"},
                                  {"TRUE", "FALSE"}};
  for (const auto& [positive, negative] : pairs) {
    ASSERT_TRUE(Make(absl::StrCat("y,a\n", positive, ",u\n", positive, ",v\n", negative, ",u\n",
                                  positive, ",v\n"))
                    .ok());
    EXPECT_THAT(plan_.options.positive, ElementsAre(positive));
    EXPECT_THAT(plan_.options.negative, ElementsAre(negative));
  }
  // In quotes that were written twice, and as UCI's Adult has it in its second file.
  ASSERT_TRUE(Make("y,a\n\"\"\"1\"\"\",u\n\"\"\"1\"\"\",v\n\"\"\"0\"\"\",u\n").ok());
  EXPECT_THAT(plan_.options.positive, ElementsAre("\"1\""));
  ASSERT_TRUE(Make("y,a\n>50K,u\n<=50K.,v\n<=50K,u\n>50K.,v\n<=50K,v\n").ok());
  EXPECT_THAT(plan_.options.positive, ElementsAre(">50K", ">50K."));
  // Several ways to write the same.
  ASSERT_TRUE(Make("y,a\n1,u\ntrue,v\nNo,u\n0.0,v\nyes,u\n").ok());
  EXPECT_THAT(plan_.options.positive, UnorderedElementsAre("1", "true", "yes"));
}

TEST_F(TableWritten, VectorsOfAnyFormAreANumberForEachPlace) {
  const auto rows = [](const std::string& between, const std::string& begin,
                       const std::string& end) {
    return Rows("click,a,v", 400, [&](size_t i, int y, std::mt19937& draw) {
      return absl::StrCat(y, ",u", draw() % 9, ",\"", begin, i, ".25", between, "-0.", i + 1,
                          between, "1e-", i % 7 + 1, end, "\"");
    });
  };
  const std::string forms[] = {rows(", ", "[", "]"), rows(" ", "", ""), rows("|", "", ""),
                               rows("; ", "(", ")")};
  for (const std::string& text : forms) {
    ASSERT_TRUE(Make(text).ok());
    EXPECT_THAT(profile_.layout.parts, ElementsAre("v.0", "v.1", "v.2")) << text.substr(0, 60);
    EXPECT_EQ(Choice("v").role, ColumnRole::kIgnored);
    EXPECT_THAT(Choice("v").note, HasSubstr("lists, which are read as v.0 to v.2"));
    EXPECT_EQ(Choice("v.0").role, ColumnRole::kDense);
    EXPECT_EQ(Column("v.0").max, 399.25);
    EXPECT_EQ(Column("v.0").missing, 0u);
  }
  TableWishes wishes;
  wishes.dense = {"v"};
  ASSERT_TRUE(Make(forms[0], wishes).ok());
  EXPECT_EQ(Choice("v.2").role, ColumnRole::kDense);
  wishes.dense = {};
  wishes.ignore = {"v"};
  ASSERT_TRUE(Make(forms[0], wishes).ok());
  EXPECT_EQ(Choice("v.2").role, ColumnRole::kIgnored);
}

TEST_F(TableWritten, ListsOfAnyLengthAreTheirMeanAndTheirSize) {
  const auto prices = [](size_t i, int y, std::mt19937& draw) {
    const std::string list = i % 3 == 0   ? ""
                             : i % 3 == 1 ? absl::StrCat(i, ".5")
                                          : absl::StrCat(i, ".5,", i + 2, ".5");
    return absl::StrCat(y, ",u", draw() % 9, ",\"[", list, "]\"");
  };
  ASSERT_TRUE(Make(Rows("click,a,v", 400, prices)).ok());
  EXPECT_THAT(profile_.layout.parts, ElementsAre("v.mean", "v.size"));
  EXPECT_EQ(Column("v.mean").max, 399.5);  // the row 398 has (398.5 + 400.5) / 2
  EXPECT_EQ(Column("v.mean").missing, 134u);
  EXPECT_EQ(Column("v.size").max, 2);
  EXPECT_EQ(Column("v.size").missing, 0u);
  // Places of 0 and 1 count, too; ids do not.
  const auto flags = [](size_t i, int y, std::mt19937& draw) {
    return absl::StrCat(y, ",u", draw() % 9, ",", i % 2, "|", i / 2 % 2, "|1,", i % 7, "|", i % 5);
  };
  ASSERT_TRUE(Make(Rows("click,a,v,ids", 400, flags)).ok());
  EXPECT_THAT(profile_.layout.parts, ElementsAre("v.0", "v.1", "v.2"));
  EXPECT_EQ(Choice("v").role, ColumnRole::kIgnored);
  EXPECT_EQ(Choice("ids").role, ColumnRole::kSlot);
}

TEST_F(TableWritten, AllRowsDecideAboutVectors) {
  const auto rows = [](size_t others) {  // so many lists, the first in row 2,001, are longer
    return Rows("click,a,v", 3000, [&](size_t i, int y, std::mt19937& draw) {
      const std::string more = i >= 2000 && i < 2000 + others ? " 0.75" : "";
      return absl::StrCat(y, ",u", draw() % 9, ",", i, ".25 0.5", more);
    });
  };
  ASSERT_TRUE(Make(rows(100)).ok());
  EXPECT_THAT(profile_.layout.parts, ElementsAre("v.0", "v.1"));
  EXPECT_THAT(
      Choice("v").note,
      HasSubstr("read as v.0 to v.1; 100 rows, the first of them number 2001, with another"));
  ASSERT_TRUE(Make(rows(200)).ok());
  EXPECT_THAT(profile_.layout.parts, ElementsAre("v.mean", "v.size"));
  EXPECT_EQ(Column("v.size").max, 3);
  EXPECT_EQ(Choice("v.mean").role, ColumnRole::kDense);
}

TEST_F(TableWritten, ObjectsInFieldsAreTheirMembers) {
  const std::function<std::string(size_t, size_t)> forms[] = {
      [](size_t d, size_t p) {
        return absl::StrCat("\"{\"\"device\"\": \"\"d", d, "\"\", \"\"p\"\": ", p, ".25}\"");
      },
      [](size_t d, size_t p) {
        return absl::StrCat("\"{'device': 'd", d, "', 'p': ", p, ".25, 'x': None}\"");
      },
      [](size_t d, size_t p) { return absl::StrCat("device=d", d, "&p=", p, ".25"); },
      [](size_t d, size_t p) { return absl::StrCat("device:d", d, ";p:", p, ".25"); }};
  for (const auto& form : forms) {
    ASSERT_TRUE(Make(Rows("click,context", 2000, [&](size_t i, int y, std::mt19937& draw) {
                  return absl::StrCat(y, ",", form(draw() % 7, i));
                })).ok());
    EXPECT_THAT(Choice("context").note,
                HasSubstr("objects, whose members are read as context.device, context.p"))
        << form(1, 2);
    EXPECT_EQ(Choice("context.device").role, ColumnRole::kSlot);
    EXPECT_EQ(Column("context.device").distinct, 7u);
    EXPECT_EQ(Choice("context.p").role, ColumnRole::kDense);
    EXPECT_EQ(Column("context.p").max, 1999.25);
  }
}

TEST_F(TableWritten, ShortenedArraysSayWhatToDo) {
  ASSERT_TRUE(Make(Rows("click,a,v", 200, [](size_t i, int y, std::mt19937& draw) {
                return absl::StrCat(y, ",u", draw() % 9, ",[", i, ".5 1.25 ... 7.5]");
              })).ok());
  EXPECT_EQ(Choice("v").role, ColumnRole::kIgnored);
  EXPECT_THAT(Choice("v").note, HasSubstr("arrays that NumPy has shortened (...): write them"));
}

TEST_F(TableWritten, PaddingIsNoPartOfAValue) {
  ASSERT_TRUE(Make(Rows("click,user", 900, [](size_t i, int y, std::mt19937& draw) {
                return absl::StrCat(y, i % 5 == 0 ? ",  u" : ",u", draw() % 9,
                                    i % 7 == 0 ? " " : "");
              })).ok());
  EXPECT_EQ(Column("user").distinct, 9u);
  EXPECT_TRUE(plan_.options.trim);
}

TEST_F(TableWritten, TimesOfServersAndShortYearsAreTimes) {
  const std::function<std::string(int, int)> forms[] = {
      [](int month, int day) { return absl::StrFormat("24-%02d-%02d 10:15", month, day); },
      [](int month, int day) { return absl::StrFormat("%02d-%02d-24", day, month); },
      [](int month, int day) {
        return absl::StrFormat("ISODate(\"\"2024-%02d-%02dT10:15:00Z\"\")", month, day);
      },
      [](int month, int day) {
        return absl::StrFormat("[%02d/%s/2024:10:15:00 +0000]", day, month == 3 ? "Mar" : "Apr");
      },
      [](int month, int day) {
        return absl::StrFormat("Timestamp('2024-%02d-%02d 10:15:00')", month, day);
      }};
  for (const auto& form : forms) {
    // 20 days from 20 March on, 50 rows each, in the order of the rows.
    ASSERT_TRUE(Make(Rows("click,a,when", 1000, [&](size_t i, int y, std::mt19937& draw) {
                  const int day = 20 + static_cast<int>(i / 50);
                  return absl::StrCat(y, ",u", draw() % 9, ",\"",
                                      form(day > 31 ? 4 : 3, day > 31 ? day - 31 : day), "\"");
                })).ok());
    EXPECT_EQ(Choice("when").role, ColumnRole::kTime) << form(3, 20);
    EXPECT_THAT(Choice("when").note, HasSubstr("the latest rows are held out")) << form(3, 20);
    ASSERT_TRUE(plan_.held_out.time_column.has_value()) << form(3, 20);
    EXPECT_EQ(plan_.held_out.since / 1000000, 20240407);
  }
}

// Days with another text in a few rows would be a slot that every later day is new to.
TEST_F(TableWritten, TimesWithAFewOtherTextsHaveANote) {
  const auto day_or = [](size_t others, const char* other) {
    return Rows("click,a,when", 1000, [=](size_t i, int y, std::mt19937& draw) {
      const std::string day = absl::StrFormat("2024/12/%02d", 1 + i / 50);
      return absl::StrCat(y, ",u", draw() % 9, ",", i % 200 == 7 && i / 200 < others ? other : day);
    });
  };
  ASSERT_TRUE(Make(day_or(1, "1")).ok());
  EXPECT_EQ(Choice("when").role, ColumnRole::kSlot);
  EXPECT_THAT(Choice("when").note,
              HasSubstr("times in all but 1 row, which has '1', so it is text"));
  ASSERT_TRUE(Make(day_or(5, "never")).ok());
  EXPECT_THAT(Choice("when").note, HasSubstr("times in all but 5 rows, of which one has 'never'"));
  ASSERT_TRUE(Make(day_or(1, "")).ok());  // a missing time
  EXPECT_EQ(Choice("when").role, ColumnRole::kTime);
}

TEST_F(TableWritten, ListsInFilesWithoutHeaderLineAreColumns) {
  ASSERT_TRUE(Make(Rows("1,u1,0.5 1.5", 500, [](size_t i, int y, std::mt19937& draw) {
                return absl::StrCat(y, ",u", draw() % 9, ",", i, ".5 1.25");
              })).ok());
  EXPECT_THAT(profile_.layout.columns, ElementsAre("c1", "c2", "c3", "c3.0", "c3.1"));
  EXPECT_THAT(plan_.options.columns, ElementsAre("c1", "c2", "c3"));
  EXPECT_EQ(Choice("c3.0").role, ColumnRole::kDense);
}

TEST_F(TableWritten, LabelsThatCannotBeLearnedSayWhatToDo) {
  const std::string only = Rows(
      "click,a", 40, [](size_t, int y, std::mt19937&) { return absl::StrCat(y ? "1" : "", ",u"); });
  EXPECT_THAT(ErrorOf(only), HasSubstr("a label without a value means that nothing happened, "
                                       "write 0 there"));
  const auto rows = Rows("click,a", 1000, [](size_t, int y, std::mt19937& draw) {
    return absl::StrCat(y, ",u", draw() % 9);
  });
  EXPECT_THAT(ErrorOf(rows + "Total,\n"),
              HasSubstr("has two values, but also 'Total' in 1 row: remove"));
  const std::string answers = Rows("click,a", 600, [](size_t i, int y, std::mt19937&) {
    return absl::StrCat(i % 3 == 0 ? "Unknown" : y ? "yes" : "no", ",u");
  });
  EXPECT_THAT(ErrorOf(answers),
              HasSubstr("has two values, but also 'Unknown' in 200 rows: remove these rows"));
  const std::string times = Rows("click,a", 600, [](size_t i, int y, std::mt19937&) {
    return absl::StrCat(y ? absl::StrFormat("2024-05-31 10:%02d:%02d", i / 60, i % 60) : "", ",u");
  });
  EXPECT_THAT(ErrorOf(times), HasSubstr("write a column of 1 there and 0 in the others"));
  const std::string amounts = Rows(
      "click,a", 200, [](size_t i, int, std::mt19937&) { return absl::StrCat(0.25 * i, ",u"); });
  EXPECT_THAT(ErrorOf(amounts), HasSubstr("has about 200 values, not 2, from 0 to 49.75: say "
                                          "above which number it is positive"));
}

TEST_F(TableWritten, LabelsOfNumbersAreCutAtAThreshold) {
  const std::string ratings = Rows("rating,a", 400, [](size_t i, int y, std::mt19937& draw) {
    return absl::StrCat(0.5 * static_cast<double>(i % 10 + 1), ",u", 2 * (draw() % 9) + y);
  });
  TableWishes wishes;
  wishes.label = "rating";
  wishes.label_threshold = 3.5;
  ASSERT_TRUE(Make(ratings, wishes).ok());
  EXPECT_EQ(plan_.options.label_threshold, 3.5);
  EXPECT_TRUE(plan_.options.positive.empty());
  EXPECT_EQ(plan_.label.note, "above 3.5 is positive");
  EXPECT_DOUBLE_EQ(ShareOfPositives(profile_, plan_.label), 0.3);
  // Of more values than are listed, the share is that of the sampled rows.
  const std::string seconds = Rows("seconds,a", 400, [](size_t i, int, std::mt19937& draw) {
    return absl::StrCat(i, ".5,u", draw() % 9);
  });
  wishes.label = "seconds";
  wishes.label_threshold = 299.5;
  ASSERT_TRUE(Make(seconds, wishes).ok());
  EXPECT_DOUBLE_EQ(ShareOfPositives(profile_, plan_.label), 0.25);
  EXPECT_EQ(RowsOfRarerLabel(profile_, plan_.label), 100u);

  wishes.label_threshold = 399.5;
  EXPECT_THAT(ErrorOf(seconds, wishes), HasSubstr("from 0.5 to 399.5, so no row is above 399.5"));
  wishes.label_threshold = 0;
  EXPECT_THAT(ErrorOf(seconds, wishes), HasSubstr("so every row is above 0"));
  wishes.label_threshold = NAN;
  EXPECT_THAT(ErrorOf(seconds, wishes), HasSubstr("needs a finite number"));
  wishes.label_threshold = 9;
  wishes.positive = {"9.5"};
  EXPECT_THAT(ErrorOf(seconds, wishes), HasSubstr("either cut at a number or has positive texts"));
  wishes = {};
  wishes.label = "a";
  wishes.label_threshold = 1;
  EXPECT_THAT(ErrorOf(seconds, wishes), HasSubstr("holds text, and a threshold is for numbers"));
}

TEST_F(TableWritten, TimesWithoutLeadingZerosAndOfOtherUnits) {
  const std::pair<std::string, std::string> forms[] = {
      {"2024/3/4 9:05", "2024/3/15 21:05"},
      {"2024-3-4", "2024-3-15"},
      {"2024\xe5\xb9\xb4"
       "3\xe6\x9c\x88"
       "4\xe6\x97\xa5",
       "2024\xe5\xb9\xb4"
       "3\xe6\x9c\x88"
       "15\xe6\x97\xa5"},
      {"20240304T100000.250Z", "20240315T090000.000Z"},
      {"1710410400000000000", "1710493200000000000"},
      {"20240304100500", "20240315090500"},
      {"202403041005", "202403150905"},
      {"45355.25", "45366.5"}};
  for (const auto& [early, late] : forms) {
    ASSERT_TRUE(Make(Rows("click,city,event_time", 1000, [&](size_t i, int y, std::mt19937& draw) {
                  return absl::StrCat(y, ",c", draw() % 9, ",", i < 900 ? early : late);
                })).ok());
    EXPECT_EQ(Choice("event_time").role, ColumnRole::kTime) << early;
    EXPECT_EQ(plan_.held_out.time_column, Place("event_time")) << early;
  }
}

TEST_F(TableWritten, TitlesAndSpacesAroundDelimiters) {
  ASSERT_TRUE(Make("click ,a\n1 ,u\n0 ,v\n1 ,u\n").ok());
  EXPECT_THAT(profile_.layout.columns, ElementsAre("click", "a"));
  // In the header alone.
  ASSERT_TRUE(Make("\"click\", \"a\", b\n1,u,3\n0,v,4\n1,u,5\n0,v,6\n").ok());
  EXPECT_THAT(profile_.layout.columns, ElementsAre("click", "a", "b"));
  EXPECT_THAT(ErrorOf("Our export,,\n\nclick,a,b\n1,u,3\n0,v,4\n"),
              HasSubstr("if it is a title, remove the lines above the header (tail -n +2 "));
  ASSERT_TRUE(Make("click\x01"
                   "a\n1\x01u\n0\x01v\n")
                  .ok());
  EXPECT_THAT(profile_.layout.columns, ElementsAre("click", "a"));
}

TEST_F(TableWritten, MillisecondsAreTimesByShortNamesToo) {
  // pandas writes times to JSON as milliseconds, and people call such columns t.
  const auto role = [&](const std::string& name, int64_t first, int64_t step) {
    EXPECT_TRUE(Make(Rows("click,city," + name, 2000, [&](size_t i, int y, std::mt19937& draw) {
                  return absl::StrCat(y, ",c", draw() % 9, ",",
                                      first + static_cast<int64_t>(i) * step);
                })).ok());
    return Choice(name).role;
  };
  EXPECT_EQ(role("t", 1700000000000, 977), ColumnRole::kTime);
  EXPECT_EQ(role("event_ms", 1700000000000, 977), ColumnRole::kTime);
  EXPECT_EQ(role("last_seen", 1700000000, 61), ColumnRole::kTime);
  EXPECT_NE(role("t", 1000, 3), ColumnRole::kTime);  // a temperature, a count
  EXPECT_NE(role("latency_ms", 0, 1), ColumnRole::kTime);
}

}  // namespace
}  // namespace cistern::data
