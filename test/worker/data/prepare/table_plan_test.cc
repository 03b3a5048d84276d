#include "worker/data/prepare/table_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "absl/strings/str_format.h"
#include "test/worker/data/prepare/table_plan_fixture.h"
#include "worker/data/prepare/text_note.h"

namespace cistern::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(TablePlanTest, ProfilesTypesDistinctAndMissingValues) {
  ASSERT_TRUE(Make("click,n,x,city,day\n"
                   "1,3,0.5,Oslo,2024-05-31\n"
                   "0,-1,NA,Rome,2024-06-01\n"
                   "1,3,2.5,,2024-06-02 10:00:00\n")
                  .ok());
  EXPECT_EQ(profile_.rows, 3u);
  EXPECT_EQ(Column("n").type, ColumnType::kInteger);
  EXPECT_EQ(Column("n").distinct, 2u);
  EXPECT_EQ(Column("n").min, -1);
  EXPECT_EQ(Column("x").type, ColumnType::kNumber);
  EXPECT_EQ(Column("x").missing, 1u);
  EXPECT_DOUBLE_EQ(Column("x").mean, 1.5);
  EXPECT_DOUBLE_EQ(Column("x").deviation, 1);
  EXPECT_EQ(Column("city").type, ColumnType::kText);
  EXPECT_EQ(Column("city").missing, 1u);
  EXPECT_EQ(Column("day").type, ColumnType::kTime);
}

TEST_F(TablePlanTest, ComputesSkewness) {
  // Of 0, 0, 0, 4: mean 1, variance 3, third moment 6; 6 / 3^1.5.
  ASSERT_TRUE(Make("y,x\n0,0\n1,0\n0,0\n1,4\n").ok());
  EXPECT_NEAR(Column("x").skewness, 6 / std::pow(3, 1.5), 1e-12);
}

TEST_F(TablePlanTest, FindsDelimiterHeaderAndSpaces) {
  for (const char* delimiter : {",", "\t", ";", "|"}) {
    const std::string d = delimiter;
    ASSERT_TRUE(Make("y" + d + "a\n1" + d + "u\n0" + d + "v\n").ok()) << delimiter;
    EXPECT_EQ(profile_.layout.delimiter, d[0]);
    EXPECT_TRUE(profile_.layout.header);
  }
  ASSERT_TRUE(Make("39, State-gov, 0\n50, Private, 1\n50, Private, 1\n").ok());
  EXPECT_FALSE(profile_.layout.header);
  EXPECT_TRUE(profile_.layout.trim);
  EXPECT_THAT(profile_.layout.columns, ElementsAre("c1", "c2", "c3"));
  EXPECT_EQ(profile_.rows, 3u);
}

TEST_F(TablePlanTest, FindsLinesOfLibsvmAndLibffm) {
  struct Case {
    const char* text;
    TextFormat format;
    bool single_slot;
    FeatureValues values;
    size_t columns;
  };
  const Case cases[] = {
      {"1 3:1 4:1\n0 5:1 6:1\n", TextFormat::kLibsvm, false, FeatureValues::kOnes, 3},
      {"1 3:1 4:1\n0 5:1\n", TextFormat::kLibsvm, true, FeatureValues::kOnes, 2},
      {"-1 3:0.5\n+1 5:1\n", TextFormat::kLibsvm, true, FeatureValues::kWeights, 2},
      {"0\n1 3:2 # a\n", TextFormat::kLibsvm, true, FeatureValues::kWeights, 2},
      {"1 0:3:1 2:4:1\n", TextFormat::kLibffm, false, FeatureValues::kOnes, 3},
      {"1 0:3:1\n0 7:4:-1\n", TextFormat::kLibffm, false, FeatureValues::kWeights, 3},
  };
  for (const Case& one : cases) {
    const auto layout = FindLayout(scratch_.Write("lines", one.text));
    ASSERT_TRUE(layout.ok()) << one.text << layout.status();
    EXPECT_EQ(layout->format, one.format) << one.text;
    EXPECT_EQ(layout->single_slot, one.single_slot) << one.text;
    EXPECT_EQ(layout->values, one.values) << one.text;
    EXPECT_EQ(layout->columns.size(), one.columns) << one.text;
  }
  for (const char* const text : {"a 3:1\n", "1 a:1\n", "1 3:1\n1 0:3:1\n", "1\n0\n"}) {
    EXPECT_FALSE(FindLayout(scratch_.Write("lines", text)).ok()) << text;
  }
  EXPECT_THAT(ErrorOf("1 3:1\n0 4:abc\n"),
              HasSubstr("line 2: feature 0 is '4:abc', not index:value"));
}

TEST_F(TablePlanTest, FindsTheLabel) {
  ASSERT_TRUE(Make("a,flag,Click\n1,0,0\n2,1,1\n").ok());
  EXPECT_EQ(profile_.columns[plan_.label.column].name, "Click");
  ASSERT_TRUE(Make("a,flag\n5,0\n6,1\n").ok());
  EXPECT_EQ(profile_.columns[plan_.label.column].name, "flag");
  ASSERT_TRUE(Make("a,income\nu,<=50K\nv,>50K\nu,<=50K\n", {"income", {}, {}, {}, {}}).ok());
  EXPECT_THAT(plan_.options.positive, ElementsAre(">50K"));
  ASSERT_TRUE(Make("a,y\nu,1\nv,2\n").ok());
  EXPECT_THAT(plan_.options.positive, ElementsAre("2"));
  EXPECT_THAT(plan_.options.negative, ElementsAre("1"));
}

// A class can be that of a seat, and a target that of an advertisement.
TEST_F(TablePlanTest, PrefersALabelThatSaysWhichValueIsPositive) {
  ASSERT_TRUE(Make("class,a,is_purchase\neco,u,0\nfirst,v,1\neco,u,0\n").ok());
  EXPECT_EQ(profile_.columns[plan_.label.column].name, "is_purchase");
  ASSERT_TRUE(Make("label,a,y\nshoes,u,0\nhats,v,1\ncaps,u,0\n").ok());
  EXPECT_EQ(profile_.columns[plan_.label.column].name, "y");
  ASSERT_TRUE(Make("buy,a,class\n0,u,bad\n1,v,good\n0,u,good\n").ok());
  EXPECT_EQ(profile_.columns[plan_.label.column].name, "class");
  ASSERT_TRUE(Make("class,a\ne,u\np,v\ne,u\n").ok());
  EXPECT_THAT(plan_.options.positive, ElementsAre("p"));
  EXPECT_THAT(ErrorOf("class,a,booked\neco,u,0\nfirst,v,1\neco,u,0\n"),
              HasSubstr("'class' has the name of one, but holds two words, and 1 column holds 0 "
                        "and 1 only; columns of two values: class, a, booked"));
}

TEST_F(TablePlanTest, NamesWhatIsNegativeBesidePositiveTexts) {
  TableWishes wishes;
  wishes.positive = {"yes"};
  ASSERT_TRUE(Make("y,a\nyes,u\nno,v\nmaybe,u\nno,v\n", wishes).ok());
  EXPECT_THAT(plan_.label.note, HasSubstr("negative: 'no' in 2 rows, 'maybe' in 1 row"));
  EXPECT_THAT(plan_.options.negative, ElementsAre("no", "maybe"));
  EXPECT_THAT(ErrorOf("y,a\nyes,u\nno,v\nUnknown,u\nno,v\n", wishes),
              HasSubstr("is 'Unknown' in 1 row, which is neither positive nor negative"));
  wishes.positive = {"unknown"};
  EXPECT_TRUE(Make("y,a\nyes,u\nno,v\nunknown,u\nno,v\n", wishes).ok());
}

TEST_F(TablePlanTest, NotesValuesThatDifferInCaseOrSpacesOnly) {
  const auto table = [](const std::string& other, int one_in) {
    return Rows("y,city,age", 2000, [=](size_t i, int y, std::mt19937& draw) {
      const std::string city = "rome" + std::to_string(draw() % 20);
      return absl::StrCat(y, ",", i % one_in == 0 ? other : city, ",", draw() % 90);
    });
  };
  ASSERT_TRUE(Make(table("ROME3", 20)).ok());
  EXPECT_THAT(Choice("city").note,
              HasSubstr("'ROME3' and 'rome3' differ in case, spaces, quotes or zeros only"));
  ASSERT_TRUE(Make(table("rome3\xc2\xa0", 20)).ok());
  EXPECT_THAT(Choice("city").note, HasSubstr("differ in case, spaces, quotes or zeros only"));
  for (const auto& [other, one_in] : {std::pair("Oslo", 20), std::pair("ROME3", 200)}) {
    ASSERT_TRUE(Make(table(other, one_in)).ok());
    EXPECT_EQ(Choice("city").note, "") << other;
  }
}

TEST_F(TablePlanTest, IdsAreIntegersHoweverTheyAreWritten) {
  const auto make = [&](const std::string& odd) {
    return Make(Rows("click,user", 900, [&](size_t i, int y, std::mt19937&) {
      const std::string plain = absl::StrCat(1000 + i % 60);
      const std::string comma = absl::StrCat("\"1,", plain.substr(1), "\"");
      return absl::StrCat(y, ",",
                          i / 60 % 3 > 0   ? plain
                          : odd == "comma" ? comma
                                           : absl::StrCat(odd, plain));
    }));
  };
  ASSERT_EQ(make("comma"), absl::OkStatus());
  EXPECT_THAT(plan_.options.integers, ElementsAre("click", "user"));
  ASSERT_EQ(make("+"), absl::OkStatus());
  EXPECT_THAT(plan_.options.integers, ElementsAre("click", "user"));
  EXPECT_EQ(Choice("user").note, "");
  ASSERT_EQ(make("0000"), absl::OkStatus());
  EXPECT_THAT(Choice("user").note, HasSubstr("differ in case, spaces, quotes or zeros only"));
  ASSERT_EQ(make("#"), absl::OkStatus());
  EXPECT_THAT(Choice("user").note, HasSubstr("differ in case, spaces, quotes or zeros only"));
}

TEST_F(TablePlanTest, RefusesTablesWithoutAUsableLabel) {
  EXPECT_THAT(ErrorOf("a,b,c\nu,0,1\nv,1,0\n"), HasSubstr("2 hold 0 and 1 only; columns of two "
                                                          "values: a, b, c"));
  EXPECT_THAT(ErrorOf("a,b\nu,x\nv,y\nw,z\n"), HasSubstr("the columns are a, b"));
  EXPECT_THAT(ErrorOf("y,a\n1,u\n1,v\n"), HasSubstr("'y' is '1' in every row"));
  EXPECT_THAT(ErrorOf("y,a\n1,u\n0,v\n,v\n"), HasSubstr("no value in 1 of 3 rows"));
  EXPECT_THAT(ErrorOf("y,a\n1,u\n2,v\n3,v\n"), HasSubstr("has 3 values, not 2"));
  EXPECT_THAT(ErrorOf("y,a\n-1,u\n0,v\n1,v\n-1,v\n"),
              HasSubstr("which are '-1' in 2 rows, '0' in 1 row, '1' in 1 row (if 0 means that "
                        "nothing is known, remove these rows)"));
  EXPECT_THAT(ErrorOf("y,a\n1,u\n0,v\n", {"click", {}, {}, {}, {}}),
              HasSubstr("there is no column 'click'; the columns are y, a"));
}

// The least one that leaves at most half of the rows above it; never the largest value.
TEST_F(TablePlanTest, ProposesAThresholdForLabelsOfSeveralNumbers) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"y,a\n1,u\n2,v\n3,w\n4,x\n5,y\n", "3"},
      {"y,a\n-1,u\n0,v\n1,v\n-1,v\n", "-1"},
      {"y,a\n5,u\n5,v\n5,w\n4,x\n1,y\n", "4"},
      {"y,a\n0.25,u\n0.5,v\n0.75,w\n0.5,x\n0.5,y\n", "0.5"}};
  for (const auto& [table, threshold] : cases) {
    EXPECT_THAT(OptionsOf(Make(table)),
                ElementsAre(absl::StrCat("label_threshold=", threshold), "positive"))
        << table;
  }
}

TEST_F(TablePlanTest, RefusesBadFiles) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("empty"));
  EXPECT_THAT(ErrorOf("label\n1\n0\n"), HasSubstr("one field only"));
  const std::string commas = scratch_.Write("commas.csv", "y,a\n1,u\n0,v\n");
  LayoutWishes semicolons;
  semicolons.delimiter = ';';
  EXPECT_THAT(FindLayout(commas, semicolons).status().message(),
              HasSubstr("the semicolon, the delimiter on request, is in none of its first lines; "
                        "the comma makes 2 fields of a line: leave the delimiter out"));
  EXPECT_THAT(ErrorOf("y,a,a\n1,2,3\n"), HasSubstr("'a'"));
  EXPECT_THAT(ErrorOf("y,a\n"), HasSubstr("no row follows"));
  EXPECT_THAT(ErrorOf("y,a\n1,2\n1\n"), HasSubstr("line 3"));
  EXPECT_THAT(ErrorOf("y," + std::string(size_t{17} << 20, 'x')), HasSubstr("longer than 16 MiB"));
}

TEST_F(TablePlanTest, ChoosesRolesByTypeAndCardinality) {
  ASSERT_TRUE(Make(Rows("click,row_id,city,few,user_id,money,score,constant", 2000,
                        [](size_t i, int y, std::mt19937& draw) {
                          std::lognormal_distribution<double> skewed(8, 2);
                          std::normal_distribution<double> normal(3, 1);
                          return absl::StrCat(y, ",", 100000 + i, ",c", draw() % 9, ",", draw() % 9,
                                              ",", draw() % 400, ",",
                                              static_cast<int64_t>(skewed(draw)), ",", normal(draw),
                                              ",7");
                        }))
                  .ok());
  EXPECT_EQ(Choice("click").role, ColumnRole::kLabel);
  EXPECT_EQ(Choice("row_id").role, ColumnRole::kIgnored);
  EXPECT_THAT(Choice("row_id").note, HasSubstr("a new value in 100%"));
  EXPECT_EQ(Choice("city").role, ColumnRole::kSlot);
  EXPECT_EQ(Choice("few").role, ColumnRole::kSlot);
  EXPECT_EQ(Choice("user_id").role, ColumnRole::kSlot);
  EXPECT_EQ(Choice("score").role, ColumnRole::kDense);
  EXPECT_FALSE(Choice("score").log1p);
  EXPECT_EQ(Choice("constant").role, ColumnRole::kIgnored);
  EXPECT_EQ(plan_.options.dense_transform, DenseTransform::kStandardize);
}

TEST_F(TablePlanTest, SkewedCountsAreDenseInLogarithmsAndBuckets) {
  ASSERT_TRUE(Make(Rows("click,city,money", 8000, [](size_t i, int y, std::mt19937& draw) {
                std::lognormal_distribution<double> skewed(5, 2);
                const auto money = static_cast<int64_t>(skewed(draw));
                return absl::StrCat(y, ",c", draw() % 9, ",", i % 10 == 0 ? -1 : money);
              })).ok());
  EXPECT_EQ(Choice("money").role, ColumnRole::kDense);
  EXPECT_TRUE(Choice("money").log1p);
  EXPECT_THAT(plan_.options.log1p, ElementsAre("money"));
  EXPECT_THAT(plan_.options.bucket, ElementsAre("money"));
  EXPECT_EQ(plan_.slots, 2u);
}

// Of x, numbers from 0 to 1 alike often, the ends are near i / 8.
TEST_F(TablePlanTest, NumbersAreCutIntoPiecesThatHoldAsManyRowsEach) {
  ASSERT_TRUE(Make(Rows("click,city,x", 4000, [](size_t, int y, std::mt19937& draw) {
                return absl::StrCat(y, ",c", draw() % 9, ",", draw() % 100000 * 1e-5);
              })).ok());
  ASSERT_EQ(Choice("x").pieces.size(), 9u);
  for (size_t i = 0; i < 9; ++i) EXPECT_NEAR(Choice("x").pieces[i], i / 8.0, 0.03);
  EXPECT_EQ(plan_.dense, 9u);
  EXPECT_EQ(plan_.options.pieces.count("x"), 1u);
}

TEST_F(TablePlanTest, AFewRowsOfTheRarerLabelGetNeitherPiecesNorBuckets) {
  const auto rows = [](size_t i, int, std::mt19937& draw) {
    return absl::StrCat(i % 20 == 0 ? 1 : 0, ",c", draw() % 9, ",", draw() % 60 * (draw() % 60),
                        ",", draw() % 1000 * 0.5);
  };
  ASSERT_TRUE(Make(Rows("click,city,n,x", 5000, rows)).ok());  // 250
  EXPECT_EQ(plan_.slots, 1u);
  EXPECT_EQ(plan_.dense, 2u);
  ASSERT_TRUE(Make(Rows("click,city,n,x", 20000, rows)).ok());  // 1000: 5 pieces of each
  EXPECT_EQ(plan_.slots, 1u);
  EXPECT_EQ(plan_.dense, 12u);
  ASSERT_TRUE(Make(Rows("click,city,n,x", 80000, rows)).ok());  // 4000: buckets, 8 pieces of x
  EXPECT_EQ(plan_.slots, 2u);
  EXPECT_EQ(plan_.dense, 10u);
  TableWishes wishes;
  wishes.ignore = {"city"};
  ASSERT_TRUE(Make(Rows("click,city,n,x", 5000, rows), wishes).ok());
  EXPECT_EQ(plan_.slots, 1u);  // a model has at least one
}

TEST_F(TablePlanTest, IgnoresColumnsThatDecideTheLabel) {
  ASSERT_TRUE(
      Make(Rows("click,city,paid,sold_at,score", 2000, [](size_t, int y, std::mt19937& draw) {
        const double score = y + static_cast<double>(draw() % 1000) / 1001;
        return absl::StrCat(y, ",c", draw() % 9, ",", y ? "yes" : "no", ",",
                            y ? absl::StrCat("t", draw() % 999) : "", ",", score);
      })).ok());
  EXPECT_THAT(Choice("paid").note, HasSubstr("LEAK? its values decide the label"));
  EXPECT_THAT(Choice("sold_at").note, HasSubstr("by being missing"));
  EXPECT_THAT(Choice("score").note, HasSubstr("its AUC alone is 1.0000"));
  EXPECT_EQ(Choice("city").role, ColumnRole::kSlot);
  EXPECT_THAT(plan_.options.ignore, ElementsAre("paid", "sold_at", "score"));
}

TEST_F(TablePlanTest, HoldsOutTheLatestRowsIfThereAreTimes) {
  ASSERT_TRUE(Make(Rows("click,city,timestamp", 1000, [](size_t i, int y, std::mt19937& draw) {
                return absl::StrCat(y, ",c", draw() % 9, ",", 1700000000 + i);
              })).ok());
  EXPECT_EQ(Choice("timestamp").role, ColumnRole::kTime);
  ASSERT_EQ(plan_.held_out.time_column, Place("timestamp"));
  EXPECT_EQ(plan_.held_out.since, 1700000900);
  EXPECT_FALSE(plan_.held_out.Contains(5, {"1", "c", "1700000899"}));
  EXPECT_TRUE(plan_.held_out.Contains(5, {"1", "c", "1700000900"}));
}

TEST_F(TablePlanTest, HoldsOutTheLatestRowsWhateverProgramsWroteTheirTimes) {
  // The days of 2024 (date -u -d 2024-01-01 +%s is 1704067200), one after the other.
  const auto held_out = [&](const std::function<std::string(int)>& day) {
    EXPECT_TRUE(Make(Rows("click,city,ts", 2000, [&](size_t i, int y, std::mt19937& draw) {
                  return absl::StrCat(y, ",c", draw() % 9, ",", day(static_cast<int>(i) / 100));
                })).ok());
    EXPECT_EQ(Choice("ts").role, ColumnRole::kTime);
    std::vector<int> days;
    for (int i = 0; plan_.held_out.time_column && i < 20; ++i) {
      const std::string time = day(i);
      if (plan_.held_out.Contains(0, {"1", "c", time})) days.push_back(i);
    }
    return days;
  };
  const auto unix = [](int i, int64_t unit) {
    return absl::StrCat((1704067200 + 86400 * i) * unit);
  };
  EXPECT_THAT(held_out([&](int i) { return unix(i, i % 2 == 0 ? 1 : 1000); }), ElementsAre(18, 19));
  EXPECT_THAT(held_out([&](int i) { return unix(i, i % 3 == 0 ? 1000000 : 1); }),
              ElementsAre(18, 19));
  EXPECT_THAT(held_out([](int i) {
                return i % 2 == 0 ? absl::StrFormat("2024-01-%02d", i + 1)
                                  : absl::StrFormat("%02d.01.2024 10:00", i + 1);
              }),
              ElementsAre(18, 19));
  // The day or the month may be first.
  EXPECT_THAT(held_out([](int i) {
                return absl::StrFormat(i % 2 == 0 ? "%1$02d/%2$02d/2024" : "%2$02d/%1$02d/2024",
                                       i + 1, 1);
              }),
              ElementsAre());
}

TEST_F(TablePlanTest, HoldsOutNoRowsByTimesOfAPersonOrAThing) {
  for (const char* const name : {"date_of_birth", "signup_date", "release_date"}) {
    ASSERT_TRUE(
        Make(Rows(absl::StrCat("click,city,", name), 1000, [](size_t i, int y, std::mt19937& draw) {
          return absl::StrCat(y, ",c", draw() % 9, ",20", 10 + i / 50, "-03-01");
        })).ok());
    EXPECT_EQ(Choice(name).role, ColumnRole::kTime) << name;
    EXPECT_FALSE(plan_.held_out.time_column.has_value()) << name;
  }
}

TEST_F(TablePlanTest, HoldsOutAPartOfADayThatIsLarge) {
  ASSERT_TRUE(Make(Rows("click,city,day", 1000, [](size_t i, int y, std::mt19937& draw) {
                return absl::StrCat(y, ",c", draw() % 9, ",2024-05-0", 1 + i / 200);
              })).ok());
  ASSERT_EQ(plan_.held_out.time_column, Place("day"));
  size_t held_out = 0;
  for (uint64_t row = 0; row < 10000; ++row) {
    EXPECT_FALSE(plan_.held_out.Contains(row, {"1", "c", "2024-05-04"}));
    held_out += plan_.held_out.Contains(row, {"1", "c", "2024-05-05"});
  }
  EXPECT_NEAR(static_cast<double>(held_out), 5000, 200);  // of a fifth of the rows: a tenth of all
}

TEST_F(TablePlanTest, HoldsOutCopiesOfARowTogether) {
  const auto rows = [](uint64_t copies) {
    return Rows("click,city,n", 6000, [copies](size_t i, int, std::mt19937&) {
      return absl::StrCat(i / copies % 2, ",c", i / copies % 7, ",", i / copies);
    });
  };
  ASSERT_TRUE(Make(rows(3)).ok());
  EXPECT_EQ(profile_.distinct_rows, 2000u);
  ASSERT_TRUE(plan_.held_out.by_content);
  size_t held_out = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string number = absl::StrCat(i);
    const bool one = plan_.held_out.Contains(1, {"1", "c", number});
    EXPECT_EQ(plan_.held_out.Contains(2, {"1", "c", number}), one);
    held_out += one;
  }
  EXPECT_NEAR(static_cast<double>(held_out), 2000, 170);  // four deviations
  ASSERT_TRUE(Make(rows(1)).ok());
  EXPECT_FALSE(plan_.held_out.by_content);
  ASSERT_TRUE(Make(rows(60)).ok());  // 100 rows that come back
  EXPECT_FALSE(plan_.held_out.by_content);
}

TEST_F(TablePlanTest, HoldsOutATenthOfTheRowsOtherwise) {
  size_t held_out = 0;
  for (uint64_t row = 0; row < 100000; ++row) held_out += HeldOutRows().Contains(row, {});
  EXPECT_NEAR(static_cast<double>(held_out), 10000, 400);
}

TEST_F(TablePlanTest, FindsColumnsOfSeveralValues) {
  ASSERT_TRUE(Make(Rows("click,city,genres", 400, [](size_t, int y, std::mt19937& draw) {
                return absl::StrCat(y, ",c", draw() % 9, ",g", draw() % 5, "|g", draw() % 5, "|g",
                                    draw() % 5);
              })).ok());
  ASSERT_TRUE(Choice("genres").list.has_value());
  EXPECT_EQ(Choice("genres").list->separator, '|');
  EXPECT_TRUE(plan_.several_values);
  EXPECT_THAT(plan_.options.multi, ElementsAre("genres"));
}

TEST_F(TablePlanTest, WishesComeFirst) {
  const std::string text = "y,a,b,c\n1,3,u,7\n0,4,v,8\n1,5,v,9\n";
  ASSERT_TRUE(Make(text, {"y", {}, {"a"}, {"c"}, {"b"}}).ok());
  EXPECT_EQ(Choice("a").role, ColumnRole::kDense);
  EXPECT_EQ(Choice("b").role, ColumnRole::kIgnored);
  EXPECT_EQ(Choice("c").role, ColumnRole::kSlot);
  EXPECT_THAT(ErrorOf(text, {"y", {}, {"b"}, {}, {}}), HasSubstr("'b' holds text, not numbers"));
  EXPECT_THAT(ErrorOf(text, {"y", {}, {"a"}, {"a"}, {}}), HasSubstr("another role already"));
  EXPECT_THAT(ErrorOf(text, {"y", {}, {}, {}, {"a", "b", "c"}}),
              HasSubstr("no column is left as a feature"));
}

TEST_F(TablePlanTest, AnObjectIsIgnoredWithItsMembers) {
  const std::string text = "y,user.id,user.os,username,b\n1,3,u,7,x\n0,4,v,8,y\n1,5,v,9,x\n";
  ASSERT_TRUE(Make(text, {"y", {}, {}, {}, {"user"}}).ok());
  EXPECT_EQ(Choice("user.id").role, ColumnRole::kIgnored);
  EXPECT_EQ(Choice("user.os").role, ColumnRole::kIgnored);
  EXPECT_NE(Choice("username").role, ColumnRole::kIgnored);
  EXPECT_THAT(ErrorOf(text, {"y", {}, {}, {}, {"use"}}), HasSubstr("'use'"));
}

TEST_F(TablePlanTest, NotesTextThatIsTakenForNumbersOrDates) {
  const char* const values[][2] = {{"51,23", "decimal comma"},     {"$51.23", "a unit"},
                                   {"1,051.23", "thousands"},      {"5%", "a unit"},
                                   {"31/05/2024", "text: dates?"}, {"EUR", ""}};
  for (const auto& [value, note] : values) {
    ASSERT_TRUE(Make(Rows("click,city,x", 40, [&](size_t, int y, std::mt19937& draw) {
                  return absl::StrCat(y, ",c", draw() % 9, ",\"", value, "\"\n", y, ",c1,\"", value,
                                      "\"\n1,c2,");
                })).ok());
    EXPECT_THAT(TextNote(profile_, Place("x")), HasSubstr(note)) << value;
    EXPECT_EQ(TextNote(profile_, Place("x")).empty(), *note == '\0') << value;
  }
  ASSERT_TRUE(Make(Rows("click,age", 40, [](size_t i, int y, std::mt19937&) {
                return absl::StrCat(y, ",", i == 7 ? "18-25" : "30");
              })).ok());
  EXPECT_THAT(Choice("age").note, HasSubstr("correct the others, such as '18-25'"));
}

TEST_F(TablePlanTest, NamesMayHoldLineEnds) {
  ASSERT_TRUE(Make("\"cli\nck\",a\n1,2\n0,3\n", {"cli\nck", {}, {}, {}, {}}).ok());
  EXPECT_THAT(profile_.layout.columns, ElementsAre("cli\nck", "a"));
  EXPECT_EQ(profile_.rows, 2u);
}

TEST_F(TablePlanTest, RefusesLinesAboveTheHeader) {
  EXPECT_THAT(ErrorOf("Report 2024\nclick,a\n1,2\n0,3\n"),
              HasSubstr("line 1 has 1 field, but most lines have 2, so 'Report 2024' is not"));
  EXPECT_THAT(ErrorOf("click,a\n1,2,\n0,3,\n"), HasSubstr("rows end with the delimiter"));
  EXPECT_THAT(ErrorOf("<html>\n<body>\n"), HasSubstr("HTML"));
  EXPECT_THAT(ErrorOf("click a\n1 2\n"), HasSubstr("if spaces separate them"));
}

TEST_F(TablePlanTest, IntegersWithoutAnOrderAreIds) {
  // Ids: popular ones are anywhere. The others measure: a skewed count, a normal and an even
  // spread.
  ASSERT_TRUE(
      Make(Rows("click,previous,views,height,days", 20000, [](size_t, int y, std::mt19937& draw) {
        std::lognormal_distribution<double> popularity(3, 2);
        std::lognormal_distribution<double> views(4, 1);
        std::normal_distribution<double> height(1700, 90);
        const auto article =
            static_cast<uint64_t>(popularity(draw)) * uint64_t{2654435761} % 400009;
        return absl::StrCat(y, ",", article, ",", static_cast<int>(views(draw)), ",",
                            static_cast<int>(height(draw)), ",", 3 * (2000 + draw() % 8000));
      })).ok());
  EXPECT_EQ(Choice("previous").role, ColumnRole::kSlot);
  EXPECT_EQ(Choice("views").role, ColumnRole::kDense);
  EXPECT_EQ(Choice("height").role, ColumnRole::kDense);
  EXPECT_EQ(Choice("days").role, ColumnRole::kDense);
}

TEST_F(TablePlanTest, IntegersBeyondTheLastBucketAreIds) {
  ASSERT_TRUE(Make(Rows("click,hash,city", 2000, [](size_t, int y, std::mt19937& draw) {
                return absl::StrCat(y, ",", ~uint64_t{0} - 37 * (draw() % 200), ",c", draw() % 9);
              })).ok());
  EXPECT_EQ(Choice("hash").role, ColumnRole::kSlot);
}

TEST_F(TablePlanTest, CrossesCutNumbersIntoBuckets) {
  TableWishes wishes;
  wishes.cross = {"city,price"};
  ASSERT_TRUE(Make(Rows("click,city,price", 400,
                        [](size_t, int y, std::mt19937& draw) {
                          return absl::StrCat(y, ",c", draw() % 9, ",", 0.5 + draw() % 300);
                        }),
                   wishes)
                  .ok());
  EXPECT_EQ(plan_.slots, 2u);
  EXPECT_THAT(plan_.options.sparse, ElementsAre("city"));
  EXPECT_THAT(plan_.options.bucket, ElementsAre("price"));
  EXPECT_THAT(plan_.options.cross, ElementsAre("city,price"));
}

TEST_F(TablePlanTest, PartFilesMayHaveTheirColumnsInAnyOrder) {
  const std::string folder = scratch_.Path("parts");
  std::filesystem::create_directory(folder);
  scratch_.Write("parts/part-0.csv", "click,n,city\n1,3,Oslo\n0,4,Rome\n");
  scratch_.Write("parts/part-1.csv", "city,click,n\nOslo,1,50\n");
  scratch_.Write("parts/part-2.csv", "");  // as Spark writes them
  const absl::StatusOr<TableLayout> layout = FindLayout(folder);
  ASSERT_TRUE(layout.ok()) << layout.status();
  const absl::StatusOr<TableProfile> profile = ProfileTable(folder, *layout);
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->rows, 3u);
  EXPECT_EQ(profile->columns[1].max, 50);
  EXPECT_EQ(profile->columns[2].distinct, 2u);
  scratch_.Write("parts/part-2.csv", "city,click\nOslo,1\n");
  EXPECT_THAT(ProfileTable(folder, *layout).status().message(),
              HasSubstr("part-2.csv: line 1: there is no column 'n', which "));
  scratch_.Write("parts/part-2.csv", "city,click,n,more\nOslo,1,2,3\n");
  EXPECT_THAT(ProfileTable(folder, *layout).status().message(),
              HasSubstr("part-2.csv: line 1: column 'more' is not in "));
}

TEST_F(TablePlanTest, FilesMayLackAddedColumns) {
  const std::string folder = scratch_.Path("days");
  std::filesystem::create_directory(folder);
  scratch_.Write("days/1.csv", "click,n\n1,3\n0,4\n");
  scratch_.Write("days/2.csv", "n,brand,click\n5,b1,1\n6,b2,0\n7,b1,0\n");
  scratch_.Write("days/3.jsonl", "{\"click\": 1, \"n\": 8, \"brand\": \"b3\"}\n");
  const absl::Status refused = ProfileTable(folder, *FindLayout(folder)).status();
  EXPECT_THAT(OptionsOf(refused), ElementsAre("add_column=brand")) << refused;
  LayoutWishes wishes;
  wishes.add_columns = {"brand"};
  const absl::StatusOr<TableLayout> layout = FindLayout(folder, wishes);
  ASSERT_TRUE(layout.ok()) << layout.status();
  const absl::StatusOr<TableProfile> profile = ProfileTable(folder, *layout);
  ASSERT_TRUE(profile.ok()) << profile.status();
  ASSERT_EQ(profile->columns.size(), 3u);
  EXPECT_EQ(profile->rows, 6u);
  EXPECT_EQ(profile->columns[2].name, "brand");
  EXPECT_EQ(profile->columns[2].missing, 2u);
  EXPECT_EQ(profile->columns[2].distinct, 3u);
  wishes.add_columns = {"brnad"};
  EXPECT_THAT(FindLayout(folder, wishes).status().message(),
              HasSubstr("no file has a column 'brnad'"));
}

TEST_F(TablePlanTest, ARowOfTextsIsNoHeader) {
  const char* const cities[] = {"Rome", "Oslo", "Bern"};
  const auto row = [&](size_t i, int click, std::mt19937&) {
    return absl::StrCat(click == 1 ? "yes" : "no", ",u", i % 7, ",", cities[i % 3]);
  };
  TableWishes label;
  label.label = "c1";
  ASSERT_TRUE(Make(Rows("no,u1,Oslo", 200, row), label).ok());
  EXPECT_FALSE(profile_.layout.header);
  EXPECT_EQ(profile_.rows, 201u);
  EXPECT_EQ(Column("c1").distinct, 2u);
  ASSERT_TRUE(Make(Rows("click,user,city", 200, row)).ok());
  EXPECT_TRUE(profile_.layout.header);
  // The header line again, further below, as of files that were joined.
  const std::string twice = Rows("click,user,city", 60, row);
  ASSERT_TRUE(Make(twice + twice).ok());
  EXPECT_TRUE(profile_.layout.header);
  EXPECT_EQ(profile_.rows, 120u);
}

TEST_F(TablePlanTest, FindsLinesOfVowpalWabbit) {
  const std::pair<const char*, FeatureValues> cases[] = {
      {"1 |u u7 |i i3", FeatureValues::kOnes},
      {"-1 1.0 'tag|f a b:0.5", FeatureValues::kWeights},
      {"0 |f user=3 item=4:1", FeatureValues::kOnes}};
  for (const auto& [line, values] : cases) {
    const auto layout = FindLayout(scratch_.Write("lines", absl::StrCat(line, "\n", line, "\n")));
    ASSERT_TRUE(layout.ok()) << line << layout.status();
    EXPECT_EQ(layout->format, TextFormat::kVw) << line;
    EXPECT_EQ(layout->values, values) << line;
  }
  EXPECT_THAT(ErrorOf("1 |u u7\n1 2.0 |u u7\n"), HasSubstr("line 2: its importance is '2.0'"));
  for (const char* const line : {"1|u7|i3", "1 | u7 | i3", "a |b c"}) {
    const auto layout = FindLayout(scratch_.Write("lines", absl::StrCat(line, "\n", line, "\n")));
    EXPECT_TRUE(!layout.ok() || layout->format != TextFormat::kVw) << line;
  }
}

TEST_F(TablePlanTest, PointsOfThousandsAreRead) {
  const std::string text = Rows("click,amount", 400, [](size_t i, int click, std::mt19937&) {
    const size_t amount = 13 * i + 7;
    const std::string below = absl::StrCat(1000 + amount % 1000).substr(1);
    return absl::StrCat(click, ",", amount < 1000 ? "" : absl::StrCat(amount / 1000, "."),
                        amount < 1000 ? absl::StrCat(amount) : below);
  });
  ASSERT_TRUE(Make(text).ok());
  EXPECT_EQ(Column("amount").min, 7);
  EXPECT_EQ(Column("amount").max, 13 * 399 + 7);
  EXPECT_THAT(Choice("amount").note, HasSubstr("thousands separated by ."));
}

}  // namespace
}  // namespace cistern::data
