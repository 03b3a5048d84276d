#include "python/rows/live_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "test/worker/client/embedded_fleet.h"

namespace cistern {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr uint32_t kDim = 6;  // of kDeep
constexpr double kRate = 0.01;

class LiveRowsTest : public testing::Test {
 protected:
  LiveRows Rows() { return LiveRows::Create(*client_, kDeep).value(); }

  // The weights as servers have them.
  std::vector<float> Committed(const std::vector<Key>& keys) {
    const uint32_t floats = client_->layout(kDeep).full_floats();
    const uint32_t first = client_->layout(kDeep).weight_index();
    const Pulled pulled = PullKeys(*client_, kDeep, keys);
    EXPECT_TRUE(pulled.status.ok()) << pulled.status;
    std::vector<float> weights;
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto begin = pulled.values.begin() + static_cast<ptrdiff_t>(i * floats + first);
      weights.insert(weights.end(), begin, begin + kDim);
    }
    return weights;
  }
  static std::vector<float> Read(LiveRows& rows, const std::vector<Key>& keys,
                                 bool absent_is_zero = false) {
    std::vector<float> out(keys.size() * kDim, 99);
    EXPECT_EQ(rows.Read(keys, absent_is_zero, out.data()), absl::OkStatus());
    return out;
  }

  EmbeddedFleet fleet_{2};
  std::unique_ptr<ParameterClient> client_ = Writer(fleet_.Links());
};

TEST_F(LiveRowsTest, RefusesTablesWhoseRulesItDoesNotKnow) {
  EXPECT_THAT(LiveRows::Create(*client_, kCtr).status().message(), HasSubstr("ctr accessor"));
}

TEST_F(LiveRowsTest, FindsDistinctRowsInTheOrderOfTheirKeys) {
  LiveRows rows = Rows();
  LiveBatch batch;
  ASSERT_TRUE(rows.LookUp({7, 3, 7, ~Key{0}}, &batch).ok());
  EXPECT_THAT(batch.rows, ElementsAre(0, 1, 2));
  EXPECT_THAT(batch.places, ElementsAre(0, 1, 0, 2));
  EXPECT_EQ(batch.pulled, 3);
  ASSERT_TRUE(rows.LookUp({3, 4}, &batch).ok());
  EXPECT_THAT(batch.rows, ElementsAre(1, 3));
  EXPECT_THAT(batch.places, ElementsAre(0, 1));
  EXPECT_EQ(batch.pulled, 1);
  std::vector<float> weights(2 * kDim);
  rows.CopyWeights(batch.rows, weights.data());
  EXPECT_EQ(weights, Committed({3, 4}));
  ASSERT_TRUE(rows.LookUp({}, &batch).ok());
  EXPECT_TRUE(batch.rows.empty());
}

TEST_F(LiveRowsTest, StepsAsAdamDoes) {
  LiveRows rows = Rows();
  LiveBatch batch;
  ASSERT_TRUE(rows.LookUp({5, 6}, &batch).ok());
  const std::vector<float> before = Read(rows, {5, 6});
  const std::vector<float> grads(kDim, 0.5f);
  double m = 0, v = 0;
  std::vector<double> expected(before.begin(), before.begin() + kDim);
  for (int step = 1; step <= 3; ++step) {
    ASSERT_TRUE(rows.AddGradients({batch.rows[0]}, grads.data()).ok());
    ASSERT_TRUE(rows.AddGradients({batch.rows[0]}, grads.data()).ok());  // adds up to 1
    rows.Step(kRate, static_cast<uint64_t>(step));
    m = 0.9 * m + 0.1;
    v = 0.999 * v + 0.001;
    const double rate = kRate * std::sqrt(1 - std::pow(0.999, step)) / (1 - std::pow(0.9, step));
    for (double& weight : expected) weight -= rate * m / (std::sqrt(v) + 1e-7);
  }
  const std::vector<float> after = Read(rows, {5, 6});
  for (uint32_t k = 0; k < kDim; ++k) {
    EXPECT_NEAR(after[k], expected[k], 1e-5);
    EXPECT_EQ(after[kDim + k], before[kDim + k]);  // no gradient, no step
  }
  EXPECT_EQ(rows.changed(), 1);
}

TEST_F(LiveRowsTest, AddsAllGradientsOrNone) {
  LiveRows rows = Rows();
  LiveBatch batch;
  ASSERT_TRUE(rows.LookUp({5, 6}, &batch).ok());
  std::vector<float> grads(2 * kDim, 1.0f);
  grads.back() = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(rows.AddGradients(batch.rows, grads.data()).message(),
              HasSubstr("key 6 is not finite"));
  EXPECT_FALSE(rows.AddGradients({0, 2}, grads.data()).ok());  // there is no row 2
  const std::vector<float> before = Read(rows, {5, 6});
  rows.Step(kRate, 1);
  EXPECT_EQ(Read(rows, {5, 6}), before);
  EXPECT_EQ(rows.changed(), 0);
}

TEST_F(LiveRowsTest, ForgetsDroppedGradients) {
  LiveRows rows = Rows();
  LiveBatch batch;
  ASSERT_TRUE(rows.LookUp({5}, &batch).ok());
  const std::vector<float> grads(kDim, 1.0f), before = Read(rows, {5});
  ASSERT_TRUE(rows.AddGradients(batch.rows, grads.data()).ok());
  rows.DropGradients();
  rows.Step(kRate, 1);
  EXPECT_EQ(Read(rows, {5}), before);
}

TEST_F(LiveRowsTest, CommitsWhatChangedAndNothingElse) {
  LiveRows rows = Rows();
  LiveBatch batch;
  ASSERT_TRUE(rows.LookUp({5, 6}, &batch).ok());
  const std::vector<float> grads(kDim, 1.0f);
  ASSERT_TRUE(rows.AddGradients({batch.rows[1]}, grads.data()).ok());
  rows.Step(kRate, 1);
  const std::vector<float> first = Committed({5, 6}), now = Read(rows, {5, 6});
  ASSERT_TRUE(client_->BeginPass().ok());
  ASSERT_TRUE(rows.PushChanged().ok());
  EXPECT_EQ(Committed({5, 6}), first);  // not before the commit
  ASSERT_TRUE(client_->CommitPass().ok());
  EXPECT_EQ(rows.changed(), 1);
  rows.Committed();
  EXPECT_EQ(rows.changed(), 0);
  EXPECT_EQ(Committed({5, 6}), now);
  EXPECT_EQ(PullKeys(*client_, kDeep, {5, 6}, true).has_embedx, (std::vector<uint8_t>{kAbsent, 1}));
  rows.Clear();
  EXPECT_EQ(rows.size(), 0);
  EXPECT_EQ(Read(rows, {5, 6}), now);
}

TEST_F(LiveRowsTest, ReadsAbsentKeysAsAskedAndKeepsNone) {
  LiveRows rows = Rows();
  EXPECT_EQ(Read(rows, {8, 8}, true), std::vector<float>(2 * kDim, 0.0f));
  EXPECT_EQ(Read(rows, {8}), Committed({8}));
  EXPECT_EQ(rows.size(), 0);
  EXPECT_TRUE(Read(rows, {}).empty());
}

TEST_F(LiveRowsTest, RowsThatWerePulledAheadDoNotReplaceTrainedOnes) {
  LiveRows rows = Rows();
  EXPECT_THAT(rows.MissingOf({4, 5, 4}), UnorderedElementsAre(4, 5));
  const Pulled ahead = PullKeys(*client_, kDeep, {4, 5});
  LiveBatch batch;
  ASSERT_TRUE(rows.LookUp({5}, &batch).ok());
  ASSERT_TRUE(rows.AddGradients(batch.rows, std::vector<float>(kDim, 1.0f).data()).ok());
  rows.Step(kRate, 1);
  const std::vector<float> trained = Read(rows, {5});
  rows.Add({4, 5}, ahead.values.data());
  EXPECT_EQ(Read(rows, {5}), trained);
  EXPECT_TRUE(rows.MissingOf({4, 5}).empty());
  ASSERT_TRUE(rows.LookUp({4, 5}, &batch).ok());
  EXPECT_EQ(batch.pulled, 0);
  EXPECT_EQ(Read(rows, {4}), Committed({4}));
}

}  // namespace
}  // namespace cistern
