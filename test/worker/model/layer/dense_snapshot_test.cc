#include "worker/model/layer/dense_snapshot.h"

#include <gtest/gtest.h>

#include <thread>

#include "test/worker/model/test_device.h"

namespace cistern::model {
namespace {

constexpr size_t kParameters = 3000;

// A model's parameters with AdaGrad's state and one running statistic, all of value `first`.
class DenseSnapshotTest : public testing::Test {
 protected:
  void SetUp() override {
    parameters_.Add(kParameters, {WeightInit::Kind::kConstant, 1});
    parameters_.AddRunning(1, 0.5f);
    RuleParams adagrad;
    adagrad.kind = RuleKind::kAdagrad;
    const absl::Status status = parameters_.Allocate(adagrad, 1, ElementType::kFloat, TestDevice());
    ASSERT_TRUE(status.ok()) << status;
    Write(0);
  }
  // Sets value v of the dense table to base + v, and the running statistic to base.
  void Write(float base) {
    Stream& stream = TestDevice().stream();
    ASSERT_TRUE(parameters_.Write(0, Values(base), stream).ok());
    ASSERT_TRUE(parameters_.Write(1, {base}, stream).ok());
  }
  static std::vector<float> Values(float base) {
    std::vector<float> values;
    for (size_t v = 0; v < 2 * kParameters; ++v) values.push_back(base + static_cast<float>(v));
    return values;
  }
  static void ExpectValues(DenseSnapshot& snapshot, float base) {
    ASSERT_EQ(snapshot.tables(), 2u);
    const auto dense = snapshot.Read(0), running = snapshot.Read(1);
    ASSERT_TRUE(dense.ok() && running.ok());
    EXPECT_EQ(*dense, absl::MakeConstSpan(Values(base)));
    EXPECT_EQ(*running, absl::MakeConstSpan({base}));
  }

  Parameters parameters_;
};

TEST_F(DenseSnapshotTest, KeepsTheValuesOfItsMoment) {
  DenseSnapshot snapshot = DenseSnapshot::Create(TestDevice()).value();
  EXPECT_EQ(snapshot.tables(), 0u);
  ASSERT_TRUE(snapshot.Take(parameters_).ok());
  Write(0.25f);
  std::thread([&] { ExpectValues(snapshot, 0); }).join();
  ASSERT_TRUE(snapshot.Take(parameters_).ok());
  std::thread([&] { ExpectValues(snapshot, 0.25f); }).join();
}

TEST_F(DenseSnapshotTest, EqualsWhatTheTrainingThreadReads) {
  DenseSnapshot snapshot = DenseSnapshot::Create(TestDevice()).value();
  ASSERT_TRUE(snapshot.Take(parameters_).ok());
  for (const size_t i : {0, 1}) {
    EXPECT_EQ(*snapshot.Read(i), absl::MakeConstSpan(*parameters_.Read(i, TestDevice())));
  }
}

}  // namespace
}  // namespace cistern::model
