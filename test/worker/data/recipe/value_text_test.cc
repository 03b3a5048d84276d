#include "worker/data/recipe/value_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "worker/data/recipe/field_values.h"
#include "worker/data/recipe/recipe.h"
#include "worker/data/recipe/weight_text.h"

namespace cistern::data {
namespace {

using testing::ElementsAre;

NumberKind KindOf(absl::string_view text) {
  double value = 0;
  return ReadNumber(text, &value);
}

TEST(ValueText, ReadsDecimalNumbersOnly) {
  double value = 0;
  ASSERT_EQ(ReadNumber(" +1.5e3 ", &value), NumberKind::kFinite);
  EXPECT_EQ(value, 1500);
  for (const char* const text : {"inf", "-Infinity", "1e400", "INF"}) {
    EXPECT_EQ(KindOf(text), NumberKind::kInfinite) << text;
  }
  for (const char* const text : {"nan", "NaN", "-nan"}) {
    EXPECT_EQ(KindOf(text), NumberKind::kNan) << text;
  }
  for (const char* const text : {"", " ", "0x1f", "1,5", "1 2", "e5", "5%"}) {
    EXPECT_EQ(KindOf(text), NumberKind::kNone) << text;
  }
}

TEST(ValueText, AnIntegerHasOneWayToWriteIt) {
  const std::pair<const char*, const char*> cases[] = {
      {"1047", "1047"},
      {"1047.0", "1047"},
      {"1047.", "1047"},
      {"+5", "5"},
      {"-5.00", "-5"},
      {"-0.0", "0"},
      {"00123", "00123"},
      {"1e+15", "1000000000000000"},
      {"1.0000000000000037e+16", "10000000000000037"},
      {"1500e-2", "15"},
      {"0.15e3", "150"},
      {"1189850876250608320059", "1189850876250608320059"}};
  for (const auto& [text, expected] : cases) {
    std::string digits;
    EXPECT_TRUE(IsInteger(text)) << text;
    ASSERT_TRUE(IntegerDigits(text, &digits)) << text;
    EXPECT_EQ(digits, expected) << text;
  }
  std::string digits;
  for (const char* const text :
       {"", "1.5", "15e-1", "1e", "0x10", "abc", "-", ".", "1e99999", "1_0"}) {
    EXPECT_FALSE(IsInteger(text)) << text;
    EXPECT_FALSE(IntegerDigits(text, &digits)) << text;
  }
}

TEST(ValueText, DigitsAroundAnEAreACode) {
  size_t digits = 0;
  EXPECT_TRUE(IsExponentCode("1e2", &digits));
  EXPECT_EQ(digits, 1u);
  EXPECT_TRUE(IsExponentCode(" 047E12 ", &digits));
  EXPECT_EQ(digits, 3u);
  for (const char* const text : {"", "12", "e2", "1e", "1.0e2", "1e+2", "1e-2", "-1e2", "1e2e3"}) {
    EXPECT_FALSE(IsExponentCode(text, &digits)) << text;
  }
}

TEST(ValueText, TruthIsOneAndZeroAmongIntegers) {
  std::string digits;
  ASSERT_TRUE(IntegerCode("TRUE", &digits));
  EXPECT_EQ(digits, "1");
  ASSERT_TRUE(IntegerCode("false", &digits));
  EXPECT_EQ(digits, "0");
  ASSERT_TRUE(IntegerCode("1.0", &digits));
  EXPECT_EQ(digits, "1");
  EXPECT_FALSE(IntegerCode("yes", &digits));
}

TEST(ValueText, AnIntegerIsOneCodeHoweverItsThousandsAreWritten) {
  std::string digits;
  for (const char* const text :
       {"1047", "1,047", "1'047", " 1,047 ", "1,047.0", "+1047", "1.047e3"}) {
    ASSERT_TRUE(IntegerCode(text, &digits)) << text;
    EXPECT_EQ(digits, "1047") << text;
  }
  ASSERT_TRUE(IntegerCode("-12,345,678", &digits));
  EXPECT_EQ(digits, "-12345678");
  for (const char* const text : {"1,04", "1,0477", "0,047", "1,047,12", "1,047'123", ",047",
                                 "1047,000", "1,047.5", "1,,047", "101 205"}) {
    EXPECT_FALSE(IntegerCode(text, &digits)) << text;
  }
}

TEST(ValueText, MissingTextsAreSortedAndFound) {
  EXPECT_TRUE(std::is_sorted(UsualMissingTexts().begin(), UsualMissingTexts().end()));
  for (const char* const text :
       {"", "  ", "\t", "NULL", "nan", "\\N", "<NA>", "None", "N/A", "?"}) {
    EXPECT_TRUE(IsUsuallyMissing(text)) << text;
  }
  for (const char* const text : {"0", "none of these", "Nan Goldin", "-"}) {
    EXPECT_FALSE(IsUsuallyMissing(text)) << text;
  }
}

TEST(ValueText, LabelsOfOneMeaningAreEqual) {
  for (const char* const text : {"1", "1.0", " 1 ", "+1", "01", "b'1'", "\"1\"", "=\"1\"", "'1.0'",
                                 "true", "YES", "T", "y"}) {
    EXPECT_EQ(TruthMeaning(text), "1") << text;
  }
  for (const char* const text : {"0", "-0.0", "False", "no", "N"}) {
    EXPECT_EQ(TruthMeaning(text), "0") << text;
  }
  EXPECT_EQ(LabelMeaning("Yes"), "yes");
  EXPECT_EQ(LabelMeaning("Yes."), "yes");
  EXPECT_EQ(LabelMeaning("."), ".");
  EXPECT_NE(LabelMeaning("0.1"), LabelMeaning("0.10000000001"));
  EXPECT_EQ(TruthMeaning(">50K"), ">50k");
  EXPECT_EQ(TruthOf({"yes", "Yes", "1"}), '1');
  EXPECT_EQ(TruthOf({"yes", "no"}), 0);
  EXPECT_EQ(TruthOf({"2"}), 0);
}

std::vector<std::string> ValuesOf(absl::string_view field, const Recipe::Source& source) {
  std::vector<std::string> values;
  EXPECT_TRUE(ForEachValue(field, source, [&](absl::string_view value) {
                values.emplace_back(value);
                return absl::OkStatus();
              }).ok());
  return values;
}

TEST(FieldValues, ReadsTheListsOfOtherPrograms) {
  Recipe::Source bars{"tags", false, '|'};
  EXPECT_THAT(ValuesOf("a|b", bars), ElementsAre("a", "b"));
  EXPECT_THAT(ValuesOf("[a", bars), ElementsAre("[a"));
  Recipe::Source commas{"tags", false, ','};
  commas.list = true;
  EXPECT_THAT(ValuesOf("[27, 9]", commas), ElementsAre("27", "9"));
  EXPECT_THAT(ValuesOf("['a, b', \"c\"]", commas), ElementsAre("a, b", "c"));
  EXPECT_THAT(ValuesOf("{x,y}", commas), ElementsAre("x", "y"));
  EXPECT_THAT(ValuesOf("(27,)", commas), ElementsAre("27"));
  EXPECT_THAT(ValuesOf("[]", commas), ElementsAre());
  EXPECT_THAT(ValuesOf("rock'n'roll, pop", commas), ElementsAre("rock'n'roll", "pop"));
  Recipe::Source spaces{"tags", false, ' '};
  spaces.list = true;
  EXPECT_THAT(ValuesOf("[27  9\n 3]", spaces), ElementsAre("27", "", "9", "", "3"));
  EXPECT_THAT(ValuesOf("(30,[22,11],[0.5,2.0])", commas), ElementsAre("22", "11"));
  EXPECT_THAT(ValuesOf("(30,[],[])", commas), ElementsAre());
  commas.weights = true;
  EXPECT_THAT(ValuesOf("defaultdict(<class 'float'>, {'a': 0.5, 'b': 2})", commas),
              ElementsAre("a", "b"));
  EXPECT_THAT(ValuesOf("<c++><go>", {"tags", false, '>'}), ElementsAre("c++", "go"));
  EXPECT_THAT(ValuesOf("[a] [b]", {"tags", false, ']'}), ElementsAre("a", "b"));
  EXPECT_THAT(ValuesOf("a>b", {"tags", false, '>'}), ElementsAre("a", "b"));
  Recipe::Source weights{"tags", false, '|'};
  weights.weights = true;
  EXPECT_THAT(ValuesOf("a:0.5|b:0.3|c:0", weights), ElementsAre("a", "b"));
  EXPECT_THAT(ValuesOf("a=0.5|b(0.3)|c=0|d=x|e(f)", weights), ElementsAre("a", "b", "d=x", "e(f)"));
}

TEST(PlainSpaces, AreThoseOfTypography) {
  EXPECT_EQ(WithPlainSpaces("\xc2\xa0 1\xe2\x80\xaf"
                            "047\xe2\x80\x89km\xe2\x80\x8b\n"),
            "1 047 km");
  EXPECT_EQ(WithPlainSpaces("\xef\xbb\xbfx"), "x");
  EXPECT_EQ(WithPlainSpaces("caf\xc3\xa9"), "caf\xc3\xa9");
}

TEST(WeightText, IsANumberFromZeroOn) {
  const std::pair<const char*, float> good[] = {
      {"0", 0}, {"-0", 0}, {"2.5", 2.5f}, {"1e-3", 1e-3f}, {"1e9", 1e9f}};
  for (const auto& [text, weight] : good) EXPECT_EQ(ReadWeight(text).value_or(-1), weight) << text;
  for (const char* text : {"-1e-9", "1.1e9", "inf", "nan"}) {
    EXPECT_EQ(ReadWeight(text).status().code(), absl::StatusCode::kOutOfRange) << text;
  }
  for (const char* text : {"heavy", "", "1,5"}) {
    EXPECT_EQ(ReadWeight(text).status().code(), absl::StatusCode::kDataLoss) << text;
  }
}

}  // namespace
}  // namespace cistern::data
