// The binary form of rows: golden bytes, the round trip, and refusals.
#include "common/value/value_binary.h"
#include "common/value/accessor/ctr_accessor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>

#include "absl/strings/escaping.h"
#include "common/value/value_text.h"

namespace cistern {
namespace {

using ::testing::HasSubstr;

ValueLayout Layout(v1::TableSpec::Accessor accessor, uint32_t dim,
                   v1::UpdateRule::Kind kind = v1::UpdateRule::ADAGRAD_SHARED) {
  v1::TableSpec spec;
  spec.set_name("deep");
  spec.set_accessor(accessor);
  spec.set_dim(dim);
  spec.mutable_rule()->set_kind(kind);
  spec.mutable_rule()->set_initial_g2sum(3.0f);
  spec.mutable_ctr()->set_embedx_threshold(10.0f);
  return ValueLayout::Create(spec).value();
}

std::string Hex(const std::string& bytes) {
  return absl::BytesToHexString(bytes);
}

TEST(ValueBinary, EmbeddingRecordMatchesTheFormat) {
  const float value[] = {1.0f, -2.5f};
  std::string record;
  AppendValueRecord(Layout(v1::TableSpec::EMBEDDING, 2, v1::UpdateRule::SGD), 0x1122334455667788,
                    value, true, &record);
  EXPECT_EQ(Hex(record),
            "14000000"          // 4 + 8 + 2 * 4 bytes
            "8877665544332211"  // key
            "0000803f000020c0");
}

TEST(ValueBinary, CtrRecordEndsBeforeAnAbsentEmbedx) {
  const ValueLayout layout = Layout(v1::TableSpec::CTR, 2);
  std::vector<float> value(layout.full_floats());
  layout.Initialize(1, value.data());
  StoreDouble(&value[CtrCells::kShow], 2.0);
  StoreU64(&value[SlotIndex(layout) + 1], 0x0102030405060708);
  value[12] = 1.0f;  // embedx_w[0]
  std::string small, has_embedx;
  AppendValueRecord(layout, 5, value.data(), false, &small);
  AppendValueRecord(layout, 5, value.data(), true, &has_embedx);
  EXPECT_EQ(Hex(small),
            "38000000"  // 4 + 8 + 11 * 4
            "0500000000000000"
            "0000000000000000"  // unseen_days, delta_score
            "0000000000000040"  // show 2.0
            "0000000000000000"  // click
            "0000000000000000"  // embed_w, embed_g2sum
            "000080bf"          // slot -1
            "0807060504030201");
  EXPECT_EQ(Hex(has_embedx).substr(8), Hex(small).substr(8) + "000000000000803f00000000");
  EXPECT_EQ(has_embedx[0], 4 + 8 + 14 * 4);
}

TEST(ValueBinary, DenseRecordMatchesTheFormat) {
  std::string record;
  AppendDenseRecord(7, {1.0f, 2.0f}, &record);
  EXPECT_EQ(Hex(record), "1400000007000000000000000000803f00000040");
}

TEST(ValueBinary, ReadsBackTheSameBits) {
  std::mt19937_64 random(3);
  for (const ValueLayout& layout : {Layout(v1::TableSpec::CTR, 5), Layout(v1::TableSpec::CTR, 0),
                                    Layout(v1::TableSpec::EMBEDDING, 4)}) {
    for (int row = 0; row < 500; ++row) {
      const bool has_embedx = !layout.embedx_is_optional() || (layout.dim() > 0 && row % 2 == 0);
      std::vector<float> value(layout.full_floats(), 0.0f), read(value.size(), 9.0f);
      for (uint32_t i = 0; i < layout.floats(has_embedx); ++i) {
        value[i] = static_cast<float>(static_cast<int64_t>(random())) * 1e-10f;
      }
      if (layout.accessor().has_statistics()) {
        StoreDouble(&value[CtrCells::kShow], 1.0 / 3 * row);
        StoreDouble(&value[CtrCells::kClick], 1e-300);
        StoreU64(&value[SlotIndex(layout) + 1], ~uint64_t{0});  // would be NaN as a float
      }
      const Key key = random();
      std::string record;
      AppendValueRecord(layout, key, value.data(), has_embedx, &record);
      Key read_key = 0;
      bool read_has_embedx = !has_embedx;
      const absl::Status status =
          ParseValueRecord(layout, record, &read_key, read.data(), &read_has_embedx);
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(read_key, key);
      EXPECT_EQ(read_has_embedx, has_embedx);
      ASSERT_EQ(std::memcmp(read.data(), value.data(), value.size() * sizeof(float)), 0);
    }
  }
}

TEST(ValueBinary, RefusesWrongLengths) {
  const ValueLayout layout = Layout(v1::TableSpec::CTR, 2);
  std::vector<float> value(layout.full_floats(), 1.0f), read(layout.full_floats());
  Key key = 0;
  bool has_embedx = false;
  const auto parse = [&](const std::string& record) {
    const absl::Status status = ParseValueRecord(layout, record, &key, read.data(), &has_embedx);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    return std::string(status.message());
  };
  std::string record;
  AppendValueRecord(layout, 5, value.data(), true, &record);
  EXPECT_THAT(parse(record.substr(0, record.size() - 4)), HasSubstr("states a length of 68"));
  EXPECT_THAT(parse(record + "abcd"), HasSubstr("states a length of 68"));
  EXPECT_THAT(parse(""), HasSubstr("states a length of 0"));
  record.clear();
  AppendDenseRecord(5, {1, 2, 3}, &record);
  EXPECT_THAT(parse(record), HasSubstr("key 5 has 3 cells; a value has 14, or 11 without embedx"));
}

TEST(ValueBinary, RefusesNonFiniteCellsByName) {
  const ValueLayout layout = Layout(v1::TableSpec::CTR, 2);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto error = [&](void (*spoil)(float*)) {
    std::vector<float> value(layout.full_floats(), 1.0f), read(layout.full_floats());
    spoil(value.data());
    std::string record;
    AppendValueRecord(layout, 5, value.data(), true, &record);
    Key key = 0;
    bool has_embedx = false;
    return std::string(ParseValueRecord(layout, record, &key, read.data(), &has_embedx).message());
  };
  EXPECT_EQ(error([](float*) {}), "");
  EXPECT_THAT(error([](float* v) { StoreDouble(v + 2, INFINITY); }), HasSubstr("show"));
  EXPECT_THAT(error([](float* v) { StoreDouble(v + 4, NAN); }), HasSubstr("click"));
  EXPECT_THAT(error([](float* v) { v[1] = NAN; }), HasSubstr("cell 1"));
  EXPECT_THAT(error([](float* v) { v[8] = NAN; }), HasSubstr("cell 8"));
  EXPECT_THAT(error([](float* v) { v[13] = -INFINITY; }), HasSubstr("cell 13"));

  std::vector<float> values = {9};
  std::string record;
  AppendDenseRecord(3, {1, nan}, &record);
  EXPECT_THAT(std::string(ParseDenseRecord(record, 3, 2, &values).message()),
              HasSubstr("row 3: column 1"));
  EXPECT_EQ(values.size(), 1u);
}

TEST(ValueBinary, DenseRowsMustBeInOrder) {
  std::string record;
  AppendDenseRecord(3, {1, 2}, &record);
  std::vector<float> values;
  EXPECT_TRUE(ParseDenseRecord(record, 3, 2, &values).ok());
  EXPECT_THAT(values, ::testing::ElementsAre(1, 2));
  EXPECT_THAT(std::string(ParseDenseRecord(record, 4, 2, &values).message()),
              HasSubstr("found row 3 in place of row 4"));
  EXPECT_THAT(std::string(ParseDenseRecord(record, 3, 5, &values).message()),
              HasSubstr("2 cells instead of 5"));
  EXPECT_EQ(values.size(), 2u);
}

// 16-bit rows: the record has half the cells, the line the same numbers; neither may be NaN.
TEST(ValueBinary, RecordsOfPackedRowsHaveHalfTheCells) {
  v1::TableSpec spec;
  spec.set_name("deep");
  spec.set_dim(3);
  spec.mutable_rule()->set_kind(v1::UpdateRule::SGD);
  spec.set_row_type(v1::TableSpec::BFLOAT16);
  const ValueLayout layout = ValueLayout::CreateStored(spec).value();
  const float numbers[] = {1.0f, -2.5f, 0.25f};
  float cells[2], read[2];
  layout.Pack(numbers, cells);
  std::string record, line;
  AppendValueRecord(layout, 5, cells, true, &record);
  EXPECT_EQ(Hex(record),
            "14000000"
            "0500000000000000"
            "803f20c0803e0000");
  Key key = 0;
  bool has_embedx = false;
  ASSERT_TRUE(ParseValueRecord(layout, record, &key, read, &has_embedx).ok());
  EXPECT_EQ(std::memcmp(read, cells, sizeof(cells)), 0);
  AppendValueLine(layout, 5, cells, true, &line, Digits::kShortest);
  EXPECT_EQ(line, "5 1 -2.5 0.25\n");
  line.pop_back();
  ASSERT_TRUE(ParseValueLine(layout, line, &key, read, &has_embedx).ok());
  EXPECT_EQ(std::memcmp(read, cells, sizeof(cells)), 0);
  for (const size_t exponent : {12, 14, 16}) {  // of each number
    std::string bad = record;
    bad[exponent] = static_cast<char>(0x80);
    bad[exponent + 1] = 0x7F;
    EXPECT_THAT(std::string(ParseValueRecord(layout, bad, &key, read, &has_embedx).message()),
                HasSubstr("key 5: w is not a finite number"));
  }
}

}  // namespace
}  // namespace cistern
