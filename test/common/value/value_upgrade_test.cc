#include "common/value/value_upgrade.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/value/bfloat16_cells.h"
#include "common/value/value_binary.h"

namespace cistern {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Key kKey = 77;

v1::TableSpec Spec(v1::TableSpec::Accessor accessor, uint32_t dim, v1::UpdateRule::Kind kind) {
  v1::TableSpec spec;
  spec.set_name("ctr");
  spec.set_accessor(accessor);
  spec.set_dim(dim);
  spec.set_seed(3);
  spec.mutable_rule()->set_kind(kind);
  spec.mutable_rule()->set_beta1(0.9f);
  spec.mutable_rule()->set_beta2(0.999f);
  spec.mutable_rule()->set_epsilon(1e-8f);
  spec.mutable_rule()->set_initial_g2sum(3);
  spec.mutable_initializer()->set_kind(v1::Initializer::UNIFORM);
  spec.mutable_initializer()->set_range(0.5f);
  spec.mutable_ctr()->set_embedx_threshold(10);
  return spec;
}
v1::TableSpec Ctr(uint32_t dim, v1::UpdateRule::Kind kind = v1::UpdateRule::ADAGRAD_SHARED) {
  return Spec(v1::TableSpec::CTR, dim, kind);
}
v1::TableSpec Embedding(uint32_t dim, v1::UpdateRule::Kind kind = v1::UpdateRule::ADAM) {
  return Spec(v1::TableSpec::EMBEDDING, dim, kind);
}

struct Row {
  std::vector<float> value;
  bool has_embedx = false;
};

Row NewRow(const v1::TableSpec& spec) {
  const ValueLayout layout = ValueLayout::Create(spec).value();
  Row row;
  row.value.resize(layout.full_floats());
  row.has_embedx = layout.Initialize(kKey, row.value.data());
  return row;
}

Row Convert(const v1::TableSpec& from, const v1::TableSpec& to, const Row& row) {
  const ValueLayout old_layout = ValueLayout::Create(from).value();
  const ValueLayout new_layout = ValueLayout::Create(to).value();
  Row out;
  out.value.assign(new_layout.full_floats(), -99.0f);
  out.has_embedx = ValueUpgrade::Create(old_layout, new_layout)
                       .value()
                       .Convert(kKey, row.value.data(), row.has_embedx, out.value.data());
  return out;
}

// unseen 1, delta 2, show 3, click 4, embed_w 5, g2sum 6, slot 7, uid 8, embedx_g2sum 9, w 10 ...
Row CtrRow(uint32_t dim, bool has_embedx) {
  Row row{{1, 2, 0, 0, 0, 0, 5, 6, 7, 0, 0, 9}, has_embedx};
  StoreDouble(&row.value[2], 3);
  StoreDouble(&row.value[4], 4);
  StoreU64(&row.value[9], 8);
  for (uint32_t i = 0; i < dim; ++i) row.value.push_back(10.0f + static_cast<float>(i));
  if (!has_embedx) std::fill(row.value.begin() + 11, row.value.end(), 0.0f);
  return row;
}

TEST(ValueUpgrade, LargerEmbedxIsFilledAsInANewRow) {
  Row fresh = NewRow(Ctr(4));
  ValueLayout::Create(Ctr(4)).value().InitializeEmbedx(kKey, fresh.value.data());
  const Row out = Convert(Ctr(2), Ctr(4), CtrRow(2, true));
  EXPECT_TRUE(out.has_embedx);
  std::vector<float> expected = CtrRow(2, true).value;
  expected.push_back(fresh.value[14]);
  expected.push_back(fresh.value[15]);
  EXPECT_EQ(out.value, expected);
  EXPECT_NE(fresh.value[14], 0.0f);
}

TEST(ValueUpgrade, SmallerEmbedxIsTruncated) {
  const Row out = Convert(Ctr(4), Ctr(2), CtrRow(4, true));
  EXPECT_TRUE(out.has_embedx);
  EXPECT_EQ(out.value, CtrRow(2, true).value);
  const Row none = Convert(Ctr(4), Ctr(0), CtrRow(4, true));
  EXPECT_FALSE(none.has_embedx);
  EXPECT_EQ(none.value.size(), 11u);
  EXPECT_EQ(none.value[6], 5.0f);
}

TEST(ValueUpgrade, AbsentEmbedxStaysAbsent) {
  const Row out = Convert(Ctr(2), Ctr(4), CtrRow(2, false));
  EXPECT_FALSE(out.has_embedx);
  EXPECT_EQ(out.value, CtrRow(4, false).value);
}

TEST(ValueUpgrade, EmbedxThatNewRowsHaveAtOnceIsCreated) {
  v1::TableSpec at_once = Ctr(2);
  at_once.mutable_ctr()->set_embedx_threshold(0);
  const Row out = Convert(Ctr(2), at_once, CtrRow(2, false));
  EXPECT_TRUE(out.has_embedx);
  EXPECT_EQ(out.value[6], 5.0f);
  EXPECT_EQ(out.value[12], NewRow(at_once).value[12]);
}

TEST(ValueUpgrade, EmbeddingsKeepWeightsAndTheirState) {
  const Row row{{1, 2, 10, 20, 100, 200}, true};  // w, m, v of two weights under Adam
  const Row fresh = NewRow(Embedding(3));
  EXPECT_EQ(Convert(Embedding(2), Embedding(3), row).value,
            (std::vector<float>{1, 2, fresh.value[2], 10, 20, 0, 100, 200, 0}));
  EXPECT_THAT(Convert(Embedding(2), Embedding(1), row).value, ElementsAre(1, 10, 100));
}

TEST(ValueUpgrade, AnotherRuleGivesTheStateOfANewRow) {
  const Row row{{1, 2, 10, 20, 100, 200}, true};
  EXPECT_THAT(Convert(Embedding(2), Embedding(2, v1::UpdateRule::ADAGRAD), row).value,
              ElementsAre(1, 2, 0, 0));
  EXPECT_THAT(Convert(Embedding(2), Embedding(2, v1::UpdateRule::SGD), row).value,
              ElementsAre(1, 2));
}

TEST(ValueUpgrade, RefusesAnotherAccessor) {
  const absl::Status status = ValueUpgrade::Create(ValueLayout::Create(Ctr(2)).value(),
                                                   ValueLayout::Create(Embedding(2)).value())
                                  .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("accessor CTR"));
}

struct ParsedRow {
  absl::Status status;
  Row row;
};

ParsedRow ParseLegacy(const v1::TableSpec& spec, const std::string& line) {
  LegacyRows rows(spec);
  ParsedRow out;
  out.row.value.resize(ValueLayout::Create(spec).value().full_floats());
  Key key = 0;
  out.status = rows.ParseLine(line, &key, out.row.value.data(), &out.row.has_embedx);
  EXPECT_TRUE(!out.status.ok() || key == kKey);
  return out;
}

TEST(LegacyRows, LinesOfEveryVersionAreRead) {
  const struct {
    const char* line;
    uint64_t uid;
    float slot;
    bool has_embedx;
  } cases[] = {
      {"77 8 1 2 3 4 5 6 7", 8, 7, false},               // spec/003
      {"77 8 1 2 3 4 5 6 7 9 10 11", 8, 7, true},        //
      {"77 1 2 3 4 5 6 7", 0, 7, false},                 // CtrDoubleAccessor: no uid
      {"77 1 2 3 4 5 6 7 9 10 11", 0, 7, true},          //
      {"77 1 2 3 4 5 6", 0, -1, false},                  // and no slot
      {"77 1 2 3 4 5 6 9 10 11", 0, -1, true},           //
      {"77 8 1 2 3 4 5 6 7 9 10 11 12 13", 8, 7, true},  // dim 4, cut to 2
  };
  for (const auto& c : cases) {
    const ParsedRow out = ParseLegacy(Ctr(2), c.line);
    ASSERT_TRUE(out.status.ok()) << c.line << ": " << out.status;
    Row expected = CtrRow(2, c.has_embedx);
    StoreU64(&expected.value[9], c.uid);
    expected.value[8] = c.slot;
    EXPECT_EQ(out.row.has_embedx, c.has_embedx) << c.line;
    EXPECT_EQ(out.row.value, expected.value) << c.line;
  }
}

TEST(LegacyRows, SmallerDimIsFilled) {
  const ParsedRow out = ParseLegacy(Ctr(8), "77 8 1 2 3 4 5 6 7 9 10 11");
  ASSERT_TRUE(out.status.ok()) << out.status;
  EXPECT_EQ(out.row.value, Convert(Ctr(2), Ctr(8), CtrRow(2, true)).value);
}

TEST(LegacyRows, EmbeddingsOfAnotherDimAreRead) {
  const ParsedRow out = ParseLegacy(Embedding(1), "77 1 2 10 20 100 200");
  ASSERT_TRUE(out.status.ok()) << out.status;
  EXPECT_THAT(out.row.value, ElementsAre(1, 10, 100));
  EXPECT_FALSE(ParseLegacy(Embedding(1), "77 1 2 3 4").status.ok());  // not a multiple of 3
}

TEST(LegacyRows, RowsWithoutEmbedxRevealTheirOptionalFields) {
  const LegacyRows rows(Ctr(2));
  EXPECT_TRUE(rows.FieldsOfShortLine("77 8 1 2 3 4 5 6 7")->uid);
  EXPECT_FALSE(rows.FieldsOfShortLine("77 1 2 3 4 5 6 7")->uid);
  EXPECT_TRUE(rows.FieldsOfShortLine("77 1 2 3 4 5 6 7")->slot);
  EXPECT_FALSE(rows.FieldsOfShortLine("77 1 2 3 4 5 6")->slot);
  EXPECT_FALSE(rows.FieldsOfShortLine("77 8 1 2 3 4 5 6 7 9 10 11").has_value());
  std::string record;
  AppendDenseRecord(kKey, std::vector<float>(9), &record);
  EXPECT_FALSE(rows.FieldsOfShortRecord(record)->uid);
}

// Both at once: dim 4 and no uid. By the number of fields alone this could be dim 3 with uid 1.
TEST(LegacyRows, RowsOfAnotherDimHaveTheOptionalFieldsOfTheModel) {
  const char* line = "77 1 2 3 4 5 6 7 9.5 10 11 12 13";
  EXPECT_THAT(std::string(ParseLegacy(Ctr(2), line).status.message()),
              HasSubstr("its slot would be 9.5, which is not a whole number"));
  LegacyRows rows(Ctr(2), {false, true});
  Row row;
  row.value.resize(14);
  Key key = 0;
  ASSERT_EQ(rows.ParseLine(line, &key, row.value.data(), &row.has_embedx), absl::OkStatus());
  Row expected = CtrRow(2, true);
  StoreU64(&expected.value[9], 0);
  expected.value[11] = 9.5f;
  EXPECT_EQ(row.value, expected.value);
}

TEST(LegacyRows, OtherLinesAreRefused) {
  EXPECT_THAT(std::string(ParseLegacy(Ctr(2), "77 1 2 3 4 5").status.message()),
              HasSubstr("a row with 5 fields"));
  EXPECT_FALSE(ParseLegacy(Ctr(2), "").status.ok());
  const absl::Status named = ParseLegacy(Ctr(2), "77 1 2 3 x 5 6 7").status;
  EXPECT_THAT(std::string(named.message()), HasSubstr("field 5 (click) 'x' is not a number"));
}

TEST(LegacyRows, RecordsOfEveryVersionAreRead) {
  const auto parse = [](std::vector<float> cells) {
    std::string record;
    AppendDenseRecord(kKey, cells, &record);
    LegacyRows rows(Ctr(2));
    Row row;
    row.value.resize(14);
    Key key = 0;
    const absl::Status status = rows.ParseRecord(record, &key, row.value.data(), &row.has_embedx);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(key, kKey);
    return row;
  };
  for (const bool has_embedx : {false, true}) {
    const Row whole = CtrRow(2, has_embedx);
    std::vector<float> cells(whole.value.begin(), whole.value.begin() + (has_embedx ? 14 : 11));
    Row out = parse(cells);
    EXPECT_EQ(out.has_embedx, has_embedx);
    EXPECT_EQ(out.value, whole.value);
    cells.erase(cells.begin() + 9, cells.begin() + 11);  // no uid
    out = parse(cells);
    Row expected = whole;
    StoreU64(&expected.value[9], 0);
    EXPECT_EQ(out.has_embedx, has_embedx);
    EXPECT_EQ(out.value, expected.value);
  }
}

TEST(LegacyRows, ARecordWithoutCellsIsRefused) {
  std::string record;
  AppendDenseRecord(kKey, {}, &record);
  LegacyRows rows(Ctr(2));
  Row row;
  row.value.resize(14);
  Key key = 0;
  const absl::Status status = rows.ParseRecord(record, &key, row.value.data(), &row.has_embedx);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a row with 0"));
}

// The conversion of the floats, then the nearest bfloat16; and back without a change.
TEST(ValueUpgrade, ConvertsBetweenRowTypes) {
  v1::TableSpec packed_spec = Embedding(3);
  packed_spec.set_row_type(v1::TableSpec::BFLOAT16);
  const ValueLayout floats = ValueLayout::CreateStored(Embedding(2)).value();
  const ValueLayout packed = ValueLayout::CreateStored(packed_spec).value();
  const std::vector<float> row = {1, 1 + 0x1.8p-8f, 3, 4, 5, 6};
  std::vector<float> stored(packed.full_floats()), read(9), back(6);
  EXPECT_TRUE(
      ValueUpgrade::Create(floats, packed).value().Convert(kKey, row.data(), true, stored.data()));
  packed.Unpack(stored.data(), read.data());
  const float third = read[2];
  EXPECT_THAT(read, ElementsAre(1, 1 + 0x1p-7f, third, 3, 4, 0, 5, 6, 0));
  EXPECT_NEAR(third, NewRow(Embedding(3)).value[2], 0.5f / 256);
  EXPECT_TRUE(
      ValueUpgrade::Create(packed, floats).value().Convert(kKey, stored.data(), true, back.data()));
  EXPECT_THAT(back, ElementsAre(1, 1 + 0x1p-7f, 3, 4, 5, 6));
}

TEST(LegacyRows, BecomePackedRows) {
  v1::TableSpec spec = Embedding(2, v1::UpdateRule::SGD);
  spec.set_row_type(v1::TableSpec::BFLOAT16);
  LegacyRows rows(spec);
  Key key = 0;
  bool has_embedx = false;
  float cell = 0, read[2];
  ASSERT_TRUE(rows.ParseLine("7 0.5 -3", &key, &cell, &has_embedx).ok());
  LoadBfloat16(&cell, 2, read);
  EXPECT_THAT(read, ElementsAre(0.5f, -3.0f));
}

}  // namespace
}  // namespace cistern
