// An accessor that the library does not know: a float that counts visits beside the weights, which
// rows have from their third visit on.
#include "common/value/accessor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/value/old_rows.h"
#include "common/value/row_digest.h"
#include "common/value/row_lifecycle.h"
#include "common/value/value_binary.h"
#include "common/value/value_layout.h"
#include "common/value/value_text.h"
#include "common/value/value_upgrade.h"
#include "proto/control_plane.pb.h"

namespace cistern {
namespace {

using ::testing::ElementsAre;

constexpr auto kVisits = static_cast<v1::TableSpec::Accessor>(77);

// Keeps rows that were visited twice; every shrink forgets a visit.
class VisitLifecycle : public RowLifecycle {
 public:
  bool IsSaved(v1::SaveMode, const float* value) const override { return value[0] >= 2; }
  bool UpdateAfterSave(v1::SaveMode, float*) const override { return false; }
  bool Shrink(float* value) const override { return --value[0] > 0; }
  bool WouldKeep(const float* value) const override { return value[0] > 1; }
  Counts CountsOf(const float* value) const override { return {value[0], 0}; }
};

class VisitAccessor : public Accessor {
 public:
  v1::TableSpec::Accessor kind() const override { return kVisits; }
  absl::string_view name() const override { return "visits"; }
  ValueShape ShapeOf(const v1::TableSpec& spec, const RuleParams& rule) const override {
    const uint32_t dim = spec.dim(), state = RuleStateFloats(rule.kind, dim);
    ValueShape shape;
    shape.fields = {{.name = "visits", .first = 0, .initial = 1.0f},
                    {.name = "owner", .first = 1, .type = CellType::kU64, .leads_text = true},
                    {.name = "w",
                     .first = 3,
                     .count = dim,
                     .role = FieldRole::kWeights,
                     .weights = dim,
                     .in_embedx = true},
                    {.name = "state",
                     .first = 3 + dim,
                     .count = state,
                     .role = FieldRole::kState,
                     .weights = dim,
                     .in_embedx = true}};
    shape.short_floats = shape.weight_index = 3;
    shape.state_index = 3 + dim;
    shape.state_floats = state;
    shape.full_floats = 3 + dim + state;
    shape.embedx_is_optional = true;
    shape.starts_with_embedx = false;
    return shape;
  }
  bool has_statistics() const override { return true; }
  std::unique_ptr<RowLifecycle> MakeLifecycle(const ValueLayout&, uint32_t) const override {
    return std::make_unique<VisitLifecycle>();
  }
  std::unique_ptr<OldRows> MakeOldRows(const ValueLayout&) const override { return nullptr; }
};

v1::TableSpec Spec(uint32_t dim) {
  v1::TableSpec spec;
  spec.set_name("toy");
  spec.set_accessor(kVisits);
  spec.set_dim(dim);
  spec.set_seed(3);
  spec.mutable_initializer()->set_kind(v1::Initializer::UNIFORM);
  spec.mutable_initializer()->set_range(0.5f);
  return spec;
}

ValueLayout Toy(uint32_t dim) {
  static const VisitAccessor accessor;
  static const Accessor* const list[] = {&accessor};
  return ValueLayout::Create(Spec(dim), list).value();
}

TEST(Accessor, IsFoundByNumberAndByName) {
  EXPECT_EQ(FindAccessor(v1::TableSpec::CTR)->name(), "ctr");
  EXPECT_EQ(FindAccessor("embedding")->kind(), v1::TableSpec::EMBEDDING);
  EXPECT_EQ(FindAccessor("visits"), nullptr);
  EXPECT_EQ(AccessorName(Spec(2)), "unknown");
  EXPECT_FALSE(HasStatistics(Spec(2)));
  EXPECT_FALSE(CheckDay(Spec(2), 1).ok());
  EXPECT_FALSE(ValueLayout::Create(Spec(2)).ok());
}

TEST(Accessor, OfSomebodyElseCreatesRows) {
  const ValueLayout layout = Toy(2);
  std::vector<float> value(layout.full_floats(), 9.0f);
  EXPECT_FALSE(layout.Initialize(5, value.data()));
  EXPECT_THAT(value, ElementsAre(1, 0, 0, 0, 0));
  layout.InitializeEmbedx(5, value.data());
  EXPECT_NE(value[3], 0.0f);
  EXPECT_THAT(layout.FieldNames(true), ElementsAre("visits", "owner", "w[0]", "w[1]"));
}

TEST(Accessor, OfSomebodyElseWritesAndReadsRows) {
  const ValueLayout layout = Toy(2);
  std::vector<float> value = {4, 0, 0, 0.5f, -0.25f}, read(5);
  StoreU64(&value[1], 1234567890123456789);
  for (const bool has_embedx : {true, false}) {
    if (!has_embedx) value[3] = value[4] = 0;
    std::string line, record;
    AppendValueLine(layout, 7, value.data(), has_embedx, &line);
    EXPECT_EQ(line,
              has_embedx ? "7 1234567890123456789 4 0.5 -0.25\n" : "7 1234567890123456789 4\n");
    Key key = 0;
    bool read_has_embedx = !has_embedx;
    line.pop_back();
    ASSERT_EQ(ParseValueLine(layout, line, &key, read.data(), &read_has_embedx), absl::OkStatus());
    EXPECT_EQ(read_has_embedx, has_embedx);
    EXPECT_EQ(read, value);
    AppendValueRecord(layout, 7, value.data(), has_embedx, &record);
    ASSERT_EQ(ParseValueRecord(layout, record, &key, read.data(), &read_has_embedx),
              absl::OkStatus());
    EXPECT_EQ(read_has_embedx, has_embedx);
    EXPECT_EQ(read, value);
    RowDigest digest(layout);
    EXPECT_EQ(digest(7, value.data(), has_embedx), digest(key, read.data(), read_has_embedx));
  }
}

TEST(Accessor, OfSomebodyElseConvertsRows) {
  const ValueLayout from = Toy(1), to = Toy(2);
  const std::vector<float> old = {4, 0, 0, 0.5f};
  std::vector<float> value(5), fresh(5);
  to.InitializeEmbedx(7, fresh.data());
  EXPECT_TRUE(ValueUpgrade::Create(from, to)->Convert(7, old.data(), true, value.data()));
  EXPECT_THAT(value, ElementsAre(4, 0, 0, 0.5f, fresh[4]));
  EXPECT_TRUE(to.accessor().MakeLifecycle(to, 0)->IsSaved(v1::BASE, value.data()));
}

}  // namespace
}  // namespace cistern
