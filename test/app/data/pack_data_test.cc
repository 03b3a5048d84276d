#include "app/data/pack_data.h"

#include <gmock/gmock.h>

#include <fstream>

#include "test/support/temp_folder.h"

namespace cistern::app {
namespace {

using testing::ElementsAre;

class PackedData : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream file(folder_ / "rows.csv");
    file << "label,a\n";
    for (int row = 0; row < kRows; ++row) file << row % 2 << ",x" << row << "\n";
    options_.input = {folder_ / "rows.csv"};
    options_.out = folder_ / "shards";
    options_.samples_per_shard = 6000;
  }
  static constexpr int kRows = 9000;  // progress is told every few thousand

  TempFolder folder_;
  PackDataOptions options_;
};

TEST_F(PackedData, IsCountedAndDescribed) {
  JobCalls calls;
  Amount last;
  calls.amount = [&](const Amount& amount) { last = amount; };
  const absl::StatusOr<data::PackSummary> summary = PackData(options_, calls);
  ASSERT_TRUE(summary.ok()) << summary.status();
  const nlohmann::ordered_json json = JsonOf(*summary);
  EXPECT_EQ(json["samples"], kRows);
  EXPECT_EQ(json["shards"], 2);
  EXPECT_EQ(json["bytes"], PackedBytes(*summary));
  EXPECT_TRUE(json["skipped"].empty());
  EXPECT_EQ(last.unit, "samples");
  EXPECT_GT(last.done, 1000u);
}

TEST_F(PackedData, NeedsWhatItNames) {
  options_.input = {folder_ / "none.csv"};
  EXPECT_TRUE(absl::IsInvalidArgument(PackData(options_, {}).status()));
  options_.input.clear();
  options_.model = folder_ / "none.json";
  EXPECT_TRUE(absl::IsInvalidArgument(PackData(options_, {}).status()));
}

TEST_F(PackedData, HasNoOverridesWithoutAModel) {
  options_.set = {"solver.batchsize=4"};
  EXPECT_THAT(OptionsOf(PackData(options_, {}).status()), ElementsAre("set", "model"));
}

TEST_F(PackedData, EndsWhenItIsTold) {
  const std::atomic<bool> stop = true;
  JobCalls calls;
  calls.stop = &stop;
  EXPECT_TRUE(absl::IsCancelled(PackData(options_, calls).status()));
}

}  // namespace
}  // namespace cistern::app
