// The layout of a value, and the initial values of rows.
#include "common/value/value_layout.h"
#include "common/value/accessor/ctr_accessor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace cistern {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::TableSpec Spec(v1::TableSpec::Accessor accessor, uint32_t dim, v1::UpdateRule::Kind kind) {
  v1::TableSpec spec;
  spec.set_name("table");
  spec.set_accessor(accessor);
  spec.set_dim(dim);
  spec.set_seed(42);
  v1::UpdateRule& rule = *spec.mutable_rule();
  rule.set_kind(kind);
  rule.set_beta1(0.9f);
  rule.set_beta2(0.999f);
  rule.set_epsilon(1e-7f);
  rule.set_initial_g2sum(3);
  spec.mutable_initializer()->set_kind(v1::Initializer::UNIFORM);
  spec.mutable_initializer()->set_range(0.05f);
  spec.mutable_ctr()->set_embedx_threshold(10);
  return spec;
}

// spec/003 section 3.2, DownpourCtrFeatureValue: dim(D) = 12 + D and the index functions.
TEST(ValueLayout, CtrWithSharedAdagradMatchesTheSpec) {
  for (uint32_t dim : {1u, 8u, 64u}) {
    const ValueLayout layout =
        ValueLayout::Create(Spec(v1::TableSpec::CTR, dim, v1::UpdateRule::ADAGRAD_SHARED)).value();
    EXPECT_EQ(CtrCells::kUnseenDays, 0u);
    EXPECT_EQ(CtrCells::kDeltaScore, 1u);
    EXPECT_EQ(CtrCells::kShow, 2u);
    EXPECT_EQ(CtrCells::kClick, 4u);
    EXPECT_EQ(CtrCells::kEmbedW, 6u);
    EXPECT_EQ(CtrCells::kEmbedState, 7u);
    EXPECT_EQ(SlotIndex(layout), 8u);
    EXPECT_EQ(SlotIndex(layout) + 1, 9u);
    EXPECT_EQ(layout.state_index(), 11u);
    EXPECT_EQ(layout.state_floats(), 1u);
    EXPECT_EQ(layout.weight_index(), 12u);
    EXPECT_EQ(layout.full_floats(), 12 + dim);
    EXPECT_EQ(layout.short_floats(), 11u);
    EXPECT_EQ(layout.floats(true), 12 + dim);
    EXPECT_EQ(layout.floats(false), 11u);
  }
}

TEST(ValueLayout, StateHasTheSizeThatItsRuleNeeds) {
  const struct {
    v1::UpdateRule::Kind kind;
    uint32_t of_one, of_dim;  // state floats for one weight, and for 4
  } rules[] = {{v1::UpdateRule::SGD, 0, 0},
               {v1::UpdateRule::ADAGRAD, 1, 4},
               {v1::UpdateRule::ADAGRAD_SHARED, 1, 1},
               {v1::UpdateRule::ADAM, 2, 8},
               {v1::UpdateRule::ADAGRAD_STD, 1, 4}};
  for (const auto& rule : rules) {
    const ValueLayout embedding =
        ValueLayout::Create(Spec(v1::TableSpec::EMBEDDING, 4, rule.kind)).value();
    EXPECT_EQ(embedding.weight_index(), 0u);
    EXPECT_EQ(embedding.state_index(), 4u);
    EXPECT_EQ(embedding.full_floats(), 4 + rule.of_dim);
    EXPECT_EQ(embedding.short_floats(), 4 + rule.of_dim);

    const ValueLayout ctr = ValueLayout::Create(Spec(v1::TableSpec::CTR, 4, rule.kind)).value();
    EXPECT_EQ(SlotIndex(ctr), 7 + rule.of_one);
    EXPECT_EQ(SlotIndex(ctr) + 1, 8 + rule.of_one);
    EXPECT_EQ(ctr.short_floats(), 10 + rule.of_one);
    EXPECT_EQ(ctr.state_index(), 10 + rule.of_one);
    EXPECT_EQ(ctr.weight_index(), 10 + rule.of_one + rule.of_dim);
    EXPECT_EQ(ctr.full_floats(), 14 + rule.of_one + rule.of_dim);
  }
}

TEST(ValueLayout, CtrWithoutEmbedxIsNeverFull) {
  v1::TableSpec spec = Spec(v1::TableSpec::CTR, 0, v1::UpdateRule::ADAGRAD_SHARED);
  spec.mutable_ctr()->set_embedx_threshold(0);
  const ValueLayout layout = ValueLayout::Create(spec).value();
  EXPECT_EQ(layout.full_floats(), 11u);
  EXPECT_EQ(layout.short_floats(), 11u);
  std::vector<float> value(11);
  EXPECT_FALSE(layout.Initialize(1, value.data()));
}

// Golden: initial values must not change between versions. Computed from Philox in Python.
TEST(ValueLayout, FirstWeightsAreTheSameInEveryVersion) {
  constexpr Key kKey = 0x0123456789abcdef;
  v1::TableSpec spec = Spec(v1::TableSpec::EMBEDDING, 6, v1::UpdateRule::ADAGRAD);
  std::vector<float> value(12, 7.0f);
  EXPECT_TRUE(ValueLayout::Create(spec)->Initialize(kKey, value.data()));
  EXPECT_THAT(value, ElementsAre(-0.0215839501f, 0.00853838306f, -0.0306864865f, 0.0301305652f,
                                 0.000808930432f, -0.0344434083f, 0, 0, 0, 0, 0, 0));

  spec = Spec(v1::TableSpec::EMBEDDING, 3, v1::UpdateRule::SGD);
  spec.mutable_initializer()->set_kind(v1::Initializer::NORMAL);
  spec.mutable_initializer()->set_range(0.5f);
  value.assign(3, 7.0f);
  EXPECT_TRUE(ValueLayout::Create(spec)->Initialize(kKey, value.data()));
  EXPECT_THAT(value, ElementsAre(testing::FloatEq(-0.681733131f), testing::FloatEq(0.287264049f),
                                 testing::FloatEq(0.325334638f)));

  spec.mutable_initializer()->set_kind(v1::Initializer::ZERO);
  value.assign(3, 7.0f);
  EXPECT_TRUE(ValueLayout::Create(spec)->Initialize(kKey, value.data()));
  EXPECT_THAT(value, Each(0.0f));
}

TEST(ValueLayout, FirstValueDependsOnSeedAndKeyAlone) {
  v1::TableSpec spec = Spec(v1::TableSpec::EMBEDDING, 5, v1::UpdateRule::SGD);
  const ValueLayout layout = ValueLayout::Create(spec).value();
  spec.set_seed(43);
  const ValueLayout other_seed = ValueLayout::Create(spec).value();
  spec.set_seed(42);
  spec.set_name("another");
  spec.set_dim(9);
  const ValueLayout wider = ValueLayout::Create(spec).value();
  for (Key key : {Key{0}, Key{1}, Key{1} << 32, ~Key{0}}) {
    std::vector<float> first(5), again(5), seeded(5), next(5), wide(9);
    layout.Initialize(key, first.data());
    layout.Initialize(key + 1, next.data());
    layout.Initialize(key, again.data());
    other_seed.Initialize(key, seeded.data());
    wider.Initialize(key, wide.data());
    EXPECT_EQ(first, again);
    EXPECT_NE(first, seeded);
    EXPECT_NE(first, next);
    EXPECT_EQ(first, std::vector<float>(wide.begin(), wide.begin() + 5));
  }
}

TEST(ValueLayout, FirstWeightsFillTheRangeEvenly) {
  const ValueLayout layout =
      ValueLayout::Create(Spec(v1::TableSpec::EMBEDDING, 7, v1::UpdateRule::SGD)).value();
  constexpr int kKeys = 20000;
  double sum = 0, squares = 0, low = 1, high = -1;
  for (Key key = 0; key < kKeys; ++key) {
    float value[7];
    layout.Initialize(key, value);
    for (double w : value) {
      sum += w;
      squares += w * w;
      low = std::min(low, w);
      high = std::max(high, w);
    }
  }
  const double n = 7.0 * kKeys, variance = 0.05 * 0.05 / 3;
  EXPECT_NEAR(sum / n, 0, 5 * std::sqrt(variance / n));
  EXPECT_NEAR(squares / n, variance, 5 * std::sqrt(0.05 * 0.05 * 0.05 * 0.05 * 4 / 45 / n));
  EXPECT_GE(low, -0.05f);
  EXPECT_LT(low, -0.0499);
  EXPECT_LE(high, 0.05f);
  EXPECT_GT(high, 0.0499);
}

// HugeCTR 2.3: U(-l, l), l = sqrt(1 / slot_size). The draws equal those of UNIFORM, scaled.
TEST(ValueLayout, FirstWeightsFollowTheSizeOfTheSlot) {
  v1::TableSpec spec = Spec(v1::TableSpec::EMBEDDING, 7, v1::UpdateRule::SGD);
  spec.mutable_initializer()->set_range(1);
  const ValueLayout unit = ValueLayout::Create(spec).value();
  v1::Initializer& initializer = *spec.mutable_initializer();
  initializer.set_kind(v1::Initializer::SLOT_UNIFORM);
  initializer.set_range(0.05f);
  for (const uint64_t size : {4, 1, 1000}) initializer.mutable_slot_sizes()->add_sizes(size);
  const ValueLayout layout = ValueLayout::Create(spec).value();
  const struct {
    Key key;
    float range;
  } cases[] = {{0, 0.5f},
               {3, 0.5f},
               {4, 1},
               {5, 0.0316227766f},
               {1004, 0.0316227766f},
               {1005, 0.05f},
               {kReservedKey64 - 1, 0.05f}};
  for (const auto& one : cases) {
    std::vector<float> value(7), expected(7);
    EXPECT_TRUE(layout.Initialize(one.key, value.data()));
    unit.Initialize(one.key, expected.data());
    for (size_t i = 0; i < 7; ++i) EXPECT_EQ(value[i], expected[i] * one.range) << one.key;
  }
}

TEST(ValueLayout, SlotSizesAreChecked) {
  const auto message = [](const std::vector<uint64_t>& sizes) {
    v1::TableSpec spec = Spec(v1::TableSpec::EMBEDDING, 2, v1::UpdateRule::SGD);
    spec.mutable_initializer()->set_kind(v1::Initializer::SLOT_UNIFORM);
    for (const uint64_t size : sizes)
      spec.mutable_initializer()->mutable_slot_sizes()->add_sizes(size);
    return std::string(ValueLayout::Create(spec).status().message());
  };
  EXPECT_EQ(message({1, kReservedKey64 - 1}), "");
  EXPECT_THAT(message({}), HasSubstr("SLOT_UNIFORM needs slot_sizes"));
  EXPECT_THAT(message({1, 0}), HasSubstr("slot_sizes of the initializer: 0"));
  EXPECT_THAT(message({1, kReservedKey64}), HasSubstr("slot_sizes of the initializer"));
}

TEST(ValueLayout, NewCtrValueIsShortWithSlotMinusOne) {
  const ValueLayout layout =
      ValueLayout::Create(Spec(v1::TableSpec::CTR, 2, v1::UpdateRule::ADAGRAD_SHARED)).value();
  std::vector<float> value(14, 7.0f);
  EXPECT_FALSE(layout.Initialize(5, value.data()));
  EXPECT_THAT(value, ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0));
}

TEST(ValueLayout, NewCtrValueWithoutThresholdHasEmbedx) {
  v1::TableSpec spec = Spec(v1::TableSpec::CTR, 2, v1::UpdateRule::ADAGRAD_SHARED);
  spec.mutable_ctr()->set_embedx_threshold(0);
  const ValueLayout layout = ValueLayout::Create(spec).value();
  std::vector<float> value(14, 7.0f), grown(14, 7.0f);
  EXPECT_TRUE(layout.Initialize(5, value.data()));
  EXPECT_NE(value[12], 0.0f);
  EXPECT_EQ(value[11], 0.0f);
  // A value that gains its embedx later gets the same weights.
  layout.InitializeEmbedx(5, grown.data());
  EXPECT_EQ(std::vector<float>(grown.begin() + 11, grown.end()),
            std::vector<float>(value.begin() + 11, value.end()));
  EXPECT_THAT(std::vector<float>(grown.begin(), grown.begin() + 11), Each(7.0f));
}

TEST(ValueLayout, ScoreFollowsTheRules) {
  v1::TableSpec spec = Spec(v1::TableSpec::CTR, 2, v1::UpdateRule::SGD);
  spec.mutable_ctr()->set_nonclk_coeff(0.25f);
  spec.mutable_ctr()->set_click_coeff(2.0f);
  EXPECT_EQ(CtrScore(spec.ctr(), 10, 4), 6 * 0.25 + 4 * 2.0);
}

TEST(ValueLayout, FieldsHaveNamesInMemoryOrder) {
  const ValueLayout ctr =
      ValueLayout::Create(Spec(v1::TableSpec::CTR, 2, v1::UpdateRule::ADAGRAD_SHARED)).value();
  std::vector<float> value(14);
  for (size_t i = 0; i < value.size(); ++i) value[i] = static_cast<float>(i);
  StoreDouble(&value[2], 1.5);
  StoreDouble(&value[4], 2.5);
  StoreU64(&value[9], 99);
  EXPECT_THAT(ctr.FieldNames(true),
              ElementsAre("unseen_days", "delta_score", "show", "click", "embed_w", "embed_state",
                          "slot", "uid", "embedx_state", "embedx_w[0]", "embedx_w[1]"));
  EXPECT_THAT(ctr.FieldValues(value.data(), true),
              ElementsAre(0, 1, 1.5, 2.5, 6, 7, 8, 99, 11, 12, 13));
  EXPECT_EQ(ctr.FieldNames(false).size(), 8u);
  EXPECT_EQ(ctr.FieldValues(value.data(), false).size(), 8u);

  const ValueLayout embedding =
      ValueLayout::Create(Spec(v1::TableSpec::EMBEDDING, 1, v1::UpdateRule::ADAM)).value();
  EXPECT_THAT(embedding.FieldNames(true), ElementsAre("w", "state[0]", "state[1]"));
  EXPECT_THAT(embedding.FieldValues(value.data(), true), ElementsAre(0, 1, 1.5f * 0));
}

// Bounds add one cell to the part that every value has; nothing else changes.
TEST(ValueLayout, ABoundedTableHasTheLastPassOfARow) {
  v1::TableSpec ctr = Spec(v1::TableSpec::CTR, 2, v1::UpdateRule::ADAGRAD_SHARED);
  ctr.mutable_bounds()->set_max_rows(10);
  ctr.mutable_bounds()->set_evict_by(v1::TableBounds::SHOW);
  const ValueLayout bounded = ValueLayout::Create(ctr).value();
  EXPECT_TRUE(bounded.is_bounded());
  EXPECT_EQ(bounded.last_pass_index(), 11u);
  EXPECT_THAT(
      bounded.FieldNames(true),
      ElementsAre("unseen_days", "delta_score", "show", "click", "embed_w", "embed_state", "slot",
                  "uid", "last_pass", "embedx_state", "embedx_w[0]", "embedx_w[1]"));
  EXPECT_EQ(bounded.short_floats(), 12u);
  EXPECT_EQ(bounded.full_floats(), 15u);
  EXPECT_EQ(bounded.state_index(), 12u);
  EXPECT_EQ(bounded.weight_index(), 13u);
  EXPECT_EQ(SlotIndex(bounded), 8u);

  v1::TableSpec embedding = Spec(v1::TableSpec::EMBEDDING, 2, v1::UpdateRule::ADAM);
  const ValueLayout free = ValueLayout::Create(embedding).value();
  EXPECT_FALSE(free.is_bounded());
  embedding.mutable_bounds()->set_expire_passes(3);
  for (const auto missed : {v1::UpdateRule::LOCAL, v1::UpdateRule::GLOBAL}) {
    embedding.mutable_rule()->set_missed(missed);
    const ValueLayout layout = ValueLayout::Create(embedding).value();
    EXPECT_EQ(layout.last_pass_index(), layout.full_floats() - 1);
    EXPECT_EQ(layout.short_floats(), layout.full_floats());
    EXPECT_EQ(layout.weight_index(), free.weight_index());
    EXPECT_EQ(layout.state_index(), free.state_index());
    std::vector<float> first(layout.full_floats(), 7), expected(free.full_floats());
    EXPECT_TRUE(layout.Initialize(5, first.data()));
    free.Initialize(5, expected.data());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), first.begin()));
    EXPECT_EQ(first.back(), 0);
  }
}

TEST(ValueLayout, ARowThatIsNotAdmittedHasOnlyItsCount) {
  v1::TableSpec spec = Spec(v1::TableSpec::EMBEDDING, 2, v1::UpdateRule::ADAM);
  spec.mutable_bounds()->set_admit_after(3);
  const ValueLayout layout = ValueLayout::Create(spec).value();
  EXPECT_THAT(layout.FieldNames(true), ElementsAre("count", "last_pass", "w[0]", "w[1]", "state[0]",
                                                   "state[1]", "state[2]", "state[3]"));
  EXPECT_THAT(layout.FieldNames(false), ElementsAre("count", "last_pass"));
  EXPECT_TRUE(layout.embedx_is_optional());
  EXPECT_EQ(layout.short_floats(), 2u);
  EXPECT_EQ(layout.weight_index(), 2u);
  EXPECT_EQ(layout.state_index(), 4u);
  std::vector<float> value(layout.full_floats(), 7);
  EXPECT_FALSE(layout.Initialize(5, value.data()));
  EXPECT_THAT(value, Each(0));

  // Without admission, rows that count are whole from the start.
  spec.mutable_bounds()->Clear();
  spec.mutable_bounds()->set_max_rows(3);
  spec.mutable_bounds()->set_evict_by(v1::TableBounds::COUNT);
  const ValueLayout counting = ValueLayout::Create(spec).value();
  EXPECT_FALSE(counting.embedx_is_optional());
  EXPECT_EQ(counting.count_field()->first, 6u);
  EXPECT_EQ(counting.last_pass_index(), 7u);
  EXPECT_TRUE(counting.Initialize(5, value.data()));
  EXPECT_EQ(value[6], 0);
}

TEST(CellOfPass, TellsEveryPassFromOthers) {
  constexpr PassId kExact = PassId{1} << 24;  // floats above it have no odd numbers
  EXPECT_EQ(CellOfPass(0), 0.0f);
  EXPECT_EQ(CellOfPass(7), 7.0f);
  EXPECT_EQ(CellOfPass(kExact), 16777216.0f);
  float before = -1;
  for (const PassId pass : {PassId{0}, PassId{1}, kExact - 1, kExact, kExact + 1, kExact + 2,
                            kExact + 3, 3 * kExact + 1, kMaxCellPass - 1, kMaxCellPass}) {
    const float cell = CellOfPass(pass);
    EXPECT_GT(cell, before) << pass;
    EXPECT_TRUE(std::isfinite(cell)) << pass;
    EXPECT_EQ(PassOfCell(cell), pass);
    before = cell;
  }
  EXPECT_EQ(PassOfCell(CellOfPass(~PassId{0})), kMaxCellPass);
  EXPECT_EQ(PassOfCell(-5.0f), 0u);
  EXPECT_EQ(PassOfCell(std::numeric_limits<float>::quiet_NaN()), 0u);
  EXPECT_EQ(PassOfCell(std::numeric_limits<float>::infinity()), kMaxCellPass);

  v1::TableSpec spec = Spec(v1::TableSpec::EMBEDDING, 1, v1::UpdateRule::SGD);
  spec.mutable_bounds()->set_expire_passes(3);
  const ValueLayout layout = ValueLayout::Create(spec).value();
  const float value[] = {0.5f, CellOfPass(kExact + 1)};
  EXPECT_THAT(layout.FieldValues(value, true), ElementsAre(0.5, 16777217.0));
}

TEST(ValueLayout, RefusesInvalidSpecs) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  using Change = std::function<void(v1::TableSpec&)>;
  const auto rule = [](v1::UpdateRule::Kind kind, const Change& change) -> Change {
    return [=](v1::TableSpec& spec) {
      spec.mutable_rule()->set_kind(kind);
      change(spec);
    };
  };
  const struct {
    Change change;
    const char* message;
  } cases[] = {
      {[](v1::TableSpec& s) { s.set_name(""); }, "table name"},
      {[](v1::TableSpec& s) { s.set_name("../x"); }, "'../x'"},
      {[](v1::TableSpec& s) { s.set_dim(0); }, "table 'table': dim is 0; it must be 1 to 4096"},
      {[](v1::TableSpec& s) { s.set_dim(4097); }, "dim is 4097"},
      {[](v1::TableSpec& s) { s.set_accessor(static_cast<v1::TableSpec::Accessor>(9)); },
       "unknown accessor"},
      {rule(static_cast<v1::UpdateRule::Kind>(10), [](auto&) {}), "update rule 10 does not exist"},
      {[](v1::TableSpec& s) {
         s.mutable_initializer()->set_kind(static_cast<v1::Initializer::Kind>(9));
       },
       "initializer 9 does not exist"},
      {[](v1::TableSpec& s) { s.mutable_initializer()->set_range(kInf); }, "range"},
      {[](v1::TableSpec& s) { s.mutable_ctr()->set_embedx_threshold(NAN); }, "embedx_threshold"},
      {[](v1::TableSpec& s) { s.mutable_ctr()->set_click_coeff(kInf); }, "click_coeff"},
      {rule(v1::UpdateRule::ADAM, [](auto& s) { s.mutable_rule()->set_beta1(1); }),
       "table 'table': beta1 of the update rule is 1; it must be in [0, 1)"},
      {rule(v1::UpdateRule::ADAM, [](auto& s) { s.mutable_rule()->set_beta2(-1); }), "beta2"},
      {rule(v1::UpdateRule::ADAM, [](auto& s) { s.mutable_rule()->set_epsilon(0); }), "epsilon"},
      {rule(v1::UpdateRule::ADAGRAD, [](auto& s) { s.mutable_rule()->set_epsilon(0); }), "epsilon"},
      {rule(v1::UpdateRule::ADAGRAD_SHARED,
            [](auto& s) { s.mutable_rule()->set_initial_g2sum(0); }),
       "initial_g2sum"},
      {rule(v1::UpdateRule::ADAGRAD_STD, [](auto& s) { s.mutable_rule()->set_initial_g2sum(0); }),
       "initial_g2sum"},
      {rule(v1::UpdateRule::SGD, [](auto& s) { s.mutable_rule()->set_weight_bound(-1); }),
       "weight_bound"},
      {rule(v1::UpdateRule::SGD, [](auto& s) { s.mutable_rule()->set_beta1(NAN); }), "finite"},
      {[](v1::TableSpec& s) { s.mutable_bounds(); }, "table 'table': its bounds have neither"},
      {[](v1::TableSpec& s) {
         s.mutable_bounds()->set_max_rows(1);
         s.mutable_bounds()->set_evict_by(static_cast<v1::TableBounds::Order>(9));
       },
       "evict_by of the bounds is 9"},
      {[](v1::TableSpec& s) {
         s.mutable_bounds()->set_max_rows(1);
         s.mutable_bounds()->set_evict_by(v1::TableBounds::SHOW);
       },
       "evict_by show needs rows that count shows"},
  };
  ASSERT_TRUE(ValueLayout::Create(Spec(v1::TableSpec::EMBEDDING, 4, v1::UpdateRule::SGD)).ok());
  for (const auto& c : cases) {
    v1::TableSpec spec = Spec(v1::TableSpec::EMBEDDING, 4, v1::UpdateRule::SGD);
    c.change(spec);
    const absl::Status status = ValueLayout::Create(spec).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

v1::TableSpec Packed(v1::TableSpec spec) {
  spec.set_row_type(v1::TableSpec::BFLOAT16);
  return spec;
}

// Embeddings: w, m and v of 5 floats and 10 in 3 and 5 cells. ctr: the statistics stay as they are.
TEST(PackedLayout, HoldsWeightsAndTheirStateInHalfTheCells) {
  const v1::TableSpec adam = Packed(Spec(v1::TableSpec::EMBEDDING, 5, v1::UpdateRule::ADAM));
  const ValueLayout stored = ValueLayout::CreateStored(adam).value();
  EXPECT_TRUE(stored.is_packed());
  EXPECT_EQ(stored.full_floats(), 8u);
  EXPECT_EQ(stored.weight_index(), 0u);
  EXPECT_EQ(stored.state_index(), 3u);
  EXPECT_EQ(stored.state_floats(), 5u);
  EXPECT_EQ(stored.FieldNames(true).size(), 15u);
  EXPECT_EQ(stored.unpacked().full_floats(), 15u);
  EXPECT_EQ(stored.unpacked().rounded_cells(), std::make_pair(0u, 15u));

  v1::TableSpec ctr = Packed(Spec(v1::TableSpec::CTR, 8, v1::UpdateRule::ADAGRAD_STD));
  ctr.mutable_bounds()->set_max_rows(9);
  const ValueLayout packed = ValueLayout::CreateStored(ctr).value();
  const ValueLayout& floats = packed.unpacked();
  EXPECT_EQ(packed.short_floats(), floats.short_floats());
  EXPECT_EQ(packed.last_pass_index(), floats.last_pass_index());
  EXPECT_EQ(packed.full_floats(), floats.short_floats() + 8);
  EXPECT_EQ(packed.weight_index(), floats.short_floats() + 4);
  EXPECT_EQ(floats.rounded_cells(),
            std::make_pair(floats.short_floats(), floats.short_floats() + 16));

  v1::TableSpec bounded = adam;
  bounded.mutable_bounds()->set_max_rows(9);
  const ValueLayout with_pass = ValueLayout::CreateStored(bounded).value();
  EXPECT_EQ(with_pass.full_floats(), 9u);
  EXPECT_EQ(with_pass.last_pass_index(), 8u);
}

TEST(PackedLayout, LeavesNumbersThatAreNotOnePerWeight) {
  const ValueLayout rowwise =
      ValueLayout::CreateStored(
          Packed(Spec(v1::TableSpec::EMBEDDING, 4, v1::UpdateRule::ADAGRAD_ROWWISE)))
          .value();
  EXPECT_EQ(rowwise.full_floats(), 3u);  // two cells of weights, and the sum
  for (const v1::TableSpec& spec :
       {Spec(v1::TableSpec::EMBEDDING, 4, v1::UpdateRule::ADAM),
        Packed(Spec(v1::TableSpec::EMBEDDING, 1, v1::UpdateRule::ADAM))}) {
    const ValueLayout layout = ValueLayout::CreateStored(spec).value();
    EXPECT_FALSE(layout.is_packed());
    EXPECT_FALSE(layout.rounds());
    EXPECT_EQ(layout.full_floats(), 3 * spec.dim());
  }
}

TEST(PackedLayout, PacksAndUnpacksEveryField) {
  v1::TableSpec ctr = Packed(Spec(v1::TableSpec::CTR, 3, v1::UpdateRule::ADAM));
  ctr.mutable_bounds()->set_max_rows(9);
  v1::TableSpec counted = Packed(Spec(v1::TableSpec::EMBEDDING, 3, v1::UpdateRule::ADAM));
  counted.mutable_bounds()->set_admit_after(2);
  for (const v1::TableSpec& spec : {ctr, counted}) {
    const ValueLayout stored = ValueLayout::CreateStored(spec).value();
    const ValueLayout& floats = stored.unpacked();
    std::vector<float> value(floats.full_floats());
    for (uint32_t i = 0; i < value.size(); ++i) {  // eight bits each
      value[i] = static_cast<float>(128 + i) * (i % 2 == 0 ? 0.25f : -4.0f);
    }
    std::vector<float> packed(stored.full_floats()), read(value.size());
    stored.Pack(value.data(), packed.data());
    stored.Unpack(packed.data(), read.data());
    EXPECT_EQ(read, value);
    EXPECT_EQ(stored.FieldValues(packed.data(), true), floats.FieldValues(value.data(), true));
    EXPECT_EQ(stored.FieldNames(true), floats.FieldNames(true));
  }
}

TEST(PackedLayout, BeginsWithTheNearestFirstWeights) {
  const ValueLayout stored =
      ValueLayout::CreateStored(Packed(Spec(v1::TableSpec::EMBEDDING, 5, v1::UpdateRule::ADAM)))
          .value();
  std::vector<float> packed(stored.full_floats()), read(15), value(15);
  for (const Key key : {1, 2, 99}) {
    EXPECT_TRUE(stored.Initialize(key, packed.data()));
    stored.Unpack(packed.data(), read.data());
    stored.unpacked().Initialize(key, value.data());
    for (size_t i = 0; i < 15; ++i) {
      EXPECT_NEAR(read[i], value[i], 0.05f / 256) << i;
      EXPECT_EQ(read[i] == 0, value[i] == 0) << i;
    }
  }
}

TEST(PackedLayout, RefusesUnknownRowTypesAndDeferredUpdates) {
  v1::TableSpec global = Packed(Spec(v1::TableSpec::EMBEDDING, 4, v1::UpdateRule::ADAM));
  global.mutable_rule()->set_missed(v1::UpdateRule::GLOBAL);
  EXPECT_THAT(std::string(ValueLayout::Create(global).status().message()),
              HasSubstr("row type BFLOAT16 needs update_type Local"));
  v1::TableSpec spec = Spec(v1::TableSpec::EMBEDDING, 4, v1::UpdateRule::SGD);
  spec.set_row_type(static_cast<v1::TableSpec::RowType>(7));
  EXPECT_THAT(std::string(ValueLayout::CreateStored(spec).status().message()),
              HasSubstr("row type 7 does not exist"));
}

}  // namespace
}  // namespace cistern
