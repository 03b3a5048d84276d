#include "app/data/criteo_data.h"

#include <gmock/gmock.h>

#include <fstream>

#include "test/support/temp_folder.h"

namespace cistern::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CriteoDays : public testing::Test {
 protected:
  // Two days of three rows: a label, 13 numbers and 26 values.
  void SetUp() override {
    for (int day = 0; day < 2; ++day) {
      const std::string path = folder_ / absl::StrCat("day_", day);
      std::ofstream file(path);
      for (int row = 0; row < 3; ++row) {
        file << row % 2;
        for (int i = 0; i < 13; ++i) file << "\t" << row + i;
        for (int i = 0; i < 26; ++i) file << "\ta" << row;
        file << "\n";
      }
      options_.days.push_back(path);
    }
    options_.out = folder_ / "out";
  }
  TempFolder folder_;
  CriteoDataOptions options_;
};

TEST_F(CriteoDays, BecomeADataSet) {
  const absl::StatusOr<CriteoData> data = PrepareCriteoData(options_, {});
  ASSERT_TRUE(data.ok()) << data.status();
  const nlohmann::ordered_json json = JsonOf(*data);
  EXPECT_EQ(json["train_samples"], 3);
  EXPECT_EQ(json["test_samples"], 3);
  EXPECT_EQ(json["train_positives"], 1);
  EXPECT_EQ(json["slots"], 26);
  EXPECT_EQ(json["slot_size_array"].size(), 26u);
}

TEST_F(CriteoDays, MayBeCrossed) {
  options_.cross = {"C1_C2", "C3_C26"};
  const absl::StatusOr<CriteoData> norm = PrepareCriteoData(options_, {});
  ASSERT_TRUE(norm.ok()) << norm.status();
  EXPECT_EQ(norm->crosses, 2u);
  EXPECT_EQ(norm->wide_slots, 1u);
  options_.format = data::DataFormat::kParquet;
  options_.out = folder_ / "parquet";
  const absl::StatusOr<CriteoData> parquet = PrepareCriteoData(options_, {});
  ASSERT_TRUE(parquet.ok()) << parquet.status();
  EXPECT_EQ(parquet->wide_slots, 2u);
}

TEST_F(CriteoDays, AreCrossedByTwoColumns) {
  for (const char* bad : {"C1", "C1_C27", "C0_C1", "C1_C2_C3", "I1_C1", "_", ""}) {
    options_.cross = {bad};
    const absl::Status status = PrepareCriteoData(options_, {}).status();
    EXPECT_THAT(status.message(), HasSubstr("expected two columns of C1 to C26")) << bad;
    EXPECT_THAT(OptionsOf(status), ElementsAre("cross"));
  }
}

}  // namespace
}  // namespace cistern::app
