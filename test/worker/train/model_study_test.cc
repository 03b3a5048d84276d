#include "worker/train/model_study.h"

#include <numeric>

#include "test/worker/train/job_fixture.h"
#include "worker/train/study_collector.h"

namespace cistern {
namespace {

TEST(PermuteSlot, MovesTheKeysOfOneSlotOnly) {
  data::HostBatch batch;
  batch.size = 3;
  batch.sparse.resize(1);
  batch.sparse[0].slot_num = 2;
  // (sample, slot): 0: {1} {2, 3}   1: {4} {}   2: {5} {6}
  batch.sparse[0].offsets = {0, 1, 3, 4, 4, 5, 6};
  batch.sparse[0].rows = {1, 2, 3, 4, 5, 6};
  const data::HostBatch permuted = PermuteSlot(batch, 0, {1, 1}, {1, 2, 0});
  // 0: {1} {}   1: {4} {6}   2: {5} {2, 3}
  EXPECT_EQ(permuted.sparse[0].offsets, (std::vector<uint32_t>{0, 1, 1, 2, 3, 4, 6}));
  EXPECT_EQ(permuted.sparse[0].rows, (std::vector<Row>{1, 4, 6, 5, 2, 3}));
}

TEST(PermuteSlot, MovesAllPlacesOfASequence) {
  data::HostBatch batch;
  batch.size = 2;
  batch.sparse.resize(1);
  batch.sparse[0].slot_num = 3;
  // (sample, place): 0: {1} {2} {}   1: {3} {4} {5}; the last two places are a sequence.
  batch.sparse[0].offsets = {0, 1, 2, 2, 3, 4, 5};
  batch.sparse[0].rows = {1, 2, 3, 4, 5};
  const data::HostBatch permuted = PermuteSlot(batch, 0, {1, 2}, {1, 0});
  // 0: {1} {4} {5}   1: {3} {2} {}
  EXPECT_EQ(permuted.sparse[0].offsets, (std::vector<uint32_t>{0, 1, 2, 3, 4, 5, 5}));
  EXPECT_EQ(permuted.sparse[0].rows, (std::vector<Row>{1, 4, 5, 3, 2}));
}

TEST(PermuteColumn, MovesOneColumnOnly) {
  data::HostBatch batch;
  batch.size = 2;
  batch.dense = {1, 2, 3, 4};
  EXPECT_EQ(PermuteColumn(batch, 1, 2, {1, 0}).dense, (std::vector<float>{1, 4, 3, 2}));
}

class Study : public JobFixture {};

// The label depends on all four slots alike (even keys click), so each is important, and a slot
// that the model has never seen vary would not be.
TEST_F(Study, FindsThatEverySlotMatters) {
  EmbeddedFleet fleet(1);
  auto client = Connect(fleet);
  const model::ModelConfig config = Config({"solver.num_epochs=12"});
  const auto summary = Train(config, *client, Options("study"));
  ASSERT_TRUE(summary.ok()) << summary.status();
  const auto study = StudyModel(config, *client, {}, 100000, JobOptions());
  ASSERT_TRUE(study.ok()) << study.status();
  EXPECT_EQ(study->samples, 1000u);
  ASSERT_TRUE(study->auc);
  EXPECT_DOUBLE_EQ(*study->auc, *summary->score.auc);
  ASSERT_EQ(study->slots.size(), kSlots);
  for (const report::SlotStudy& slot : study->slots) {
    EXPECT_GT(slot.importance.auc_drop, 0.03);
    EXPECT_GT(slot.importance.logloss_rise, 0);
    EXPECT_EQ(slot.occurrences, 1000u);
    EXPECT_EQ(slot.longest, 1u);
    EXPECT_EQ(slot.empty_samples, 0u);
    EXPECT_LE(slot.keys, 300u);
    EXPECT_GE(slot.keys, 250u);
    EXPECT_LT(slot.unseen_keys, 5u);
  }
}

TEST_F(Study, CountsUnseenKeysBySlot) {
  EmbeddedFleet fleet(1);
  auto client = Connect(fleet);
  const model::ModelConfig config = Config();
  ASSERT_TRUE(Train(config, *client, Options("study")).ok());
  WriteSamples(folder_ + "/other.norm", 500, 600, 3);  // of each slot but the first, other keys
  const auto study = StudyModel(config, *client, {folder_ + "/other.norm"}, 500, JobOptions());
  ASSERT_TRUE(study.ok()) << study.status();
  uint64_t unseen = 0;
  for (const report::SlotStudy& slot : study->slots) unseen += slot.unseen_occurrences;
  // Trained keys are 0 to 1199; here slot s holds 600 s to 600 s + 599: all of slots 2 and 3 are
  // new.
  EXPECT_EQ(study->slots[3].unseen_occurrences, 500u);
  EXPECT_EQ(study->slots[3].unseen_keys, study->slots[3].keys);
  EXPECT_LT(study->slots[0].unseen_occurrences, 20u);
  EXPECT_LT(unseen, 1050u);
}

TEST_F(Study, RefusesNoSamples) {
  EmbeddedFleet fleet(1);
  auto client = Connect(fleet);
  EXPECT_EQ(StudyModel(Config(), *client, {}, 0, JobOptions()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace cistern
