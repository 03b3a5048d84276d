// Compares the results with std::to_chars and std::from_chars, which are independent
// implementations.
#include "common/base/float_text.h"

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/base/float_reading.h"

namespace cistern {
namespace {

std::string Written(float x) {
  char text[kFloatTextBytes];
  return std::string(text, WriteFloat(x, text));
}

std::string Expected(float x) {
  char text[64];
  return std::string(text, std::to_chars(text, text + sizeof(text), x).ptr);
}

// Parses a number into *x; returns the offset of its end, or -1.
std::ptrdiff_t Read(const std::string& text, float* x) {
  const char* const end = ReadFloat(text.data(), text.data() + text.size(), x);
  return end == nullptr ? -1 : end - text.data();
}

// Checks writing and reading of x: reading back must return the same bits.
void Check(float x) {
  const std::string text = Written(x);
  ASSERT_EQ(text, Expected(x)) << std::bit_cast<uint32_t>(x);
  float back = 0;
  if (Read(text, &back) < 0) return;
  ASSERT_EQ(std::bit_cast<uint32_t>(back), std::bit_cast<uint32_t>(x)) << text;
}

TEST(FloatText, EveryExponentIsWrittenAsTheStandardLibraryDoes) {
  for (uint32_t exponent = 0; exponent < 255; ++exponent) {
    for (const uint32_t sign : {0u, 1u}) {
      const uint32_t base = sign << 31 | exponent << 23;
      for (uint32_t i = 0; i < 300; ++i) {
        Check(std::bit_cast<float>(base + i));
        Check(std::bit_cast<float>(base + 0x7FFFFF - i));
      }
      for (uint32_t bit = 0; bit < 23; ++bit) Check(std::bit_cast<float>(base | 1u << bit));
    }
  }
}

TEST(FloatText, SampleOfAllFloatsIsWrittenAsTheStandardLibraryDoes) {
  for (uint64_t bits = 5; bits < uint64_t{1} << 32; bits += 9973) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (std::isfinite(x)) Check(x);
  }
}

TEST(FloatText, WholeNumbersAndShortDecimalsAreWrittenAsTheStandardLibraryDoes) {
  for (int i = -100000; i <= 100000; ++i) {
    Check(static_cast<float>(i));
    Check(static_cast<float>(i) * 1e-3f);
    Check(static_cast<float>(i) * 1e5f);
    Check(static_cast<float>(i) * 1e-9f);
  }
}

TEST(FloatText, NonFiniteNumbersAreWrittenToo) {
  for (const float x :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_EQ(Written(x), Expected(x));
  }
}

TEST(FloatText, WriteFloatsEqualsWriteFloatForEachNumber) {
  uint64_t state = 7;
  for (size_t num = 0; num < 70; ++num) {
    for (int round = 0; round < 200; ++round) {
      std::vector<float> x(num);
      std::string expected;
      for (float& number : x) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const auto bits = static_cast<uint32_t>(state >> 32);
        // Numbers of all kinds, mixed with zeros and whole numbers.
        number = bits % 7 == 0   ? 0.0f
                 : bits % 7 == 1 ? static_cast<float>(bits >> 20)
                                 : std::bit_cast<float>(bits);
        expected += ' ';
        expected += Expected(number);
      }
      std::string text(num * (1 + kFloatTextBytes), '#');
      const char* const end = WriteFloats(x.data(), num, text.data());
      text.resize(static_cast<size_t>(end - text.data()));
      ASSERT_EQ(text, expected);
    }
  }
}

// For any plausible number of digits, the result is the nearest float or null.
TEST(FloatText, ReadsTheNearestFloat) {
  uint64_t state = 1;
  size_t answered = 0;
  constexpr int kTries = 200000;
  for (int i = 0; i < kTries; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t digits = (state >> 8) % (i % 3 == 0 ? 100000 : 1000000000000);
    const int exponent = static_cast<int>(state >> 56) % 30 - 20;
    const std::string text = std::to_string(digits) + "e" + std::to_string(exponent);
    float ours = 0, theirs = 0;
    std::from_chars(text.data(), text.data() + text.size(), theirs);
    if (Read(text, &ours) < 0) continue;
    ++answered;
    ASSERT_EQ(std::bit_cast<uint32_t>(ours), std::bit_cast<uint32_t>(theirs)) << text;
  }
  EXPECT_GT(answered, kTries * 9 / 10);
}

// The reader loads words of eight characters. The characters after a number and the distance to the
// end of the text must not matter.
TEST(FloatText, ReadsFractionsOfEveryLengthAtEveryDistanceFromTheEnd) {
  constexpr size_t kLongest = 18, kMost = 16;  // characters: longer numbers may give null
  const std::string digits = "314159265358979323", behind = " 0.27182818284590452";
  for (const char* before : {"0.", "-0.", "2.", "-7.", "0.000", "12."}) {
    for (size_t length = 0; length <= kLongest; ++length) {
      for (size_t rest = 0; rest <= behind.size(); ++rest) {
        const std::string number = before + digits.substr(0, length);
        const std::string text = number + behind.substr(0, rest);
        float ours = 0, theirs = 0;
        std::from_chars(number.data(), number.data() + number.size(), theirs);
        const std::ptrdiff_t end = Read(text, &ours);
        if (end < 0) {
          EXPECT_TRUE(number.size() > kMost || length == 0) << text;
          continue;
        }
        ASSERT_EQ(end, static_cast<std::ptrdiff_t>(number.size())) << text;
        ASSERT_EQ(std::bit_cast<uint32_t>(ours), std::bit_cast<uint32_t>(theirs)) << text;
      }
    }
  }
}

// The midpoint between two floats rounds to the even one; a number just above it rounds up.
TEST(FloatText, MidpointsAreLeftToTheSlowerReader) {
  float x = 7;
  EXPECT_EQ(Read("16777217", &x), -1);
  EXPECT_EQ(Read("33554434.0", &x), -1);
  EXPECT_EQ(x, 7);
}

TEST(FloatText, ReadStopsAtTheEndOfTheNumber) {
  float x = 0;
  EXPECT_EQ(Read("0.25 1", &x), 4);
  EXPECT_EQ(x, 0.25f);
  EXPECT_EQ(Read("-12345678901.5x", &x), 14);
  EXPECT_EQ(x, -12345678901.5f);
  EXPECT_EQ(Read("1e-05\t", &x), 5);
  EXPECT_EQ(x, 1e-5f);
  EXPECT_EQ(Read("-0", &x), 2);
  EXPECT_TRUE(std::signbit(x));
  EXPECT_EQ(Read("5.", &x), 2);
  EXPECT_EQ(Read(".5", &x), 2);
}

TEST(FloatText, ReadFloatsStopsAtTheFirstNumberThatIsNotOrdinary) {
  struct Case {
    const char* text;
    size_t read;
    std::ptrdiff_t end;
  };
  for (const Case& c : {Case{"0.5 -1.25 3", 3, 11}, Case{"0.5 -1.25 3 4", 3, 12},
                        Case{"0.5 -1.25", 2, 9}, Case{"0.5 -1.25 ", 2, 10}, Case{"", 0, 0},
                        Case{"0.5  -1.25 3", 1, 4}, Case{"0.5 x 3", 1, 4}, Case{"0.5 1x 3", 1, 4},
                        Case{"0.5\t1 3", 0, 0}, Case{"nan 1 2", 0, 0}}) {
    const std::string text = c.text;
    const char* at = text.data();
    float read[3] = {};
    EXPECT_EQ(ReadFloats(&at, text.data() + text.size(), read, 3), c.read) << text;
    EXPECT_EQ(at - text.data(), c.end) << text;
    const float expected[] = {0.5f, -1.25f, 3.0f};
    for (size_t i = 0; i < c.read; ++i) EXPECT_EQ(read[i], expected[i]) << text;
  }
}

TEST(FloatText, ReadReturnsNullForOtherText) {
  for (const char* text : {"", "-", ".", "-.", "e5", "x", "nan", "inf", "+1", " 1", "--1", "1e",
                           "1e+", "1e-", "1e999", "123456789012345678901", "1e-46", "1e39"}) {
    float x = 7;
    EXPECT_EQ(Read(text, &x), -1) << text;
    EXPECT_EQ(x, 7) << text;
  }
}

}  // namespace
}  // namespace cistern
