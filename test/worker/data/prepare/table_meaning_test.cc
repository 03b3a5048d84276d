// The roles of columns follow from what their values mean, however they are written.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "test/worker/data/prepare/table_plan_fixture.h"
#include "worker/data/prepare/sample_weight.h"

namespace cistern::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TableMeaning : public TablePlanTest {};

TEST_F(TableMeaning, IdsAreSlotsHoweverTheyAreWritten) {
  const std::pair<const char*, const char*> forms[] = {
      {"1", ".0"}, {"11898508762506083200", ""}, {"0x642e92", ""}, {"1.0000000000000", "e+15"}};
  for (const auto& [begin, end] : forms) {
    ASSERT_TRUE(Make(Rows("click,device,pos", 3000, [&](size_t, int y, std::mt19937& draw) {
                  return absl::StrCat(y, ",", begin, 10 + draw() % 60, end, ",", draw() % 5);
                })).ok());
    EXPECT_EQ(Choice("device").role, ColumnRole::kSlot) << begin;
  }
  // By their name, even if each occurs once; amounts stay amounts.
  ASSERT_TRUE(Make(Rows("click,item_id,amount,city", 3000, [](size_t i, int y, std::mt19937& draw) {
                return absl::StrCat(y, ",", draw() % 900, ".0,", 20000 + 7 * i, ".0,c", draw() % 9);
              })).ok());
  EXPECT_EQ(Choice("item_id").role, ColumnRole::kSlot);
  EXPECT_EQ(Choice("amount").role, ColumnRole::kDense);
  EXPECT_THAT(plan_.options.integers, testing::Contains("item_id"));
  ASSERT_TRUE(Make(Rows("click,city,member", 200, [](size_t, int y, std::mt19937& draw) {
                return absl::StrCat(y, ",c", draw() % 9, ",", draw() % 2 ? "True" : "False");
              })).ok());
  EXPECT_THAT(plan_.options.integers, testing::Contains("member"));
}

// Tells codes from quantities by their click rates, which jump from one code to the next.
TEST_F(TableMeaning, NumbersWhoseClickRatesJumpAreSlots) {
  for (const bool jumps : {true, false}) {
    ASSERT_TRUE(Make(Rows("click,size,place,price", 8000, [&](size_t, int, std::mt19937& draw) {
                  const unsigned code = draw() % 80;
                  const unsigned percent = !jumps ? 10 + code : code * 7919 % 13 < 6 ? 80 : 20;
                  return absl::StrFormat("%d,%.1f,%d,%.2f", draw() % 100 < percent, code / 10.0,
                                         code * code + 1000, draw() % 90000 / 100.0);
                })).ok());
    EXPECT_EQ(Choice("size").role, ColumnRole::kDense);
    EXPECT_EQ(Choice("size").values, jumps);
    EXPECT_EQ(Choice("place").role, jumps ? ColumnRole::kSlot : ColumnRole::kDense);
    EXPECT_FALSE(Choice("price").values);
    EXPECT_EQ(std::count(plan_.options.sparse.begin(), plan_.options.sparse.end(), "size"), jumps);
    EXPECT_EQ(std::count(plan_.options.bucket.begin(), plan_.options.bucket.end(), "size"), 0);
  }
}

// A weight for each of 13 values is more than 400 positive rows tell, if their order tells as much.
TEST_F(TableMeaning, SmallCountsAreQuantitiesWhereFewRowsArePositive) {
  const auto rows = [](bool jumps) {
    return [jumps](size_t, int, std::mt19937& draw) {
      const unsigned count = draw() % 13;
      const unsigned percent = !jumps ? 2 + count / 2 : count % 2 == 0 ? 1 : 9;
      return absl::StrCat(draw() % 100 < percent, ",", count, ",c", draw() % 9);
    };
  };
  ASSERT_TRUE(Make(Rows("click,visits,city", 8000, rows(false))).ok());
  EXPECT_EQ(Choice("visits").role, ColumnRole::kDense);
  ASSERT_TRUE(Make(Rows("click,visits,city", 8000, rows(true))).ok());
  EXPECT_EQ(Choice("visits").role, ColumnRole::kSlot);
  ASSERT_TRUE(Make(Rows("click,shop,city", 8000, rows(false))).ok());
  EXPECT_EQ(Choice("shop").role, ColumnRole::kSlot);  // by its name
}

// So are percentages, whose neighbours are about as frequent; numbers of things are not.
TEST_F(TableMeaning, MoreValuesAreAQuantityWhereNeighboursAreAboutAsFrequent) {
  const auto rows = [](bool measured) {
    return [measured](size_t, int, std::mt19937& draw) {
      std::normal_distribution<double> percent(60, 15);
      const int value = std::clamp(static_cast<int>(percent(draw)), 0, 119);
      return absl::StrCat(draw() % 100 < 4, ",", measured ? value : value * 71 % 120, ",c",
                          draw() % 9);
    };
  };
  ASSERT_TRUE(Make(Rows("click,used,city", 8000, rows(true))).ok());
  EXPECT_EQ(Choice("used").role, ColumnRole::kDense);
  ASSERT_TRUE(Make(Rows("click,used,city", 8000, rows(false))).ok());
  EXPECT_EQ(Choice("used").role, ColumnRole::kSlot);
}

// Ages of 18 to 69 that are alike often: neighbours tell nothing, but the name does.
TEST_F(TableMeaning, MoreValuesAreAQuantityByTheirName) {
  const auto rows = [](size_t, int, std::mt19937& draw) {
    return absl::StrCat(draw() % 100 < 2, ",", 18 + draw() % 52, ",c", draw() % 9);
  };
  ASSERT_TRUE(Make(Rows("click,age,city", 6000, rows)).ok());
  EXPECT_EQ(Choice("age").role, ColumnRole::kDense);
  ASSERT_TRUE(Make(Rows("click,x,city", 6000, rows)).ok());
  EXPECT_EQ(Choice("x").role, ColumnRole::kSlot);
}

// Most loans are of 500, 1000 or 2000, some of 1150: round numbers are no ids.
TEST_F(TableMeaning, RoundedAmountsAreNoIds) {
  const auto rows = [](bool rounded) {
    return [rounded](size_t, int y, std::mt19937& draw) {
      std::lognormal_distribution<double> amount(7, 0.7);
      const int step = draw() % 4 == 0 ? 10 : 100;
      const int value = step * static_cast<int>(amount(draw) / step);
      return absl::StrCat(y, ",", rounded ? value : value * 7919 % 9973, ",c", draw() % 9);
    };
  };
  ASSERT_TRUE(Make(Rows("click,loan,city", 8000, rows(true))).ok());
  EXPECT_EQ(Choice("loan").role, ColumnRole::kDense);
  ASSERT_TRUE(Make(Rows("click,loan,city", 8000, rows(false))).ok());
  EXPECT_EQ(Choice("loan").role, ColumnRole::kSlot);
}

// 2^70 + 0 to 39 are one number to a double.
TEST_F(TableMeaning, FewHugeIntegersAreNoQuantity) {
  ASSERT_TRUE(Make(Rows("click,value,city", 6000, [](size_t, int, std::mt19937& draw) {
                return absl::StrCat(draw() % 100 < 2, ",11805916207174113034", 24 + draw() % 40,
                                    ",c", draw() % 9);
              })).ok());
  EXPECT_EQ(Choice("value").role, ColumnRole::kSlot);
  EXPECT_EQ(Column("value").distinct, 40u);
}

// 1e2 and 10e1 are one number and two codes (of hexadecimal digits, or of a shelf and a place).
TEST_F(TableMeaning, CodesWithAnEAreNoNumbers) {
  const auto code = [](size_t i) { return absl::StrFormat("%de%d", i % 9 + 1, i / 9 % 5); };
  ASSERT_TRUE(Make(Rows("label,code,mixed,number", 900, [&](size_t i, int label, std::mt19937&) {
                return absl::StrFormat(
                    "%d,%s,%s,%s", label, code(i),
                    i % 3 == 0 ? absl::StrCat(i % 70) : absl::StrCat(i % 70, "e", i % 4),
                    i % 2 == 0 ? "1e5" : absl::StrCat(i));
              })).ok());
  EXPECT_EQ(Column("code").type, ColumnType::kText);
  EXPECT_EQ(Column("code").distinct, 45u);
  EXPECT_EQ(Column("mixed").type, ColumnType::kText);
  EXPECT_EQ(Column("number").type, ColumnType::kInteger);
  for (const char* const name : {"code", "mixed"}) {
    EXPECT_EQ(Choice(name).role, ColumnRole::kSlot) << name;
    EXPECT_EQ(Choice(name).note, "") << name;
  }
}

TEST_F(TableMeaning, InfiniteNumbersAreMissingNumbers) {
  ASSERT_TRUE(Make(Rows("click,rate,word", 400, [](size_t i, int y, std::mt19937& draw) {
                const std::string rate = i % 50 == 0   ? "inf"
                                         : i % 50 == 1 ? "-Infinity"
                                                       : absl::StrCat(0.5 + draw() % 300);
                return absl::StrCat(y, ",", rate, ",", draw() % 2 ? "inf" : "sup");
              })).ok());
  EXPECT_EQ(Column("rate").type, ColumnType::kNumber);
  EXPECT_EQ(Column("rate").missing, 16u);
  EXPECT_THAT(Choice("rate").note, HasSubstr("16 infinite values count as missing"));
  EXPECT_EQ(Column("word").type, ColumnType::kText);
  EXPECT_EQ(Column("word").distinct, 2u);
}

TEST_F(TableMeaning, SentinelsDoNotSpreadAColumn) {
  for (const char* const sentinel : {"-9999", "999999999", "3.4028235e38"}) {
    ASSERT_TRUE(Make(Rows("click,x,city", 3000, [&](size_t i, int y, std::mt19937& draw) {
                  std::normal_distribution<double> normal(3, 1);
                  return absl::StrCat(y, ",", i % 100 == 0 ? sentinel : absl::StrCat(normal(draw)),
                                      ",c", draw() % 9);
                })).ok());
    ASSERT_TRUE(Choice("x").bounds.has_value()) << sentinel;
    EXPECT_GT(Choice("x").bounds->first, 3 - 8.0);
    EXPECT_LT(Choice("x").bounds->second, 3 + 8.0);
    EXPECT_FALSE(Choice("x").pieces.empty());
    EXPECT_TRUE(Choice("x").tells_missing);
    EXPECT_THAT(Choice("x").note, HasSubstr("codes such as"));
  }
  // A skewed price with a code for none is still cut in logarithms.
  ASSERT_TRUE(Make(Rows("click,price,city", 3000, [&](size_t i, int y, std::mt19937& draw) {
                std::lognormal_distribution<double> price(3, 1);
                return absl::StrCat(y, ",", i % 100 == 0 ? "-999" : absl::StrCat(price(draw)), ",c",
                                    draw() % 9);
              })).ok());
  EXPECT_TRUE(Choice("price").log1p);
  // A normal column has none: bounds far beyond all of its numbers.
  ASSERT_TRUE(Make(Rows("click,x,city", 3000, [&](size_t, int y, std::mt19937& draw) {
                std::normal_distribution<double> normal(3, 1);
                return absl::StrCat(y, ",", normal(draw), ",c", draw() % 9);
              })).ok());
  EXPECT_FALSE(Choice("x").bucket);
  EXPECT_LT(Choice("x").bounds->first, Column("x").min - 3);
}

// A model that is given the mean of what is missing cannot tell it from the mean.
TEST_F(TableMeaning, WhetherANumberIsMissingIsAFeature) {
  ASSERT_TRUE(Make(Rows("click,x,y,city", 3000, [](size_t i, int y, std::mt19937& draw) {
                std::normal_distribution<double> normal(3, 1);
                return absl::StrCat(y, ",", i % 100 < 9 ? "" : absl::StrCat(normal(draw)), ",",
                                    i < 9 ? "" : absl::StrCat(normal(draw)), ",c", draw() % 9);
              })).ok());
  EXPECT_TRUE(Choice("x").tells_missing);
  EXPECT_THAT(Choice("x").note, HasSubstr("whether it is missing"));
  EXPECT_THAT(plan_.options.told_missing, ElementsAre("x"));  // nine rows tell nothing of y
  EXPECT_EQ(plan_.dense, 2 + 2 * 7 + 1u);                     // pieces, and that of x
}

// Beside others, -9999 is no number, whatever it is written like.
TEST_F(TableMeaning, SentinelsStandForNoNumber) {
  ASSERT_TRUE(Make(Rows("click,price,city", 3000, [](size_t i, int y, std::mt19937& draw) {
                std::lognormal_distribution<double> price(5, 1);
                const char* const none[] = {"99999", "99999.00"};
                return absl::StrCat(y, ",",
                                    i % 10 == 0 ? none[i % 20 / 10] : absl::StrCat(price(draw)),
                                    ",c", draw() % 9);
              })).ok());
  EXPECT_THAT(Choice("price").none, ElementsAre("99999", "99999.0", "99999.00"));
  EXPECT_EQ(plan_.options.numbers.at("price").none, Choice("price").none);
  EXPECT_TRUE(Choice("price").tells_missing);
}

// ln(1 + x) of a rate is the rate.
TEST_F(TableMeaning, LogarithmsAreForNumbersOfDifferentLengths) {
  for (const double unit : {1.0, 1e6, 1e-5}) {
    ASSERT_TRUE(Make(Rows("click,price,city", 3000, [&](size_t, int y, std::mt19937& draw) {
                  std::lognormal_distribution<double> price(4, 1.2);
                  return absl::StrFormat("%d,%.9g,c%d", y, unit * price(draw), draw() % 9);
                })).ok());
    EXPECT_EQ(Choice("price").role, ColumnRole::kDense);
    EXPECT_EQ(Choice("price").log1p, unit >= 1);
    EXPECT_FALSE(Choice("price").bucket);
    EXPECT_FALSE(Choice("price").pieces.empty()) << unit;
  }
}

// Amounts hardly come back, like ids: their name, or their effect, tells them apart.
TEST_F(TableMeaning, IntegersThatHardlyComeBackCanBeAmounts) {
  ASSERT_TRUE(
      Make(Rows("click,price_cents,x,noise,hash,row", 3000, [](size_t i, int, std::mt19937& draw) {
        std::lognormal_distribution<double> amount(12, 1);
        const double x = amount(draw);
        const bool y = std::log(x) > 12 ? draw() % 10 < 7 : draw() % 10 < 3;
        return absl::StrFormat("%d,%.0f,%.0f,%.0f,%d,%d", y, amount(draw), x, amount(draw), draw(),
                               1000 + i * 7);
      })).ok());
  EXPECT_EQ(Choice("price_cents").role, ColumnRole::kDense);
  EXPECT_EQ(Choice("x").role, ColumnRole::kDense);
  for (const char* const name : {"noise", "hash", "row"}) {
    EXPECT_EQ(Choice(name).role, ColumnRole::kIgnored) << name;
    EXPECT_THAT(Choice(name).note, HasSubstr("an id")) << name;
  }
}

TEST_F(TableMeaning, VectorsOfTextAreNoLists) {
  ASSERT_TRUE(Make(Rows("click,city,list,numpy", 500, [](size_t, int y, std::mt19937& draw) {
                std::normal_distribution<double> normal;
                std::string list, numpy;
                for (int i = 0; i < 9; ++i) {
                  absl::StrAppendFormat(&list, "%s%.5f", i > 0 ? ", " : "", normal(draw));
                  absl::StrAppendFormat(&numpy, " %.5f", normal(draw));
                }
                return absl::StrCat(y, ",c", draw() % 9, ",\"[", list, "]\",[", numpy, "]");
              })).ok());
  EXPECT_THAT(Choice("list").note, HasSubstr("list.0 to list.8"));
  EXPECT_THAT(Choice("numpy").note, HasSubstr("numpy.0 to numpy.8"));
}

// Paths, times and codes have separators, too, but as many in each field.
TEST_F(TableMeaning, SeparatorsOfPathsSeparateValuesWhoseNumberVaries) {
  for (const char* const separator : {"/", "+", ":", "::", "\n"}) {
    ASSERT_TRUE(Make(Rows("click,tags,path", 2000, [&](size_t, int y, std::mt19937& draw) {
                  std::string tags = absl::StrCat("t", draw() % 20);
                  for (size_t more = draw() % 4; more > 0; --more) {
                    absl::StrAppend(&tags, separator, "t", draw() % 20);
                  }
                  return absl::StrCat(y, ",\"", tags, "\",\"", draw() % 12, separator, draw() % 12,
                                      separator, draw() % 12, "\"");
                })).ok());
    ASSERT_TRUE(Choice("tags").list.has_value()) << separator;
    EXPECT_EQ(Choice("tags").list->separator, separator[0]);
    EXPECT_FALSE(Choice("path").list.has_value()) << separator;
  }
  // Few fields hold several values.
  ASSERT_TRUE(Make(Rows("click,tags", 2000, [](size_t i, int y, std::mt19937& draw) {
                const std::string tag = absl::StrCat("t", draw() % 9);
                return absl::StrCat(y, ",", tag, i % 10 == 0 ? absl::StrCat("|t", draw() % 9) : "");
              })).ok());
  EXPECT_TRUE(Choice("tags").list.has_value());
}

// Of names, dates, codes and addresses, too. Whole texts that come back are campaigns or slugs.
TEST_F(TableMeaning, SeparatorsOfNamesSeparateValuesOfTextsThatAreNew) {
  for (const char* const separator : {"_", "-", "."}) {
    const auto words = [&](std::mt19937& draw, size_t most) {
      std::string text = absl::StrCat("w", draw() % 20);
      for (size_t more = draw() % most; more > 0; --more) {
        absl::StrAppend(&text, separator, "w", draw() % 20);
      }
      return text;
    };
    std::vector<std::string> names;
    std::mt19937 draw_names(3);
    for (int i = 0; i < 200; ++i) names.push_back(words(draw_names, 5));
    ASSERT_TRUE(Make(Rows("click,tags,name,day,phone,device,uuid", 2000,
                          [&](size_t, int y, std::mt19937& draw) {
                            std::string row = absl::StrCat(y, ",", words(draw, 5), ",");
                            absl::StrAppend(&row, names[draw() % 200], ",2024", separator,
                                            10 + draw() % 3, separator, 10 + draw() % 19, ",");
                            absl::StrAppend(&row, 200 + draw() % 90, separator, 100 + draw() % 90,
                                            draw() % 2 ? absl::StrCat(separator, draw() % 99) : "",
                                            ",iphone", separator, draw() % 900, ",");
                            for (int part = 0; part < 5; ++part) {
                              absl::StrAppendFormat(&row, "%s%04x", part > 0 ? separator : "",
                                                    draw() % 65536);
                            }
                            return row;
                          }))
                    .ok());
    ASSERT_TRUE(Choice("tags").list.has_value()) << separator;
    EXPECT_EQ(Choice("tags").list->separator, separator[0]);
    for (const char* const name : {"name", "day", "phone", "device", "uuid"}) {
      EXPECT_FALSE(Choice(name).list.has_value()) << name << " " << separator;
    }
  }
}

TEST_F(TableMeaning, FindsListsOfOtherPrograms) {
  struct Form {
    const char *open, *between, *close;
    char separator;
    bool list, weights;
  };
  const Form forms[] = {
      {"", "|", "", '|', false, false},         {"", " ", "", ' ', true, false},
      {"\"", ",", "\"", ',', true, false},      {"", "^", "", '^', false, false},
      {"\"[", ", ", "]\"", ',', true, false},   {"[", " ", "]", ' ', true, false},
      {"", ":0.25|", ":0.5", '|', false, true}, {"", "=0.25|", "=0.5", '|', false, true},
      {"\"", "(2),", "(1)\"", ',', true, true}, {"", "=2&", "=1", '&', false, false}};
  for (const Form& form : forms) {
    ASSERT_TRUE(Make(Rows("click,city,feat", 2000, [&](size_t, int y, std::mt19937& draw) {
                  std::string text =
                      absl::StrCat(y, ",c", draw() % 9, ",", form.open, "v", draw() % 20);
                  for (size_t more = draw() % 3; more > 0; --more) {
                    absl::StrAppend(&text, form.between, "v", draw() % 20);
                  }
                  return text + form.close;
                })).ok());
    ASSERT_TRUE(Choice("feat").list.has_value()) << form.between;
    EXPECT_EQ(Choice("feat").list->separator, form.separator);
    EXPECT_EQ(Choice("feat").list->list, form.list) << form.between;
    EXPECT_EQ(Choice("feat").list->weights, form.weights) << form.between;
  }
}

TEST_F(TableMeaning, WordsAndDecimalCommasAreNoLists) {
  const char* const cities[] = {"New York", "San Jose", "Rome", "Los Angeles", "Oslo"};
  ASSERT_TRUE(Make(Rows("click,city,price,at", 2000, [&](size_t, int y, std::mt19937& draw) {
                return absl::StrCat(y, ",", cities[draw() % 5], ",\"", draw() % 90, ",",
                                    10 + draw() % 90, "\",", draw() % 12, ":30|", draw() % 12,
                                    ":15");
              })).ok());
  EXPECT_FALSE(Choice("city").list.has_value());
  EXPECT_FALSE(Choice("price").list.has_value());
  EXPECT_THAT(Choice("price").note, HasSubstr("decimal comma"));
  EXPECT_FALSE(Choice("at").list.has_value() && Choice("at").list->weights);
  // India's thousands, of too few values to be written numbers.
  ASSERT_TRUE(Make(Rows("click,price", 2000, [&](size_t, int y, std::mt19937& draw) {
                return absl::StrCat(y, ",\"", 10 + draw() % 30, ",00,000\"");
              })).ok());
  EXPECT_FALSE(Choice("price").list.has_value());
}

TEST_F(TableMeaning, ColumnsOfSeveralValuesCanBeNamed) {
  TableWishes wishes;
  wishes.multi = {"tags"};
  wishes.separator = '/';
  ASSERT_TRUE(Make(Rows("click,city,tags", 400,
                        [](size_t, int y, std::mt19937& draw) {
                          return absl::StrCat(y, ",c", draw() % 9, ",a", draw() % 9, "/b",
                                              draw() % 9);
                        }),
                   wishes)
                  .ok());
  EXPECT_EQ(Choice("tags").list->separator, '/');
  EXPECT_EQ(plan_.options.forms.at("tags").separator, '/');
}

TEST_F(TableMeaning, TimesAreReadInTheFormsThatPeopleWrite) {
  const std::pair<std::string, std::string> forms[] = {
      {"14/03/2024 10:05", "15/03/2024 09:05"},
      {"03/14/2024", "03/15/2024"},
      {"\"Mar 14, 2024\"", "\"Mar 15, 2024\""},
      {"14-Mar-2024", "15-Mar-2024"},
      {"\"Thu, 14 Mar 2024 10:00:00 GMT\"", "\"Fri, 15 Mar 2024 09:00:00 GMT\""},
      {"Thu Mar 14 10:00:00 UTC 2024", "Fri Mar 15 09:00:00 UTC 2024"},
      {"14/Mar/2024:10:00:00 +0000", "15/Mar/2024:09:00:00 +0000"},
      {"20240314T100000Z", "20240315T090000Z"},
      {"2024-03-14 23:30:00-05:00", "2024-03-15 06:00:00+00:00"},
      {"\"14 March 2024, 10:05\"", "\"15 March 2024, 09:05\""},
      {"\"Thursday, March 14, 2024\"", "\"Friday, March 15, 2024\""},
      {"\"Thu, 14 Mar 2024\"", "\"Fri, 15 Mar 2024\""},
      {"2024_03_14", "2024_03_15"},
      {"2024-03-14_23:10:00", "2024-03-15_09:00:00"},
      {"2024-03-14-23", "2024-03-15-09"},
      {"2024/03/14/23", "2024/03/15/09"},
      {"1710410400.25", "1710493200.5"},
      {"1710410400000000", "1710493200000000"}};
  for (const auto& [early, late] : forms) {
    ASSERT_TRUE(Make(Rows("click,city,time", 1000, [&](size_t i, int y, std::mt19937& draw) {
                  return absl::StrCat(y, ",c", draw() % 9, ",", i < 900 ? early : late);
                })).ok());
    EXPECT_EQ(Choice("time").role, ColumnRole::kTime) << early;
    EXPECT_EQ(plan_.held_out.time_column, Place("time")) << early;
  }
  for (const char* name : {"us", "event_usec", "posted", "sent_ns"}) {
    ASSERT_TRUE(
        Make(Rows(absl::StrCat("click,city,", name), 1000, [](size_t i, int y, std::mt19937& draw) {
          return absl::StrCat(y, ",c", draw() % 9, ",17104104", 10 + i / 20, "000000000");
        })).ok());
    EXPECT_EQ(Choice(name).role, ColumnRole::kTime) << name;
  }
  ASSERT_TRUE(Make(Rows("click,city,time", 1000, [&](size_t i, int y, std::mt19937& draw) {
                return absl::StrCat(y, ",c", draw() % 9, ",0", i < 900 ? 3 : 4, "/05/2024");
              })).ok());
  EXPECT_THAT(Choice("time").note, HasSubstr("day and month could change places"));
  EXPECT_FALSE(plan_.held_out.time_column.has_value());
}

TEST_F(TableMeaning, LeavesOutWhatIsNoFeature) {
  ASSERT_TRUE(Make(Rows("click,city,sample_weight,qid,dwell,purchase", 4000,
                        [](size_t i, int y, std::mt19937& draw) {
                          const bool bought = y == 1 && draw() % 4 == 0;
                          return absl::StrCat(y, ",c", draw() % 9, ",", 0.5 + (draw() % 10) * 0.1,
                                              ",", i / 10, ",", y ? 1 + draw() % 90 : 0, ",",
                                              bought);
                        }))
                  .ok());
  EXPECT_THAT(Choice("sample_weight").note, HasSubstr("looks like a weight of the sample"));
  EXPECT_THAT(Choice("qid").note, HasSubstr("id of a query"));
  EXPECT_THAT(Choice("dwell").note, HasSubstr("LEAK?"));
  EXPECT_THAT(Choice("purchase").note, HasSubstr("LEAK? all"));
  EXPECT_EQ(Choice("city").role, ColumnRole::kSlot);
  TableWishes wishes;
  wishes.dense = {"sample_weight"};
  ASSERT_TRUE(Make(Rows("click,city,sample_weight", 400,
                        [](size_t, int y, std::mt19937& draw) {
                          return absl::StrCat(y, ",c", draw() % 9, ",", 0.5 + (draw() % 10) * 0.1);
                        }),
                   wishes)
                  .ok());
  EXPECT_EQ(Choice("sample_weight").role, ColumnRole::kDense);
}

TEST_F(TableMeaning, RowsWithoutClicksAreNoLeak) {
  ASSERT_TRUE(Make(Rows("click,city,robot", 4000, [](size_t, int y, std::mt19937& draw) {
                const bool robot = draw() % 5 == 0;
                return absl::StrCat(robot ? 0 : y, ",c", draw() % 9, ",", robot);
              })).ok());
  EXPECT_EQ(Choice("robot").role, ColumnRole::kSlot) << Choice("robot").note;
}

TEST_F(TableMeaning, GoodFeaturesAreNoLeaks) {
  // A value that clicks in 95 of 100 rows, and a rare one that has only clicks by chance.
  ASSERT_TRUE(Make(Rows("click,item,member", 4000, [](size_t i, int y, std::mt19937& draw) {
                const uint64_t item = draw() % 40;
                if (item == 7) y = draw() % 100 < 95;
                return absl::StrCat(y, ",i", i < 8 && y ? 99 : item, ",", item % 2);
              })).ok());
  EXPECT_EQ(Choice("item").role, ColumnRole::kSlot) << Choice("item").note;
  EXPECT_EQ(Choice("member").role, ColumnRole::kSlot) << Choice("member").note;
}

TEST_F(TableMeaning, FindsHeadersWithNumbersInThem) {
  ASSERT_TRUE(Make("label,1,2\n1,u,5\n0,v,6\n1,u,7\n").ok());
  EXPECT_TRUE(profile_.layout.header);
  EXPECT_THAT(profile_.layout.columns, ElementsAre("label", "1", "2"));
  ASSERT_TRUE(Make("a,0,1\nx,u,5\ny,v,6\nx,u,7\n", {"0", {}, {}, {}, {}}).ok());
  EXPECT_THAT(profile_.layout.columns, ElementsAre("a", "0", "1"));
  // Data: the first line looks like the others.
  ASSERT_TRUE(Make("u,1,5\nv,0,6\nu,1,7\n", {"c2", {}, {}, {}, {}}).ok());
  EXPECT_FALSE(profile_.layout.header);
}

TEST_F(TableMeaning, YesIsPositiveThoughItIsTheMoreFrequent) {
  ASSERT_TRUE(Make("y,a\nyes,u\nYes,v\nno,u\nYES,v\n").ok());
  EXPECT_THAT(plan_.options.positive, ElementsAre("yes", "Yes", "YES"));
  EXPECT_THAT(plan_.options.negative, ElementsAre("no"));
  EXPECT_THAT(ErrorOf("y,a\nyes,u\nYes,v\n"), HasSubstr("in every row"));
}

TEST_F(TableMeaning, FoldersOfPartitionsAreColumns) {
  for (const char* const day : {"2024-05-01", "2024-05-02"}) {
    for (const char* const country : {"us", "__HIVE_DEFAULT_PARTITION__"}) {
      const std::string folder = absl::StrCat("hive/dt=", day, "/country=", country);
      std::filesystem::create_directories(scratch_.Path(folder));
      scratch_.Write(folder + "/part-0.csv", "click,n\n1,3\n0,4\n");
    }
  }
  scratch_.Write("hive/_SUCCESS", "");
  const std::string path = scratch_.Path("hive");
  const absl::StatusOr<TableLayout> layout = FindLayout(path);
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_THAT(layout->columns, ElementsAre("click", "n", "dt", "country"));
  const absl::StatusOr<TableProfile> profile = ProfileTable(path, *layout);
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->rows, 8u);
  EXPECT_EQ(profile->columns[2].type, ColumnType::kTime);
  EXPECT_EQ(profile->columns[3].missing, 4u);
}

TEST_F(TableMeaning, LinesOfFeaturesHaveOneSlot) {
  std::string lines;
  for (int i = 0; i < 300; ++i) {
    absl::StrAppend(&lines, i % 2, i % 3 == 0 ? "" : absl::StrCat(" ", i % 7, ":0.5 9:-2"), "\n");
  }
  scratch_.Write("t.svm", lines);
  const std::string path = scratch_.Path("t.svm");
  const absl::StatusOr<TableLayout> layout = FindLayout(path);
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_TRUE(layout->has_feature_lines());
  const absl::StatusOr<TableProfile> profile = ProfileTable(path, *layout);
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->rows, 300u);
  EXPECT_EQ(profile->columns[1].missing, 100u);
}

TEST_F(TableMeaning, SeveralFilesAndPatternsAreOneTable) {
  scratch_.Write("a.csv", "click,n\n1,3\n");
  scratch_.Write("b.csv", "n,click\n4,0\n");
  for (const std::string& path : {scratch_.Path("a.csv") + "," + scratch_.Path("b.csv"),
                                  scratch_.Path("*.csv"), scratch_.Path("{a,b}.csv")}) {
    const absl::StatusOr<TableLayout> layout = FindLayout(path);
    ASSERT_TRUE(layout.ok()) << path << layout.status();
    const absl::StatusOr<TableProfile> profile = ProfileTable(path, *layout);
    ASSERT_TRUE(profile.ok()) << profile.status();
    EXPECT_EQ(profile->rows, 2u) << path;
  }
  EXPECT_THAT(FindLayout(scratch_.Path("*.tsv")).status().message(), HasSubstr("*.tsv"));
}

TEST_F(TableMeaning, AWishedWeightIsNoFeature) {
  const auto rows = [](const char* other) {
    return Rows("click,city,w", 400, [other](size_t i, int y, std::mt19937& draw) {
      return absl::StrCat(y, ",c", draw() % 9, ",", i == 7 ? other : absl::StrCat(draw() % 5));
    });
  };
  TableWishes wishes;
  wishes.weight = "w";
  ASSERT_TRUE(Make(rows("2.5"), wishes).ok());
  EXPECT_EQ(Choice("w").role, ColumnRole::kWeight);
  EXPECT_EQ(plan_.weight, Place("w"));
  EXPECT_EQ(plan_.options.weight, "w");
  EXPECT_EQ(plan_.slots + plan_.dense, 1u);
  const std::pair<const char*, const char*> cases[] = {
      {"-1", "column 'w' holds -1, and a weight is a number from 0 on"},
      {"heavy", "column 'w' holds text, not weights"},
      {"", "column 'w' has no value in 1 rows"},
      {"inf", "column 'w' holds infinite numbers"},
      {"1700000000", "column 'w' holds 1.7e+09, and a weight is at most 1e+09"}};
  for (const auto& [text, error] : cases)
    EXPECT_THAT(ErrorOf(rows(text), wishes), HasSubstr(error));
  wishes.ignore = {"w"};
  EXPECT_THAT(ErrorOf(rows("1"), wishes), HasSubstr("column 'w' has another role already"));
  wishes = {};
  wishes.weight = "click";
  EXPECT_THAT(ErrorOf(rows("1"), wishes), HasSubstr("column 'click' has another role already"));
}

TEST_F(TableMeaning, TheShareOfPositivesIsWeighted) {
  std::string text = "click,city,w\n";
  for (int i = 0; i < 400; ++i)
    absl::StrAppend(&text, i % 4 == 0, ",c", i % 7, ",", i % 4 == 0 ? 6 : 1, "\n");
  TableWishes wishes;
  wishes.weight = "w";
  ASSERT_TRUE(Make(text, wishes).ok());
  EXPECT_EQ(ShareOfPositives(profile_, plan_.label), 0.25);
  EXPECT_NEAR(WeightedShareOfPositives(profile_, plan_.label, *plan_.weight), 2.0 / 3, 1e-12);
}

}  // namespace
}  // namespace cistern::data
