// Numbers in the forms that people write, and what only looks like one.
#include "worker/data/recipe/number_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "worker/data/recipe/number_unit.h"

namespace cistern::data {
namespace {

// 100 numbers, printed by `write`.
std::vector<std::string> Written(const std::function<std::string(int)>& write) {
  std::vector<std::string> texts;
  for (int i = 0; i < 100; ++i) texts.push_back(write(1000 * i + 37 * i % 1000));
  return texts;
}

std::string Plain(const std::string& text, const NumberForm& form) {
  std::string plain;
  return PlainNumber(text, form, &plain) ? plain : "no number";
}

TEST(NumberForm, IsFoundAndReadsTheNumberBack) {
  struct Case {
    std::function<std::string(int)> write;
    NumberForm form;
    std::string text, plain;
  };
  const auto grouped = [](int x, const std::string& group) {
    return x < 1000 ? absl::StrCat(x)
                    : absl::StrCat(x / 1000, group, absl::StrCat(1000 + x % 1000).substr(1));
  };
  const Case cases[] = {
      {[](int x) { return absl::StrCat(x, ",50"); }, {',', 0, "", {}}, "3,14", "3.14"},
      {[&](int x) { return grouped(x, ",") + ".5"; }, {'.', ',', "", {}}, "1,234,567", "1234567"},
      {[&](int x) { return grouped(x, ".") + ",5"; }, {',', '.', "", {}}, "1.234,5", "1234.5"},
      {[&](int x) { return grouped(x, " "); }, {'.', ' ', "", {}}, "12 034", "12034"},
      {[&](int x) { return grouped(x, "\xc2\xa0") + ",5"; },
       {',', ' ', "", {}},
       "1 234,5",
       "1234.5"},
      {[&](int x) { return grouped(x, "'"); }, {'.', '\'', "", {}}, "1'034", "1034"},
      {[](int x) { return absl::StrCat("$", x); }, {'.', 0, "$", {}}, "-$5", "-5"},
      {[](int x) { return absl::StrCat(x, " \xe2\x82\xac"); },
       {'.', 0, "\xe2\x82\xac", {}},
       "(5)",
       "-5"},
      {[](int x) { return absl::StrCat("USD ", x, ".25"); },
       {'.', 0, "USD", {}},
       "usd 5",
       "no number"},
      {[](int x) { return absl::StrCat(x, "%"); }, {'.', 0, "%", {}}, "1.5e2 %", "1.5e2"},
      {[](int x) { return absl::StrCat(x, "kg"); }, {'.', 0, "kg", {}}, "5", "5"},
      {[](int x) { return x % 3000 == 0 ? "-" : absl::StrCat(x); }, {'.', 0, "", {"-"}}, "5", "5"},
      {[](int x) { return x % 9000 == 0 ? "0x" : absl::StrCat(x); },
       {'.', 0, "", {"0x"}},
       "0x",
       "no number"},
      {[](int x) { return absl::StrCat("\xe2\x88\x92", x); },
       {'.', 0, "", {}},
       "\xe2\x88\x92.5",
       "-0.5"},
      // Written twice, by Fortran, on a clock, and as multiples.
      {[](int x) { return absl::StrCat("\"", x, "\""); }, {}, "=\"-7.5\"", "-7.5"},
      {[](int x) { return absl::StrCat("1.", x, "D+02"); }, {}, "2.5d-01", "2.5e-01"},
      {[](int x) { return absl::StrCat("1,", 100 + x % 900, "e+01"); },
       {',', 0, "", {}},
       "1,048e+01",
       "1.048e+01"},
      {[](int x) { return absl::StrCat(x / 3600, ":", 10 + x % 50, ":", 10 + x % 50); },
       {},
       "1:02:03.5",
       "3723.5"},
      {[](int x) { return absl::StrCat(x % 9, " days 00:00:", 10 + x % 50); },
       {},
       "-1 days +23:59:50",
       "-10.0"},
      {[](int x) { return x % 2000 == 0 ? absl::StrCat(x) : absl::StrCat(x / 1e3, "k"); },
       {},
       "1.5M",
       "1500000.0"},
      {[](int x) { return x % 2000 == 0 ? absl::StrCat("$", x) : absl::StrCat("$", x / 1e3, "K"); },
       {'.', 0, "$", {}},
       "-$2.5K",
       "-2500.0"},
      {[](int x) { return x % 2000 == 0 ? absl::StrCat(x, " KB") : absl::StrCat(x / 1e3, " MB"); },
       {'.', 0, "B", {}},
       "512 B",
       "512"},
      {[](int x) { return x % 2000 == 0 ? absl::StrCat(x, " ms") : absl::StrCat(x / 1e3, " s"); },
       {'.', 0, "s", {}},
       "2 min",
       "120.0"},
      // Bounds and estimates, ranges (their middle), and what a number is out of.
      {[](int x) { return x % 3000 == 0 ? absl::StrCat("approx. ", x) : absl::StrCat(x); },
       {},
       "About 7",
       "7"},
      {[](int x) { return x % 2000 == 0 ? absl::StrCat("~$", x) : absl::StrCat("$", x, "+"); },
       {'.', 0, "$", {}},
       "up to $7.5",
       "7.5"},
      {[](int x) { return x % 2000 == 0 ? absl::StrCat(">", x) : absl::StrCat(x, "*"); },
       {},
       "7.5[2]",
       "7.5"},
      {[](int x) { return absl::StrCat(x, "-", x + 9); }, {}, "18 to 24", "21.0"},
      {[](int x) { return absl::StrCat("$", x, "-$", x + x / 2); },
       {'.', 0, "$", {}},
       "$10-20",
       "15.0"},
      {[](int x) { return absl::StrCat(x, "\xe2\x80\x93", x + 5, " kg"); },
       {'.', 0, "kg", {}},
       "3 ~ 4 kg",
       "3.5"},
      {[](int x) { return absl::StrCat(x / 1e4, "/5"); }, {'.', 0, "/5", {}}, "4.5/5", "4.5"},
      {[](int x) { return absl::StrCat(x / 1e3, " \xc2\xb1 0.5"); }, {}, "7.5 +/- 1", "7.5"},
      // Of India, of bookkeepers, of spreadsheets, and in digits of other scripts.
      {[](int x) { return absl::StrCat(x % 90 + 10, ",0", x % 9, ",000"); },
       {'.', ',', "", {}},
       "12,34,567.5",
       "1234567.5"},
      {[](int x) { return absl::StrCat(x, x % 3000 == 0 ? "-" : ""); }, {}, "7.5-", "-7.5"},
      {[](int x) { return absl::StrCat("'", x); }, {}, "'7", "7"},
      {[](int x) { return absl::StrCat("\xef\xbc\x91\xef\xbc\x90", x); },
       {},
       "\xef\xbc\x97\xef\xbc\x8e\xef\xbc\x95",
       "7.5"},
      {[](int x) { return absl::StrCat("\xd9\xa1", x); }, {}, "\xd9\xa7\xd9\xab\xdb\xb5", "7.5"},
      // Two names of a currency; durations, lengths and masses in several units.
      {[](int x) { return x % 2000 == 0 ? absl::StrCat("$", x) : absl::StrCat(x, " USD"); },
       {'.', 0, "$", {}},
       "US$7",
       "7"},
      {[](int x) { return absl::StrCat(x % 9, "h ", x % 60, "m"); }, {}, "2h30", "9000.0"},
      {[](int x) {
         return x % 2000 == 0 ? absl::StrCat(x % 60, " min") : absl::StrCat(x, " min ", 3, " sec");
       },
       {'.', 0, "s", {}},
       "1 day, 2 hours and 5 min",
       "93900.0"},
      {[](int x) { return absl::StrCat("PT", x % 60, "M", x % 50, ".5S"); },
       {},
       "P1DT1M",
       "86460.0"},
      {[](int x) { return x % 2000 == 0 ? absl::StrCat(x, " m") : absl::StrCat(x / 1e3, " km"); },
       {'.', 0, "m", {}},
       "3 km",
       "3000.0"},
      {[](int x) { return x % 2000 == 0 ? absl::StrCat(x, "g") : absl::StrCat(x / 1e3, "kg"); },
       {'.', 0, "g", {}},
       "1.5kg",
       "1500.0"},
      {[](int x) {
         return x % 2000 == 0 ? absl::StrCat(x) : absl::StrCat(x / 1e4, "\xe4\xb8\x87");
       },
       {},
       "1.2\xe4\xb8\x87",
       "12000.0"},
      // Whole numbers with fractions, which stand alone below 1; in the lengths and masses of
      // England.
      {[](int x) { return x % 9 == 0 ? "5/8" : absl::StrCat(x, " ", x % 7, "/8"); },
       {},
       "3/8",
       "0.375"},
      {[](int x) { return absl::StrCat(x, "\xc2\xbd"); }, {}, "10\xe2\x85\x9c", "10.375000"},
      {[](int x) { return absl::StrCat(x % 7, " ft ", x % 12, " in"); },
       {'.', 0, "m", {}},
       "5'11\"",
       "1.8034"},
      {[](int x) { return absl::StrCat(x / 100.0, x % 2000 == 0 ? " kg" : " lb"); },
       {'.', 0, "g", {}},
       "1 lb",
       "453.59237"},
      {[](int x) { return x % 2000 == 0 ? absl::StrCat(x, " ml") : absl::StrCat(x / 1e3, " l"); },
       {'.', 0, "l", {}},
       "33 cl",
       "0.33"},
      // Of one or several things; without cents; with its name; as Python prints it; in Hindi.
      {[](int x) { return x % 2000 == 0 ? "1 item" : absl::StrCat(x, " items"); },
       {'.', 0, "item", {}},
       "2 items",
       "2"},
      {[](int x) { return absl::StrCat("CHF ", x, x % 2000 == 0 ? ".50" : ".-"); },
       {'.', 0, "CHF", {}},
       "CHF 26.-",
       "26"},
      {[](int x) { return absl::StrCat("price: ", x, ".5"); },
       {'.', 0, "price:", {}},
       "price: 7",
       "7"},
      {[](int x) { return absl::StrCat("Decimal('", x, ".25')"); }, {}, "np.float64(7.5)", "7.5"},
      {[](int x) { return absl::StrCat("\xe0\xa5\xa7", x); },
       {},
       "\xe0\xa5\xad.\xe0\xa5\xab",
       "7.5"},
      {[](int x) { return absl::StrCat(x, "..", x + 9); },
       {},
       "3\xe2\x80\xa6"
       "5",
       "4.0"},
      {[](int x) { return absl::StrCat(x % 50 + 10, ":", x % 49 + 10, ".5"); },
       {},
       "1:23.5",
       "83.5"},
      {[](int x) { return absl::StrFormat("(%d.0, %d.0]", x - 500, x + 500); },
       {},
       "(-0.5, 20.5]",
       "10.0"},
      // All of one unit are in that unit.
      {[](int x) { return absl::StrCat(x, "k"); }, {'.', 0, "k", {}}, "5k", "5"}};
  for (const Case& one : cases) {
    const std::vector<std::string> texts = Written(one.write);
    const std::optional<NumberForm> form = FindNumberForm(texts);
    ASSERT_TRUE(form.has_value()) << texts[5];
    EXPECT_EQ(*form, one.form) << texts[5];
    EXPECT_EQ(Plain(one.text, *form), one.plain) << texts[5];
  }
}

TEST(NumberUnit, FamiliesAndCurrenciesHaveSeveralNames) {
  EXPECT_EQ(ScaleOf("m", Scale::kTime)->factor, 60);
  EXPECT_EQ(ScaleOf("m", Scale::kLength)->factor, 1);
  EXPECT_EQ(ScaleOf("m", Scale::kMass), nullptr);
  EXPECT_EQ(FamilyOf("g"), Scale::kMass);
  EXPECT_EQ(FamilyOf("kg"), Scale::kCount);
  EXPECT_TRUE(AreSameUnits("EUR", "\xe2\x82\xac"));
  EXPECT_FALSE(AreSameUnits("$", "EUR"));
  EXPECT_TRUE(MayStandBefore("usd"));
  EXPECT_FALSE(MayStandBefore("kg"));
}

TEST(NumberForm, PointsAreThousandsIfNoFractionIsWrittenSo) {
  const auto written = [](int x) {
    return x < 1000 ? absl::StrCat(x)
                    : absl::StrCat(x / 1000, ".", absl::StrCat(1000 + x % 1000).substr(1));
  };
  const auto group_of = [](const std::function<std::string(int)>& write) {
    const std::optional<NumberForm> form = FindNumberForm(Written(write));
    return form ? form->group : '?';
  };
  EXPECT_EQ(group_of([&](int x) { return written(x / 20); }),
            '.');  // 0, 51, ..., 1.040, ..., 5.131
  EXPECT_EQ(group_of([&](int x) { return written(x / 20) + " EUR"; }), '.');
  EXPECT_EQ(Plain("1.040", {',', '.', "", {}}), "1040");
  // Three digits in all rows; the shortest form; none below 1; a whole number as a code.
  EXPECT_EQ(group_of([&](int x) { return written(1000 + x / 20); }), 0);
  EXPECT_EQ(group_of([](int x) { return absl::StrCat(x / 20 / 1000.0); }), 0);
  EXPECT_EQ(group_of([&](int x) { return absl::StrCat("0.", 100 + x / 200); }), 0);
  EXPECT_EQ(group_of([&](int x) { return x % 3000 == 0 ? "0" : written(1000 + x / 20); }), 0);
}

TEST(NumberForm, CodesAndListsHaveNone) {
  const std::function<std::string(int)> writes[] = {
      [](int x) { return absl::StrCat("u", x); },
      [](int x) { return absl::StrCat(x / 1000, "-", x % 1000); },
      [](int x) { return absl::StrCat("10.0.", x % 250, ".", x % 200); },
      [](int x) { return absl::StrCat(x % 24, ":30"); },
      [](int x) { return absl::StrCat(101 + x % 800, ",", 101 + x % 700); },
      [](int x) { return absl::StrCat(101 + x % 800, " ", 101 + x % 700); },
      [](int x) { return absl::StrCat(x, x % 2000 == 0 ? " kg" : " USD"); },
      [](int x) { return absl::StrCat("0x", x); },
      [](int x) { return absl::StrCat(x % 24 + 10, ":", x % 49 + 10); },
      [](int x) { return absl::StrCat(x % 90, x % 3 == 0 ? "B" : ""); },
      [](int x) { return absl::StrCat("$", x, x % 2000 == 0 ? ".5k" : " lb"); },
      [](int x) { return absl::StrCat(x % 28 + 1, ".03.2024"); },
      [](int x) { return absl::StrCat("id: ", x); },
      [](int x) { return absl::StrCat(x % 7 + 1, " ft ", x % 12, x % 2000 == 0 ? " in" : " oz"); },
      // No ranges: telephones, months, days, scores, uuids, parts of a catalogue; no estimates:
      // states.
      [](int x) { return absl::StrCat(212 + x % 90, "-", 1000 + x * 7 % 9000); },
      [](int x) { return absl::StrCat(1990 + x % 35, "-", 10 + x % 3); },
      [](int x) { return absl::StrCat("0", 1 + x % 9, "-", 10 + x % 18); },
      [](int x) { return absl::StrCat(x * 7 % 5, "-", x * 3 % 8); },
      [](int x) { return absl::StrCat(x, "e", x % 7, "-4f-", x); },
      [](int x) { return absl::StrCat("iphone-", x % 90); },
      [](int x) { return absl::StrCat("CA ", 90000 + x % 900); },
      [](int x) { return absl::StrCat(x % 9 + 1, "/", x % 17 + 2); },
      [](int x) { return absl::StrCat(x, x % 2000 == 0 ? " m" : " kg"); },
      [](int x) { return absl::StrCat(x % 2000 == 0 ? "$" : "EUR ", x); }};
  for (const auto& write : writes) {
    const std::vector<std::string> texts = Written(write);
    EXPECT_FALSE(FindNumberForm(texts).has_value()) << texts[7];
  }
}

TEST(NumberForm, AFieldIsPlainMissingOrItself) {
  const NumberForm form{',', '.', "%", {"-", "k.A."}};
  std::string buffer;
  EXPECT_EQ(PlainField("1.234,5 %", form, &buffer), "1234.5");
  EXPECT_EQ(PlainField("k.A.", form, &buffer), "");
  EXPECT_EQ(PlainField("9.999 %", {',', '.', "%", {"9999"}}, &buffer), "");
  EXPECT_EQ(PlainField("12 \xe2\x82\xac", form, &buffer), "12 \xe2\x82\xac");
}

}  // namespace
}  // namespace cistern::data
