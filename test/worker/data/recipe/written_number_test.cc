#include "worker/data/recipe/written_number.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace cistern::data {
namespace {

// "sign|unit before|number|unit behind".
std::string PartsOf(absl::string_view text) {
  NumberParts parts;
  if (!SplitNumber(text, &parts)) return "none";
  return absl::StrCat(parts.negative ? "-" : "+", "|", parts.before, "|", parts.number, "|",
                      parts.behind);
}

TEST(SplitNumber, TakesATextApart) {
  EXPECT_EQ(PartsOf("-$1,234.5"), "-|$|1,234.5|");
  EXPECT_EQ(PartsOf("approx. 12 kg"), "+||12|kg");
  EXPECT_EQ(PartsOf("from $12.50 each"), "+|$|12.50|");
  EXPECT_EQ(PartsOf("12.50-"), "-||12.50|");
  EXPECT_EQ(PartsOf("kr 26,-"), "+|kr|26|");
  EXPECT_EQ(PartsOf("CHF 26.\xe2\x80\x93"), "+|CHF|26|");
  EXPECT_EQ(PartsOf("=12.5"), "+||12.5|");
  EXPECT_EQ(PartsOf("Decimal('12.5')"), "+||12.5|");
  EXPECT_EQ(PartsOf("26..31"), "none");
  EXPECT_EQ(PartsOf("a1b2"), "none");
}

TEST(SplitNumber, ReadsFractions) {
  EXPECT_EQ(PartsOf("10 3/8\""), "+||10.375000|\"");
  EXPECT_EQ(PartsOf("-10-3/8"), "-||10.375000|");
  EXPECT_EQ(PartsOf("$\xc2\xbd"), "+|$|0.500000|");
  EXPECT_EQ(PartsOf("3/8"), "+||3|/8");
  EXPECT_EQ(PartsOf("10 9/8"), "+||10 9|/8");
}

// Unicode's names of these digits: ... DIGIT SEVEN.
TEST(SplitNumber, ReadsDigitsOfOtherScripts) {
  for (const char* const seven :
       {"\xef\xbc\x97", "\xd9\xa7", "\xdb\xb7", "\xe0\xa5\xad", "\xe0\xa7\xad", "\xe0\xa9\xad",
        "\xe0\xab\xad", "\xe0\xaf\xad", "\xe0\xb1\xad", "\xe0\xb3\xad", "\xe0\xb5\xad",
        "\xe0\xb9\x97", "\xe0\xbb\x97", "\xe1\x81\x87", "\xe1\x9f\xa7"}) {
    EXPECT_EQ(PartsOf(seven), "+||7|") << seven;
  }
}

TEST(SplitRange, HasTwoEnds) {
  std::string low, high;
  for (const char* const text : {"3-5", "3 to 5", "3..5", "3 bis 5", "3 \xe2\x80\x93 5"}) {
    ASSERT_TRUE(SplitRange(text, &low, &high)) << text;
    EXPECT_EQ(low, "3");
    EXPECT_EQ(high, "5");
  }
  ASSERT_TRUE(SplitRange("(-0.5, 20.0]", &low, &high));
  EXPECT_EQ(low, "-0.5");
  EXPECT_EQ(high, "20.0");
  ASSERT_TRUE(SplitRange("[60, inf)", &low, &high));
  EXPECT_EQ(high, "60");
  EXPECT_FALSE(SplitRange("[20, 30]", &low, &high));
  EXPECT_FALSE(SplitRange("05-17", &low, &high));
  EXPECT_FALSE(SplitRange("3", &low, &high));
}

}  // namespace
}  // namespace cistern::data
