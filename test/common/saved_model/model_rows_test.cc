#include "common/saved_model/model_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cistern {
namespace {

using ::testing::ElementsAre;

v1::SaveFormat Format(v1::SaveFormat::Kind kind, bool six_digits = false) {
  v1::SaveFormat format;
  format.set_kind(kind);
  format.set_six_digits(six_digits);
  return format;
}

v1::DenseTableSpec Dense(v1::DenseRule::Kind kind, const std::vector<std::string>& columns) {
  v1::DenseTableSpec spec;
  spec.set_name("mlp");
  spec.mutable_rule()->set_kind(kind);
  for (const std::string& column : columns) spec.add_columns(column);
  return spec;
}

ValueLayout Layout(uint32_t dim) {
  v1::TableSpec spec;
  spec.set_name("deep");
  spec.set_dim(dim);
  return ValueLayout::Create(spec).value();
}

// Strips the newline from a line; leaves a record unchanged.
std::string RowOf(const v1::SaveFormat& format, std::string bytes) {
  if (format.kind() == v1::SaveFormat::TEXT) bytes.pop_back();
  return bytes;
}

TEST(ModelRows, EachFormatReadsItsOwnRows) {
  const float value[] = {0.1f, -7};
  for (const auto kind : {v1::SaveFormat::TEXT, v1::SaveFormat::BINARY}) {
    std::string bytes;
    AppendRow(Format(kind), Layout(2), 12, value, true, &bytes);
    Key key = 0;
    bool has_embedx = false;
    float read[2];
    ASSERT_TRUE(
        ParserOf(kind, Layout(2))(RowOf(Format(kind), bytes), &key, read, &has_embedx).ok());
    EXPECT_EQ(key, 12u);
    EXPECT_TRUE(has_embedx);
    EXPECT_THAT(read, ElementsAre(0.1f, -7));
  }
}

TEST(ModelRows, UpgradingParsersConvert) {
  const float value[] = {0.1f, -7};
  for (const auto kind : {v1::SaveFormat::TEXT, v1::SaveFormat::BINARY}) {
    std::string bytes;
    AppendRow(Format(kind), Layout(2), 12, value, true, &bytes);
    Key key = 0;
    bool has_embedx = false;
    float read[3];
    const RowParser parser = UpgradingParser(kind, Layout(2), Layout(3)).value();
    ASSERT_TRUE(parser(RowOf(Format(kind), bytes), &key, read, &has_embedx).ok());
    EXPECT_THAT(read, ElementsAre(0.1f, -7, 0));
  }
}

TEST(ModelRows, AverageOfD2SumIsConstantInText) {
  const v1::DenseTableSpec table =
      Dense(v1::DenseRule::ADAM_D2SUM, {"w", "avg_w", "ada_d2sum", "ada_g2sum", "mom_velocity"});
  std::string text, binary;
  AppendDenseRow(Format(v1::SaveFormat::TEXT), table, 4, {1, 2, 3, 4, 5}, &text);
  AppendDenseRow(Format(v1::SaveFormat::BINARY), table, 4, {1, 2, 3, 4, 5}, &binary);
  EXPECT_EQ(text, "1 0 3 4 5\n");
  std::vector<float> values;
  ASSERT_TRUE(DenseParserOf(v1::SaveFormat::TEXT, table)("1 9 3 4 5", 4, &values).ok());
  EXPECT_THAT(values, ElementsAre(1, 0, 3, 4, 5));
  values.clear();
  ASSERT_TRUE(DenseParserOf(v1::SaveFormat::BINARY, table)(binary, 4, &values).ok());
  EXPECT_THAT(values, ElementsAre(1, 2, 3, 4, 5));
}

TEST(ModelRows, DenseColumnsAreKeptByName) {
  const DenseRowParser parser =
      UpgradingDenseParser(v1::SaveFormat::TEXT, Dense(v1::DenseRule::NONE, {"w", "m", "v"}),
                           Dense(v1::DenseRule::NONE, {"v", "x", "w"}));
  std::vector<float> values;
  ASSERT_TRUE(parser("1 2 3", 0, &values).ok());
  ASSERT_TRUE(parser("4 5 6", 1, &values).ok());
  EXPECT_THAT(values, ElementsAre(3, 0, 1, 6, 0, 4));
}

TEST(ModelRows, SixDigitsRequireText) {
  EXPECT_TRUE(CheckFormat(Format(v1::SaveFormat::TEXT, true)).ok());
  EXPECT_TRUE(CheckFormat(Format(v1::SaveFormat::BINARY)).ok());
  EXPECT_EQ(CheckFormat(Format(v1::SaveFormat::BINARY, true)).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckFormat(Format(static_cast<v1::SaveFormat::Kind>(5))).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace cistern
