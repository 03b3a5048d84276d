// The effect of one push on a ctr value; expected numbers are computed by hand (PSLib's
// CtrAccessor).
#include "common/value/accessor/ctr_accessor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "test/common/value/accessor/update_ctr_value.h"

namespace cistern {
namespace {

constexpr Key kKey = 77;

// dim 2 and, by default, SGD: w -= step * g, so that every effect is easy to see.
v1::TableSpec Spec() {
  v1::TableSpec spec;
  spec.set_name("ctr");
  spec.set_accessor(v1::TableSpec::CTR);
  spec.set_dim(2);
  spec.set_seed(1);
  spec.mutable_initializer()->set_kind(v1::Initializer::UNIFORM);
  spec.mutable_initializer()->set_range(0.5f);
  spec.mutable_ctr()->set_nonclk_coeff(0.5f);
  spec.mutable_ctr()->set_click_coeff(2.0f);
  spec.mutable_ctr()->set_embedx_threshold(5.0f);
  return spec;
}

struct CtrRow {
  explicit CtrRow(const v1::TableSpec& spec)
      : layout(ValueLayout::Create(spec).value()), value(layout.full_floats()) {
    has_embedx = layout.Initialize(kKey, value.data());
  }
  void Push(const CtrPush& push, float step_size = 0.1f) {
    has_embedx = UpdateCtrValue(layout, step_size, kKey, push, value.data(), has_embedx);
  }
  double show() const { return LoadDouble(&value[CtrCells::kShow]); }
  double click() const { return LoadDouble(&value[CtrCells::kClick]); }
  float embed_w() const { return value[CtrCells::kEmbedW]; }
  const float* embedx() const { return &value[layout.weight_index()]; }

  const ValueLayout layout;
  std::vector<float> value;
  bool has_embedx;
};

CtrPush Push(float show, float click, float embed_grad, const float* embedx_grad) {
  CtrPush push;
  push.slot = 101;
  push.show = show;
  push.click = click;
  push.embed_grad = embed_grad;
  push.embedx_grad = embedx_grad;
  return push;
}

TEST(CtrAccessor, StatisticsGrowAndTheSlotIsStored) {
  const float grad[] = {1, 1};
  CtrRow row(Spec());
  row.value[CtrCells::kUnseenDays] = 9;
  row.Push(Push(3, 1, 0.5f, grad));
  EXPECT_EQ(row.show(), 3);
  EXPECT_EQ(row.click(), 1);
  EXPECT_EQ(row.value[CtrCells::kUnseenDays], 0);
  EXPECT_EQ(row.value[CtrCells::kDeltaScore], 2 * 0.5f + 1 * 2.0f);
  EXPECT_EQ(row.value[SlotIndex(row.layout)], 101);
  EXPECT_FLOAT_EQ(row.embed_w(), -0.1f * 0.5f);
  EXPECT_FALSE(row.has_embedx);
  row.Push(Push(1, 0, 0, grad));
  EXPECT_EQ(row.show(), 4);
  EXPECT_EQ(row.value[CtrCells::kDeltaScore], 3.5f);
}

// Shows are counted in double: a float cannot count beyond 2^24.
TEST(CtrAccessor, ShowsAreCountedBeyondTheRangeOfAFloat) {
  const float grad[] = {0, 0};
  CtrRow row(Spec());
  StoreDouble(&row.value[CtrCells::kShow], 16777216.0);
  row.Push(Push(1, 0, 0, grad));
  EXPECT_EQ(row.show(), 16777217.0);
}

TEST(CtrAccessor, PushThatReachesTheThresholdCreatesEmbedxAndDropsItsGradient) {
  const float grad[] = {100, 100};
  CtrRow row(Spec());
  row.Push(Push(2, 2, 0, grad));  // score 4
  EXPECT_FALSE(row.has_embedx);
  EXPECT_EQ(row.embedx()[0], 0);
  row.Push(Push(2, 0, 0, grad));  // score 5: exactly the threshold
  ASSERT_TRUE(row.has_embedx);
  std::vector<float> first(row.layout.full_floats());
  row.layout.InitializeEmbedx(kKey, first.data());
  EXPECT_EQ(row.embedx()[0], first[row.layout.weight_index()]);
  EXPECT_EQ(row.embedx()[1], first[row.layout.weight_index() + 1]);
  EXPECT_NE(row.embedx()[0], 0);
  const float w0 = row.embedx()[0], w1 = row.embedx()[1];
  const float next[] = {1, -2};
  row.Push(Push(1, 0, 0, next));
  EXPECT_TRUE(row.has_embedx);
  EXPECT_FLOAT_EQ(row.embedx()[0], w0 - 0.1f);
  EXPECT_FLOAT_EQ(row.embedx()[1], w1 + 0.2f);
}

TEST(CtrAccessor, EmbedxOnceCreatedStaysWhenTheScoreFalls) {
  const float grad[] = {0, 0};
  CtrRow row(Spec());
  row.Push(Push(10, 10, 0, grad));
  ASSERT_TRUE(row.has_embedx);
  StoreDouble(&row.value[CtrCells::kShow], 0);
  StoreDouble(&row.value[CtrCells::kClick], 0);
  row.Push(Push(1, 0, 0, grad));
  EXPECT_TRUE(row.has_embedx);
}

TEST(CtrAccessor, ShowScaleDividesBothGradients) {
  v1::TableSpec spec = Spec();
  spec.mutable_ctr()->set_show_scale(true);
  spec.mutable_ctr()->set_embedx_threshold(0);
  CtrRow row(spec);
  ASSERT_TRUE(row.has_embedx);
  const float w0 = row.embedx()[0], w1 = row.embedx()[1];
  const float grad[] = {4, -8};
  row.Push(Push(4, 0, 2, grad));
  EXPECT_FLOAT_EQ(row.embed_w(), -0.1f * 2 / 4);
  EXPECT_FLOAT_EQ(row.embedx()[0], w0 - 0.1f);
  EXPECT_FLOAT_EQ(row.embedx()[1], w1 + 0.2f);
  EXPECT_EQ(grad[0], 4);  // the caller's gradient is unchanged
}

TEST(CtrAccessor, NoShowsDoNotDivideByZero) {
  v1::TableSpec spec = Spec();
  spec.mutable_ctr()->set_show_scale(true);
  const float grad[] = {1, 1};
  CtrRow row(spec);
  row.Push(Push(0, 0, 1, grad));
  EXPECT_TRUE(std::isfinite(row.embed_w()));
}

// With PSLib's AdaGrad, embed_w and embedx have one sum each.
TEST(CtrAccessor, EmbedAndEmbedxHaveTheirOwnState) {
  v1::TableSpec spec = Spec();
  spec.mutable_rule()->set_kind(v1::UpdateRule::ADAGRAD_SHARED);
  spec.mutable_rule()->set_initial_g2sum(3);
  spec.mutable_ctr()->set_embedx_threshold(0);
  CtrRow row(spec);
  const float grad[] = {1, 2};
  row.Push(Push(1, 0, 2, grad));
  EXPECT_EQ(row.value[7], 4);      // embed_g2sum: 2^2
  EXPECT_EQ(row.value[11], 2.5f);  // embedx_g2sum: (1 + 4) / 2
  const float before = row.embed_w();
  row.Push(Push(1, 0, 2, grad));
  EXPECT_NEAR(row.embed_w(), before - 0.1 * 2 * std::sqrt(3.0 / 7), 1e-6);
}

TEST(CtrAccessor, TableWithoutEmbedxNeverCreatesIt) {
  v1::TableSpec spec = Spec();
  spec.set_dim(0);
  CtrRow row(spec);
  row.Push(Push(1000, 1000, 1, nullptr));
  EXPECT_FALSE(row.has_embedx);
  EXPECT_FLOAT_EQ(row.embed_w(), -0.1f);
}

}  // namespace
}  // namespace cistern
