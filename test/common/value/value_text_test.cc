// The text form of rows: golden lines, the round trip, and refusals.
#include "common/value/value_text.h"
#include "common/value/accessor/ctr_accessor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <sstream>

namespace cistern {
namespace {

using ::testing::HasSubstr;

ValueLayout CtrLayout(uint32_t dim, v1::UpdateRule::Kind kind) {
  v1::TableSpec spec;
  spec.set_name("ctr");
  spec.set_accessor(v1::TableSpec::CTR);
  spec.set_dim(dim);
  spec.mutable_rule()->set_kind(kind);
  spec.mutable_rule()->set_beta1(0.9f);
  spec.mutable_rule()->set_beta2(0.999f);
  spec.mutable_rule()->set_epsilon(1e-7f);
  spec.mutable_rule()->set_initial_g2sum(3.0f);
  spec.mutable_ctr()->set_embedx_threshold(10.0f);
  return ValueLayout::Create(spec).value();
}

ValueLayout EmbeddingLayout(uint32_t dim) {
  v1::TableSpec spec;
  spec.set_name("deep");
  spec.set_dim(dim);
  spec.mutable_rule()->set_kind(v1::UpdateRule::ADAGRAD);
  spec.mutable_rule()->set_epsilon(1e-7f);
  return ValueLayout::Create(spec).value();
}

// The value of spec/003 section 3.2, built with literal indices, not through ValueLayout.
std::vector<float> SpecValue() {
  std::vector<float> value(12 + 2);
  value[0] = 3;                              // unseen_days
  value[1] = 0.25f;                          // delta_score
  const double show = 12.1, click = 1e-300;  // doubles that no float can represent
  std::memcpy(&value[2], &show, 8);
  std::memcpy(&value[4], &click, 8);
  value[6] = -0.1f;   // embed_w
  value[7] = 1e-45f;  // embed_g2sum, the smallest subnormal
  value[8] = 101;     // slot
  const uint64_t uid = 18446744073709551615ull;
  std::memcpy(&value[9], &uid, 8);
  value[11] = 0.5f;           // embedx_g2sum
  value[12] = 3.4028235e38f;  // embedx_w
  value[13] = -0.0f;
  return value;
}

// Golden: these bytes are the file format.
TEST(ValueText, CtrLineMatchesTheFormat) {
  const ValueLayout layout = CtrLayout(2, v1::UpdateRule::ADAGRAD_SHARED);
  std::string text;
  AppendValueLine(layout, 9223372036854775809ull, SpecValue().data(), true, &text);
  AppendValueLine(layout, 0, SpecValue().data(), false, &text);
  EXPECT_EQ(text,
            "9223372036854775809 18446744073709551615 3 0.25 12.1 1e-300 -0.1 1e-45 101 0.5 "
            "3.4028235e+38 -0\n"
            "0 18446744073709551615 3 0.25 12.1 1e-300 -0.1 1e-45 101\n");
}

TEST(ValueText, EmbeddingLineMatchesTheFormat) {
  const float value[] = {0.1f, -1.0f, 16777216.0f, 1.0f / 3};
  std::string text;
  AppendValueLine(EmbeddingLayout(2), 7, value, true, &text);
  EXPECT_EQ(text, "7 0.1 -1 16777216 0.33333334\n");
}

TEST(ValueText, DenseLineMatchesTheFormat) {
  std::string text;
  AppendDenseLine({1.0f, 0.001f, 1e10f}, &text);
  AppendDenseLine({-2.5f}, &text);
  EXPECT_EQ(text, "1 0.001 1e+10\n-2.5\n");
}

// Expected values: std::ostream << of the same floats.
TEST(ValueText, SixDigitsMatchAnOutputStream) {
  std::vector<float> value = SpecValue();
  StoreDouble(&value[2], 1234567.8);
  value[6] = 0.123456789f;
  value[7] = 1e-5f / 3;
  value[12] = 100000.0f;
  value[13] = 1e6f;
  std::ostringstream stream;
  stream << uint64_t{7} << ' ' << uint64_t{18446744073709551615ull};
  for (const float x : {3.0f, 0.25f, static_cast<float>(1234567.8), static_cast<float>(1e-300),
                        value[6], value[7], 101.0f, 0.5f, value[12], value[13]}) {
    stream << ' ' << x;
  }
  std::string text;
  AppendValueLine(CtrLayout(2, v1::UpdateRule::ADAGRAD_SHARED), 7, value.data(), true, &text,
                  Digits::kSix);
  EXPECT_EQ(text, stream.str() + "\n");
  EXPECT_THAT(text, HasSubstr(" 1.23457e+06 0 0.123457 3.33333e-06 101 0.5 100000 1e+06"));
  text.clear();
  AppendDenseLine({1.0f / 3, 2}, &text, Digits::kSix);
  EXPECT_EQ(text, "0.333333 2\n");
}

TEST(ValueText, OptionalFieldsMayBeMissing) {
  const ValueLayout layout = CtrLayout(2, v1::UpdateRule::ADAGRAD_SHARED);
  std::vector<float> value(layout.full_floats());
  Key key = 0;
  bool has_embedx = false;
  ASSERT_TRUE(
      ParseValueLine(layout, "7 1 2 3 4 5 6", &key, value.data(), &has_embedx, {false, false})
          .ok());
  EXPECT_EQ(value[8], -1);
  EXPECT_EQ(LoadU64(&value[9]), 0u);
  EXPECT_FALSE(has_embedx);
  const absl::Status status =
      ParseValueLine(layout, "7 1 2 3 4 5 6 x", &key, value.data(), &has_embedx, {false, true});
  EXPECT_THAT(std::string(status.message()), HasSubstr("field 8 (slot) 'x'"));
  EXPECT_EQ(CountFields("  7\t1 2  3 "), 4u);
  EXPECT_EQ(CountFields(" "), 0u);
}

// Random bit patterns cover subnormals, both zeros and every exponent.
float AnyFiniteFloat(std::mt19937_64& random) {
  while (true) {
    const uint32_t bits = static_cast<uint32_t>(random());
    float x;
    std::memcpy(&x, &bits, sizeof(x));
    if (std::isfinite(x)) return x;
  }
}

TEST(ValueText, ReadsBackTheSameBits) {
  std::mt19937_64 random(17);
  for (const v1::UpdateRule::Kind kind :
       {v1::UpdateRule::SGD, v1::UpdateRule::ADAGRAD_SHARED, v1::UpdateRule::ADAM}) {
    const ValueLayout layout = CtrLayout(5, kind);
    for (int row = 0; row < 2000; ++row) {
      const bool has_embedx = row % 2 == 1;
      std::vector<float> value(layout.full_floats()), read(layout.full_floats(), 99.0f);
      for (uint32_t i = 0; i < layout.floats(has_embedx); ++i) value[i] = AnyFiniteFloat(random);
      for (uint32_t i : {CtrCells::kShow, CtrCells::kClick}) {
        if (!std::isfinite(LoadDouble(&value[i]))) StoreDouble(&value[i], 1.0 / 3);
      }
      const Key key = random();
      std::string line;
      AppendValueLine(layout, key, value.data(), has_embedx, &line);
      ASSERT_EQ(line.back(), '\n');
      line.pop_back();
      Key read_key = 0;
      bool read_has_embedx = !has_embedx;
      const absl::Status status =
          ParseValueLine(layout, line, &read_key, read.data(), &read_has_embedx);
      ASSERT_TRUE(status.ok()) << status << "\n" << line;
      EXPECT_EQ(read_key, key);
      EXPECT_EQ(read_has_embedx, has_embedx);
      ASSERT_EQ(std::memcmp(read.data(), value.data(), value.size() * sizeof(float)), 0) << line;
    }
  }
}

TEST(ValueText, AcceptsAnyRunOfBlanks) {
  float value[4];
  Key key = 0;
  bool has_embedx = false;
  ASSERT_TRUE(
      ParseValueLine(EmbeddingLayout(2), "  7\t0.5   1e0 2 \t 3  ", &key, value, &has_embedx).ok());
  EXPECT_EQ(key, 7u);
  EXPECT_TRUE(has_embedx);
  EXPECT_THAT(value, ::testing::ElementsAre(0.5f, 1.0f, 2.0f, 3.0f));
}

TEST(ValueText, UnderflowReadsAsTheNearestFloat) {
  float value[4];
  Key key = 0;
  bool has_embedx = false;
  ASSERT_TRUE(
      ParseValueLine(EmbeddingLayout(2), "7 1e-60 -1e-60 1e-44 0", &key, value, &has_embedx).ok());
  EXPECT_THAT(value, ::testing::ElementsAre(0.0f, -0.0f, 1e-44f, 0.0f));
}

absl::Status ParseCtr(const std::string& line) {
  const ValueLayout layout = CtrLayout(2, v1::UpdateRule::ADAGRAD_SHARED);
  std::vector<float> value(layout.full_floats());
  Key key = 0;
  bool has_embedx = false;
  return ParseValueLine(layout, line, &key, value.data(), &has_embedx);
}

TEST(ValueText, RefusesNamingTheField) {
  ASSERT_TRUE(ParseCtr("1 2 3 4 5 6 7 8 9").ok());
  ASSERT_TRUE(ParseCtr("1 2 3 4 5 6 7 8 9 10 11 12").ok());
  const struct {
    const char* line;
    const char* message;
  } cases[] = {
      {"", "field 1 (key) is missing"},
      {"-1 2 3 4 5 6 7 8 9", "field 1 (key) '-1' is not a whole number"},
      {"18446744073709551616 2 3 4 5 6 7 8 9", "field 1 (key) '18446744073709551616' is not"},
      {"1 2.5 3 4 5 6 7 8 9", "field 2 (uid) '2.5' is not a whole number"},
      {"1 2 x 4 5 6 7 8 9", "field 3 (unseen_days) 'x' is not a number"},
      {"1 2 3 4 5 6 7x 8 9", "field 7 (embed_w) '7x' is not a number"},
      {"1 2 3 4 5 nan 7 8 9", "field 6 (click) 'nan' is not a finite number"},
      {"1 2 3 4 -inf 6 7 8 9", "field 5 (show) '-inf' is not a finite number"},
      {"1 2 3 4 5 6 1e39 8 9", "field 7 (embed_w) '1e39' is not a finite number"},
      {"1 2 3 4 5 1e309 7 8 9", "field 6 (click) '1e309' is not a finite number"},
      {"1 2 3 4 5 6 7 8", "field 9 (slot) is missing"},
      {"1 2 3 4 5 6 7 8 9 10", "field 11 (embedx_w[0]) is missing"},
      {"1 2 3 4 5 6 7 8 9 10 11", "field 12 (embedx_w[1]) is missing"},
      {"1 2 3 4 5 6 7 8 9 10 11 12 13", "more fields than the expected 12"},
      {"1,2,3,4,5,6,7,8,9", "field 1 (key) '1,2,3,4,5,6,7,8,9' is not"},
  };
  for (const auto& c : cases) {
    const absl::Status status = ParseCtr(c.line);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << c.line;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

TEST(ValueText, ShowMayExceedTheRangeOfAFloat) {
  EXPECT_TRUE(ParseCtr("1 2 3 4 1e300 6 7 8 9").ok());
}

TEST(ValueText, DenseLineIsAppendedCompletelyOrNotAtAll) {
  std::vector<float> values = {9};
  ASSERT_TRUE(ParseDenseLine("1 2.5", 2, &values).ok());
  EXPECT_THAT(values, ::testing::ElementsAre(9, 1, 2.5f));
  for (const char* line : {"1", "1 2 3", "1 x", ""}) {
    EXPECT_EQ(ParseDenseLine(line, 2, &values).code(), absl::StatusCode::kDataLoss) << line;
    EXPECT_EQ(values.size(), 3u) << line;
  }
}

}  // namespace
}  // namespace cistern
