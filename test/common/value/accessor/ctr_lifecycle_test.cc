// Compares the lifecycle of a ctr value with the formulas in the header, computed in double.
#include "common/value/accessor/ctr_lifecycle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/value/accessor/ctr_accessor.h"
#include "proto/control_plane.pb.h"

namespace cistern {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kToday = 20000;

v1::TableSpec Spec() {
  v1::TableSpec spec;
  spec.set_name("ctr");
  spec.set_accessor(v1::TableSpec::CTR);
  spec.set_dim(2);
  spec.mutable_ctr()->set_nonclk_coeff(0.5f);
  spec.mutable_ctr()->set_click_coeff(2.0f);
  spec.mutable_ctr()->set_embedx_threshold(5.0f);
  return spec;
}

v1::TableSpec DaySpec() {
  v1::TableSpec spec = Spec();
  spec.mutable_ctr()->set_day_id_decay(true);
  return spec;
}

struct CtrRow {
  CtrRow(const v1::TableSpec& spec, float unseen, float delta, double show, double click)
      : layout(ValueLayout::Create(spec).value()), value(layout.full_floats()) {
    layout.Initialize(1, value.data());
    value[CtrCells::kUnseenDays] = unseen;
    value[CtrCells::kDeltaScore] = delta;
    StoreDouble(&value[CtrCells::kShow], show);
    StoreDouble(&value[CtrCells::kClick], click);
  }

  bool IsSaved(v1::SaveMode mode, uint32_t day = 0) const {
    return CtrLifecycle(&layout, day).IsSaved(mode, value.data());
  }
  bool UpdateAfterSave(v1::SaveMode mode, uint32_t day = 0) {
    return CtrLifecycle(&layout, day).UpdateAfterSave(mode, value.data());
  }
  bool Shrink(uint32_t day = 0) { return CtrLifecycle(&layout, day).Shrink(value.data()); }
  float unseen() const { return value[CtrCells::kUnseenDays]; }
  float delta() const { return value[CtrCells::kDeltaScore]; }
  double show() const { return LoadDouble(&value[CtrCells::kShow]); }
  double click() const { return LoadDouble(&value[CtrCells::kClick]); }

  const ValueLayout layout;
  std::vector<float> value;
};

TEST(CtrLifecycle, DefaultsAreThoseOfPslib) {
  const CtrBounds bounds{v1::CtrRules()};
  EXPECT_EQ(bounds.base_threshold, 1.5f);
  EXPECT_EQ(bounds.delta_threshold, 0.25f);
  EXPECT_EQ(bounds.delta_keep_days, 16.0f);
  EXPECT_EQ(bounds.decay_rate, double{0.98f});
  EXPECT_EQ(bounds.delete_threshold, 0.8f);
  EXPECT_EQ(bounds.delete_after_unseen_days, 30.0f);
  v1::CtrRules zeros;
  zeros.set_base_threshold(0);  // a field set to 0 is not unset
  EXPECT_EQ(CtrBounds(zeros).base_threshold, 0.0f);
}

// The score of (3, 0) is 1.5, exactly base_threshold.
TEST(CtrLifecycle, EachBoundOfADeltaSaveIsExact) {
  EXPECT_TRUE(CtrRow(Spec(), 16, 0.25f, 3, 0).IsSaved(v1::DELTA));
  EXPECT_FALSE(CtrRow(Spec(), 17, 0.25f, 3, 0).IsSaved(v1::DELTA));
  EXPECT_FALSE(CtrRow(Spec(), 16, std::nextafter(0.25f, 0.0f), 3, 0).IsSaved(v1::DELTA));
  EXPECT_FALSE(CtrRow(Spec(), 16, 0.25f, std::nextafter(3.0, 0.0), 0).IsSaved(v1::DELTA));
}

TEST(CtrLifecycle, BaseSaveIgnoresDeltaScore) {
  EXPECT_TRUE(CtrRow(Spec(), 16, 0, 3, 0).IsSaved(v1::BASE));
  EXPECT_FALSE(CtrRow(Spec(), 16, -0.5f, 3, 0).IsSaved(v1::BASE));
  EXPECT_FALSE(CtrRow(Spec(), 17, 9, 3, 0).IsSaved(v1::BASE));
  EXPECT_FALSE(CtrRow(Spec(), 0, 9, 2.9, 0).IsSaved(v1::BASE));
}

TEST(CtrLifecycle, OtherSavesIncludeEveryValue) {
  EXPECT_TRUE(CtrRow(Spec(), 500, 0, 0, 0).IsSaved(v1::ALL));
  EXPECT_TRUE(CtrRow(Spec(), 500, 0, 0, 0).IsSaved(v1::BATCH));
}

TEST(CtrLifecycle, SaveResetsTheDeltaScoreOfSavedRows) {
  for (const v1::SaveMode mode : {v1::DELTA, v1::BASE}) {
    CtrRow held(Spec(), 3, 0.5f, 3, 1), other(Spec(), 3, 0.5f, 1, 0);
    EXPECT_TRUE(held.UpdateAfterSave(mode));
    EXPECT_EQ(held.delta(), 0);
    EXPECT_EQ(held.unseen(), 3);
    EXPECT_FALSE(held.UpdateAfterSave(mode));  // already reset
    EXPECT_FALSE(other.UpdateAfterSave(mode));
    EXPECT_EQ(other.delta(), 0.5f);
  }
}

TEST(CtrLifecycle, BatchSaveAgesEveryRowAndACheckpointNone) {
  CtrRow row(Spec(), 3, 0.5f, 0, 0);
  EXPECT_TRUE(row.UpdateAfterSave(v1::BATCH));
  EXPECT_EQ(row.unseen(), 4);
  EXPECT_EQ(row.delta(), 0.5f);
  EXPECT_FALSE(row.UpdateAfterSave(v1::ALL));
  EXPECT_EQ(row.unseen(), 4);
}

TEST(CtrLifecycle, ShrinkDecaysBeforeItDecides) {
  // The score is 0.5 * show. A show of 1.6 meets the threshold of 0.8, but not once it has decayed
  // to 1.568.
  CtrRow gone(Spec(), 0, 0, 1.6, 0), kept(Spec(), 0, 0, 1.6 / 0.97, 0);
  EXPECT_FALSE(gone.Shrink());
  EXPECT_TRUE(kept.Shrink());
  EXPECT_DOUBLE_EQ(kept.show(), 1.6 / 0.97 * double{0.98f});
  CtrRow clicked(Spec(), 30, 0, 5, 3);
  EXPECT_TRUE(clicked.Shrink());
  EXPECT_DOUBLE_EQ(clicked.show(), 5 * double{0.98f});
  EXPECT_DOUBLE_EQ(clicked.click(), 3 * double{0.98f});
  CtrRow old(Spec(), 31, 0, 5, 3);
  EXPECT_FALSE(old.Shrink());
}

TEST(CtrLifecycle, DayTableDecaysOnReadAndStoresNothing) {
  // 10 days back: 1.83 * 0.98^10 * 0.5 is just below 0.8; for 2.0 the result is above.
  CtrRow gone(DaySpec(), kToday - 10, 0, 1.83, 0), kept(DaySpec(), kToday - 10, 1, 2.0, 0);
  EXPECT_FALSE(gone.Shrink(kToday));
  EXPECT_TRUE(kept.Shrink(kToday));
  EXPECT_TRUE(kept.Shrink(kToday));
  EXPECT_EQ(kept.show(), 2.0);
  EXPECT_EQ(kept.unseen(), kToday - 10);

  CtrRow base(DaySpec(), kToday - 16, 1, 3 / std::pow(0.98f, 16) + 1e-9, 0);
  EXPECT_TRUE(base.IsSaved(v1::BASE, kToday));
  EXPECT_FALSE(base.IsSaved(v1::BASE, kToday + 1));
  EXPECT_FALSE(base.UpdateAfterSave(v1::BATCH, kToday));  // day numbers need no update
}

TEST(CtrLifecycle, DayTableDeletesRowsUnseenForTooLong) {
  CtrRow old(DaySpec(), kToday - 30, 0, 1000, 0);
  EXPECT_TRUE(old.Shrink(kToday));
  EXPECT_FALSE(old.Shrink(kToday + 1));
}

TEST(CtrLifecycle, DayAfterTodayCountsAsToday) {
  CtrRow row(DaySpec(), kToday + 5, 1, 3, 0);
  EXPECT_TRUE(row.Shrink(kToday));
  EXPECT_TRUE(row.IsSaved(v1::DELTA, kToday));
  SeeCtrValue(MakeCtrRule(row.layout), kToday, row.value.data());
  EXPECT_EQ(row.unseen(), kToday + 5);
  EXPECT_EQ(row.show(), 3);
}

// A value with a count of days has already decayed up to today and continues from there.
TEST(CtrLifecycle, CountBecomesADayAtTheNextShrink) {
  CtrRow row(DaySpec(), 5, 1, 8, 4);
  EXPECT_TRUE(row.IsSaved(v1::DELTA, kToday));
  EXPECT_TRUE(row.Shrink(kToday));
  EXPECT_EQ(row.unseen(), kToday - 5);
  EXPECT_DOUBLE_EQ(row.show() * std::pow(0.98f, 5), 8);
  EXPECT_TRUE(row.Shrink(kToday + 1));
  SeeCtrValue(MakeCtrRule(row.layout), kToday + 2, row.value.data());
  EXPECT_EQ(row.unseen(), kToday + 2);
  EXPECT_NEAR(row.show(), 8 * std::pow(0.98f, 2), 1e-6);
  EXPECT_NEAR(row.click(), 4 * std::pow(0.98f, 2), 1e-6);
}

TEST(CtrLifecycle, PushToADayTableDecaysTheValueAndStoresToday) {
  CtrRow row(DaySpec(), kToday - 3, 1, 100, 50);
  SeeCtrValue(MakeCtrRule(row.layout), kToday, row.value.data());
  EXPECT_EQ(row.unseen(), kToday);
  EXPECT_NEAR(row.show(), 100 * std::pow(0.98f, 3), 1e-5);
  EXPECT_NEAR(row.click(), 50 * std::pow(0.98f, 3), 1e-5);
  CtrRow counted(DaySpec(), 3, 1, 100, 50);
  SeeCtrValue(MakeCtrRule(counted.layout), kToday, counted.value.data());
  EXPECT_EQ(counted.unseen(), kToday);
  EXPECT_EQ(counted.show(), 100);
}

TEST(CtrLifecycle, PushWithoutADayResetsTheCount) {
  for (const v1::TableSpec& spec : {Spec(), DaySpec()}) {
    CtrRow row(spec, 9, 1, 100, 50);
    SeeCtrValue(MakeCtrRule(row.layout), 0, row.value.data());
    EXPECT_EQ(row.unseen(), 0);
    EXPECT_EQ(row.show(), 100);
  }
}

TEST(CtrLifecycle, TodayMustNotLookLikeACount) {
  EXPECT_TRUE(CheckDay(Spec(), 0).ok());
  EXPECT_TRUE(CheckDay(DaySpec(), kToday).ok());
  EXPECT_TRUE(CheckDay(DaySpec(), 33).ok());
  for (const uint32_t day : {0u, 32u, (1u << 24) + 1}) {
    const absl::Status status = CheckDay(DaySpec(), day);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("table 'ctr'"));
  }
}

TEST(CtrLifecycle, InvalidRulesAreRefused) {
  const auto refused = [](void (*change)(v1::CtrRules*)) {
    v1::TableSpec spec = Spec();
    change(spec.mutable_ctr());
    return ValueLayout::Create(spec).status().code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused([](v1::CtrRules* rules) { rules->set_show_click_decay_rate(0); }));
  EXPECT_TRUE(refused([](v1::CtrRules* rules) { rules->set_show_click_decay_rate(1.01f); }));
  EXPECT_TRUE(refused([](v1::CtrRules* rules) { rules->set_delta_keep_days(-1); }));
  EXPECT_TRUE(refused([](v1::CtrRules* rules) { rules->set_base_threshold(NAN); }));
  EXPECT_FALSE(refused([](v1::CtrRules* rules) { rules->set_show_click_decay_rate(1); }));
}

}  // namespace
}  // namespace cistern
