#include "worker/model/layer/parameters.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>

#include "test/worker/model/test_device.h"

namespace cistern::model {
namespace {

constexpr WeightInit kOnes = {WeightInit::Kind::kConstant, 1};

void Allocate(const RuleParams& rule, Parameters& parameters) {
  const absl::Status status = parameters.Allocate(rule, 1, ElementType::kFloat, TestDevice());
  ASSERT_TRUE(status.ok()) << status;
}
std::vector<float> Read(const Parameters& parameters, size_t i) {
  return parameters.Read(i, TestDevice()).value();
}
absl::Status Write(size_t i, const std::vector<float>& values, Parameters& parameters) {
  return parameters.Write(i, values, TestDevice().stream());
}
// Copies floats from device memory.
std::vector<float> Floats(const float* there, size_t count) {
  std::vector<float> here(count);
  CopyToHost(there, here.data(), count * sizeof(float), TestDevice().stream());
  EXPECT_TRUE(TestDevice().stream().Wait().ok());
  return here;
}

TEST(Parameters, FormTablesWithTheStateOfTheRule) {
  Parameters parameters;
  parameters.Add(3, kOnes);
  const Parameter second = parameters.Add(2, {WeightInit::Kind::kConstant, 7});
  const Parameter running = parameters.AddRunning(4, 0.5f);
  RuleParams adam;
  adam.kind = RuleKind::kAdam;
  Allocate(adam, parameters);

  EXPECT_EQ(second.offset, 3u);
  const std::vector<v1::DenseTableSpec> tables = parameters.tables();
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[0].name(), "dense");
  EXPECT_EQ(tables[0].rows(), 5u);
  ASSERT_EQ(tables[0].columns_size(), 3);
  EXPECT_EQ(tables[0].columns(2), "v");
  EXPECT_EQ(tables[1].name(), "dense_state");
  EXPECT_EQ(tables[1].rows(), 4u);

  EXPECT_EQ(Read(parameters, 0), (std::vector<float>{1, 0, 0, 1, 0, 0, 1, 0, 0, 7, 0, 0, 7, 0, 0}));
  EXPECT_EQ(Read(parameters, 1), std::vector<float>(4, 0.5f));
  EXPECT_EQ(Floats(parameters.running(running), 4)[3], 0.5f);
}

TEST(Parameters, WithoutASeedWeightsAreZeroAndStatisticsAsEver) {
  Parameters parameters;
  parameters.Add(2, kOnes);
  parameters.AddRunning(1, 0.5f);
  RuleParams sgd;
  sgd.kind = RuleKind::kSgd;
  ASSERT_TRUE(parameters.Allocate(sgd, std::nullopt, ElementType::kFloat, TestDevice()).ok());
  EXPECT_EQ(Read(parameters, 0), (std::vector<float>{0, 0}));
  EXPECT_EQ(Read(parameters, 1), (std::vector<float>{0.5f}));
}

TEST(Parameters, ReadReturnsTheWrittenValues) {
  Parameters parameters;
  parameters.Add(2, kOnes);
  parameters.AddRunning(1, 0);
  RuleParams adam;
  adam.kind = RuleKind::kAdam;
  Allocate(adam, parameters);
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  ASSERT_TRUE(Write(0, values, parameters).ok());
  EXPECT_EQ(Read(parameters, 0), values);
  EXPECT_EQ(Floats(parameters.weights(), 2), (std::vector<float>{1, 4}));
  // m of both parameters, then v of both.
  EXPECT_EQ(Floats(parameters.states(), 4), (std::vector<float>{2, 5, 3, 6}));
  ASSERT_TRUE(Write(1, {9}, parameters).ok());
  EXPECT_EQ(Read(parameters, 1), std::vector<float>{9});
}

TEST(Parameters, WriteRejectsWrongSizesAndNonFiniteNumbers) {
  Parameters parameters;
  parameters.Add(2, kOnes);
  Allocate(RuleParams(), parameters);
  EXPECT_EQ(Write(0, {1, 2, 3}, parameters).message(),
            "dense table 0 has 2 rows of 1 columns; got 3 values");
  EXPECT_EQ(Write(0, {1, std::numeric_limits<float>::infinity()}, parameters).message(),
            "dense table 0, row 1, column 0: not a finite number");
  EXPECT_EQ(Read(parameters, 0), (std::vector<float>{1, 1}));
}

TEST(Parameters, RunningStatisticsChangeOnlyIfUpdatesAreAllowed) {
  Parameters parameters;
  const Parameter mean = parameters.AddRunning(1, 2);
  Allocate(RuleParams(), parameters);
  ASSERT_EQ(parameters.tables().size(), 1u);  // without weights it is the only table
  parameters.StartStep(TestDevice().stream());
  EXPECT_EQ(Floats(parameters.next_running(mean), 1)[0], 2);
  const float next = 3;
  CopyToDevice(&next, parameters.next_running(mean), sizeof(next), TestDevice().stream());
  EXPECT_EQ(Read(parameters, 0), std::vector<float>{2});
  DeviceBuffer<op::GradientScaler> scaler;
  ASSERT_TRUE(scaler.Grow(1, TestDevice(), "scaler").ok());  // zeros: updates are skipped
  parameters.Advance(scaler.data(), TestDevice().stream());
  EXPECT_EQ(Read(parameters, 0), std::vector<float>{2});
  const op::GradientScaler open;
  CopyToDevice(&open, scaler.data(), sizeof(open), TestDevice().stream());
  parameters.Advance(scaler.data(), TestDevice().stream());
  EXPECT_EQ(Read(parameters, 0), std::vector<float>{3});
  parameters.StartStep(TestDevice().stream());
  EXPECT_EQ(Floats(parameters.next_running(mean), 1)[0], 3);
}

}  // namespace
}  // namespace cistern::model
