#include "worker/pass/sample_weights.h"

#include <gmock/gmock.h>

#include "test/worker/group/group_threads.h"

namespace cistern {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

data::HostBatch BatchOf(const std::vector<float>& labels, size_t size) {
  data::HostBatch batch;
  batch.size = batch.all = size;
  batch.label = labels;
  return batch;
}

TEST(SampleWeights, AreTheLastLabels) {
  data::Pass pass;
  pass.batches = {BatchOf({1, 0, 2, 0, 1, 0.5f}, 2), BatchOf({}, 0), BatchOf({1, 7}, 1)};
  TakeWeights(&pass);
  EXPECT_THAT(pass.batches[0].label, ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(pass.batches[0].weight, ElementsAre(2, 0.5f));
  EXPECT_THAT(pass.batches[1].label, IsEmpty());
  EXPECT_THAT(pass.batches[1].weight, IsEmpty());
  EXPECT_THAT(pass.batches[2].label, ElementsAre(1));
  EXPECT_THAT(pass.batches[2].weight, ElementsAre(7));
}

TEST(SampleWeights, AreScaledToAMeanOfOne) {
  data::Pass pass;
  pass.batches = {BatchOf({}, 4), BatchOf({}, 3), BatchOf({}, 3), BatchOf({}, 2)};
  pass.batches[0].weight = {1, 2, 5, 0};
  pass.batches[1].weight = {0.1f, 0.1f, 0.1f};
  pass.batches[2].weight = {0, 0, 0};
  pass.batches[3].weight = {1e9f, 1e-38f};
  ASSERT_TRUE(ScaleWeights(nullptr, &pass).ok());
  EXPECT_THAT(pass.batches[0].weight, ElementsAre(0.5f, 1, 2.5f, 0));
  EXPECT_THAT(pass.batches[1].weight, ElementsAre(1, 1, 1));
  EXPECT_THAT(pass.batches[2].weight, ElementsAre(0, 0, 0));
  EXPECT_THAT(pass.batches[3].weight, ElementsAre(2, 0));
}

TEST(SampleWeights, HaveTheMeanOfAllWorkers) {
  std::vector<std::vector<float>> weights = {{1, 2}, {}, {9}};
  group::ExpectAllWell(group::RunGroup(3, [&](group::ProcessGroup& group) -> absl::Status {
    data::Pass pass;
    pass.batches = {BatchOf({}, weights[group.rank()].size())};
    pass.batches[0].all = 3;
    pass.batches[0].weight = weights[group.rank()];
    CISTERN_RETURN_IF_ERROR(ScaleWeights(&group, &pass));
    weights[group.rank()] = pass.batches[0].weight;
    return absl::OkStatus();
  }));
  EXPECT_THAT(weights[0], ElementsAre(0.25f, 0.5f));
  EXPECT_THAT(weights[1], IsEmpty());
  EXPECT_THAT(weights[2], ElementsAre(2.25f));
}

}  // namespace
}  // namespace cistern
