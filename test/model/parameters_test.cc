#include "worker/model/parameters.h"

#include <gtest/gtest.h>

#include <limits>

namespace cistern {
namespace {

constexpr WeightInit kOnes = {WeightInit::Kind::kConstant, 1};

TEST(Parameters, AreTablesWithTheStateOfTheRule) {
  Parameters parameters;
  parameters.Add(3, kOnes);
  const Parameter second = parameters.Add(2, {WeightInit::Kind::kConstant, 7});
  const Parameter running = parameters.AddRunning(4, 0.5f);
  RuleParams adam;
  adam.kind = RuleKind::kAdam;
  parameters.Allocate(adam, 1);

  EXPECT_EQ(second.offset, 3u);
  const std::vector<v1::DenseTableSpec> tables = parameters.tables();
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[0].name(), "dense");
  EXPECT_EQ(tables[0].rows(), 5u);
  ASSERT_EQ(tables[0].columns_size(), 3);
  EXPECT_EQ(tables[0].columns(2), "v");
  EXPECT_EQ(tables[1].name(), "dense_state");
  EXPECT_EQ(tables[1].rows(), 4u);

  EXPECT_EQ(parameters.Read(0), (std::vector<float>{1, 0, 0, 1, 0, 0, 1, 0, 0, 7, 0, 0, 7, 0, 0}));
  EXPECT_EQ(parameters.Read(1), std::vector<float>(4, 0.5f));
  EXPECT_EQ(parameters.running(running)[3], 0.5f);
}

TEST(Parameters, ReadBackWhatWasWritten) {
  Parameters parameters;
  parameters.Add(2, kOnes);
  parameters.AddRunning(1, 0);
  RuleParams adam;
  adam.kind = RuleKind::kAdam;
  parameters.Allocate(adam, 1);
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  ASSERT_TRUE(parameters.Write(0, values).ok());
  EXPECT_EQ(parameters.Read(0), values);
  EXPECT_EQ(parameters.weights()[1], 4);
  EXPECT_EQ(parameters.states()[0], 2);  // m of the first, m of the second, then v
  EXPECT_EQ(parameters.states()[1], 5);
  EXPECT_EQ(parameters.states()[2], 3);
  ASSERT_TRUE(parameters.Write(1, {9}).ok());
  EXPECT_EQ(parameters.Read(1), std::vector<float>{9});
}

TEST(Parameters, RefuseOtherSizesAndNumbersThatAreNotFinite) {
  Parameters parameters;
  parameters.Add(2, kOnes);
  parameters.Allocate(RuleParams(), 1);
  EXPECT_EQ(parameters.Write(0, {1, 2, 3}).message(),
            "dense table 0 has 2 rows of 1 columns; got 3 values");
  EXPECT_EQ(parameters.Write(0, {1, std::numeric_limits<float>::infinity()}).message(),
            "dense table 0, row 1, column 0: not a finite number");
  EXPECT_EQ(parameters.Read(0), (std::vector<float>{1, 1}));
}

TEST(Parameters, RunningStatisticsChangeWhenAStepIsKept) {
  Parameters parameters;
  const Parameter mean = parameters.AddRunning(1, 2);
  parameters.Allocate(RuleParams(), 1);
  ASSERT_EQ(parameters.tables().size(), 1u);  // without weights it is the only table
  parameters.StartStep();
  *parameters.next_running(mean) += 1;
  EXPECT_EQ(parameters.Read(0), std::vector<float>{2});
  parameters.Advance();
  EXPECT_EQ(parameters.Read(0), std::vector<float>{3});
  parameters.StartStep();
  EXPECT_EQ(*parameters.next_running(mean), 3);
}

}  // namespace
}  // namespace cistern
