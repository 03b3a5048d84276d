#include "worker/data/prepare/multi_hot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_split.h"
#include "test/support/temp_folder.h"
#include "test/worker/data/scratch.h"

namespace cistern::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Of tables with 6, 7, 5 and 9 rows only the last has at least 8.
MultiHot OfFourTables() {
  return *MultiHot::Create({8, 3, MultiHotDistribution::kUniform, true}, {6, 7, 5, 9});
}

std::vector<Key> ValuesOf(MultiHot& transform, size_t feature, Key value) {
  std::vector<Key> values;
  transform.Append(feature, value, &values);
  return values;
}

TEST(MultiHot, ChangesLargeTablesOnly) {
  MultiHot transform = OfFourTables();
  EXPECT_THAT(ValuesOf(transform, 0, 1), ElementsAre(1));
  EXPECT_THAT(ValuesOf(transform, 1, 6), ElementsAre(6));
  EXPECT_THAT(ValuesOf(transform, 2, 0), ElementsAre(0));
  const std::vector<Key> values = ValuesOf(transform, 3, 4);
  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(values[0], 4u);
  for (const Key value : values) EXPECT_LT(value, 9u);
}

TEST(MultiHot, AValueAlwaysBecomesTheSameRow) {
  MultiHot transform = OfFourTables(), again = OfFourTables();
  ValuesOf(again, 3, 1);
  EXPECT_EQ(ValuesOf(transform, 3, 7), ValuesOf(again, 3, 7));
  EXPECT_EQ(ValuesOf(transform, 3, 7), ValuesOf(transform, 3, 7));
}

TEST(MultiHot, WeightsFollowTheirDistribution) {
  static constexpr uint64_t kRows = 1000;
  const auto low_share = [](MultiHotDistribution distribution) {
    MultiHot transform = *MultiHot::Create({0, 5, distribution, false}, {kRows});
    std::vector<Key> values;
    for (Key row = 0; row < kRows; ++row) transform.Append(0, row, &values);
    size_t low = 0, drawn = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_LT(values[i], kRows);
      if (i % 5 == 0) continue;  // the value itself
      ++drawn;
      low += values[i] < 10;
    }
    return static_cast<double>(low) / static_cast<double>(drawn);
  };
  EXPECT_NEAR(low_share(MultiHotDistribution::kUniform), 0.01, 0.006);
  // P(Lomax < 10) = 1 - 11^-0.25 = 0.451, plus the values that the modulus maps below 10.
  EXPECT_NEAR(low_share(MultiHotDistribution::kPareto), 0.455, 0.03);
}

TEST(MultiHot, CountsAndSavesFrequenciesBeforeAndAfter) {
  Scratch scratch;
  MultiHot transform = OfFourTables();
  for (const std::vector<Key>& sample : {std::vector<Key>{1, 2, 3, 4}, {1, 6, 0, 4}}) {
    for (size_t feature = 0; feature < 4; ++feature) ValuesOf(transform, feature, sample[feature]);
  }
  ASSERT_TRUE(transform.SaveFrequencies(Disk(), scratch.Path("f.tsv")).ok());
  const std::string text = scratch.Read("f.tsv");
  EXPECT_THAT(text, HasSubstr("0\tbefore\t1\t2\n0\tafter\t1\t2\n1\tbefore\t2\t1\n"));
  EXPECT_THAT(text, HasSubstr("3\tbefore\t4\t2\n"));
  uint64_t after = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<std::string> cells = absl::StrSplit(line, '\t');
    if (cells.size() == 4 && cells[0] == "3" && cells[1] == "after") after += std::stoull(cells[3]);
  }
  EXPECT_EQ(after, 6u);
}

TEST(MultiHot, RefusesSizesWithoutMeaning) {
  EXPECT_FALSE(MultiHot::Create({8, 0, MultiHotDistribution::kUniform, false}, {9}).ok());
  EXPECT_FALSE(MultiHot::Create({8, 2, MultiHotDistribution::kUniform, false}, {0}).ok());
}

}  // namespace
}  // namespace cistern::data
