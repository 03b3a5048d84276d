#include "worker/export/xbox/xbox_value.h"
#include "common/value/accessor/ctr_accessor.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "absl/strings/escaping.h"

namespace cistern {
namespace {

ValueLayout Layout(v1::TableSpec::Accessor accessor, bool day_id_decay = false) {
  v1::TableSpec spec;
  spec.set_name("t");
  spec.set_accessor(accessor);
  spec.set_dim(4);
  if (accessor == v1::TableSpec::CTR) spec.mutable_ctr()->set_day_id_decay(day_id_decay);
  return ValueLayout::Create(spec).value();
}

struct CtrCells {
  double show = 0, click = 0;
  float weight = 0;
  std::vector<float> embedx = {};
};

std::vector<float> ValueOf(const ValueLayout& layout, const CtrCells& cells) {
  std::vector<float> value(layout.full_floats());
  StoreDouble(&value[CtrCells::kShow], cells.show);
  StoreDouble(&value[CtrCells::kClick], cells.click);
  value[CtrCells::kEmbedW] = cells.weight;
  std::copy(cells.embedx.begin(), cells.embedx.end(), &value[layout.weight_index()]);
  return value;
}

std::string Encoded(const CtrCells& cells, uint64_t* limited = nullptr) {
  const ValueLayout layout = Layout(v1::TableSpec::CTR);
  XboxEncoder encoder(&layout, 0);
  std::string bytes;
  encoder.Encode(ValueOf(layout, cells).data(), !cells.embedx.empty(), &bytes);
  if (limited != nullptr) *limited = encoder.limited();
  return bytes;
}

xbox::MioMFResult Decoded(const CtrCells& cells, uint64_t* limited = nullptr) {
  xbox::MioMFResult message;
  EXPECT_TRUE(message.ParseFromString(Encoded(cells, limited)));
  return message;
}

// The bytes are those of Google's protobuf for Python.
TEST(XboxValue, BytesAreThoseOfTheMessage) {
  EXPECT_EQ(absl::BytesToHexString(Encoded({3, 2, -0.5f, {1, -0.001f, 0, 1e9f}})),
            "1006182028ff073a0980100100feffffff0f");
  EXPECT_EQ(absl::BytesToHexString(Encoded({12, 0, 0, {0, 0, 0, -1e9f}})),
            "10183a08000000ffffffff0f");
}

TEST(XboxValue, ARowWithoutEmbedxHasNoWeightMf) {
  const auto message = Decoded({3, 0, 1});
  EXPECT_EQ(message.weight_mf_size(), 0);
  EXPECT_FALSE(message.has_click());
  EXPECT_FALSE(message.has_pred());
  EXPECT_EQ(message.weight_lr_person(), 1024);
}

TEST(XboxValue, ARowWithoutStatisticsIsWeightMf) {
  const ValueLayout layout = Layout(v1::TableSpec::EMBEDDING);
  XboxEncoder encoder(&layout, 0);
  const std::vector<float> value = {0.05f, -0.15f, 1.5f, 0};
  std::string bytes;
  encoder.Encode(value.data(), true, &bytes);
  EXPECT_EQ(absl::BytesToHexString(bytes), "3a0666b302801800");
}

TEST(XboxValue, HalvesRoundAwayFromZero) {
  EXPECT_EQ(Decoded({2.5, 0.0625, 1.5f / 1024}).show(), 3);
  EXPECT_EQ(Decoded({2.5, 0.0625, 1.5f / 1024}).click(), 1);
  EXPECT_EQ(Decoded({2.5, 0.0625, 1.5f / 1024}).weight_lr_person(), 2);
  EXPECT_EQ(Decoded({2.5, 0.0625, -1.5f / 1024}).weight_lr_person(), -2);
}

TEST(XboxValue, WeightsAreExactToHalfAStep) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> draw(-2000, 2000);
  for (int i = 0; i < 2000; ++i) {
    CtrCells cells = {1, 0, draw(random), {draw(random), draw(random), draw(random), draw(random)}};
    const auto message = Decoded(cells);
    EXPECT_LE(std::abs(message.weight_lr_person() / 1024.0 - cells.weight), 1.0 / 2048);
    for (int c = 0; c < 4; ++c) {
      EXPECT_LE(std::abs(message.weight_mf(c) / 1024.0 - cells.embedx[c]), 1.0 / 2048);
    }
  }
}

TEST(XboxValue, NumbersBeyondTheirFieldAreLimitedAndCounted) {
  uint64_t limited = 0;
  const auto message =
      Decoded({1e30, 1e30, -3e38f, {2097151.9f, 2097152.f, -2097152.f, -2097153.f}}, &limited);
  EXPECT_EQ(message.show(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(message.click(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(message.weight_lr_person(), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(message.weight_mf(0), 2147483520);
  EXPECT_EQ(message.weight_mf(1), std::numeric_limits<int32_t>::max());
  EXPECT_EQ(message.weight_mf(2), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(message.weight_mf(3), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(limited, 5u);
}

TEST(XboxValue, CountsAreThoseOfToday) {
  const ValueLayout layout = Layout(v1::TableSpec::CTR, /*day_id_decay=*/true);
  std::vector<float> value = ValueOf(layout, {100, 10, 0, {}});
  value[CtrCells::kUnseenDays] = 20000;
  XboxEncoder encoder(&layout, 20002);
  std::string bytes;
  encoder.Encode(value.data(), false, &bytes);
  xbox::MioMFResult message;
  ASSERT_TRUE(message.ParseFromString(bytes));
  EXPECT_EQ(message.show(), 96);   // 100 * 0.98^2 = 96.04
  EXPECT_EQ(message.click(), 77);  // 8 * 9.604 = 76.8
}

}  // namespace
}  // namespace cistern
