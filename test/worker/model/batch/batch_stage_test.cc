#include "worker/model/batch/batch_stage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "test/worker/model/model_bench.h"

namespace cistern::model {
namespace {

data::HostBatch RandomBatch(size_t size, uint32_t seed) {
  DataConfig data;
  data.label_dim = 2;
  data.dense_dim = 3;
  data.sparse.resize(2);
  data.sparse[0].slot_num = 2;
  data.sparse[1].slot_num = 5;
  return MakeHostBatch(data, size, 50, 3, seed);
}

void ExpectThere(const DeviceBatch& view, const data::HostBatch& batch) {
  EXPECT_EQ(view.size, batch.size);
  EXPECT_EQ(view.label_dim, batch.size == 0 ? 0 : 2);
  EXPECT_EQ(Here(view.label, batch.label.size()), batch.label);
  EXPECT_EQ(Here(view.dense, batch.dense.size()), batch.dense);
  ASSERT_EQ(view.sparse.size(), batch.sparse.size());
  for (size_t i = 0; i < batch.sparse.size(); ++i) {
    const DeviceSparseBatch& there = view.sparse[i];
    const data::HostSparseBatch& here = batch.sparse[i];
    EXPECT_EQ(there.distinct, here.segment_rows.size());
    EXPECT_EQ(Here(there.offsets, here.offsets.size()), here.offsets);
    EXPECT_EQ(Here(there.rows, here.rows.size()), here.rows);
    EXPECT_EQ(Here(there.segment_rows, here.segment_rows.size()), here.segment_rows);
    EXPECT_EQ(Here(there.segment_offsets, here.segment_offsets.size()), here.segment_offsets);
    EXPECT_EQ(Here(there.segment_outputs, here.segment_outputs.size()), here.segment_outputs);
  }
}

TEST(BatchStage, CopiesAllArraysOfABatch) {
  BatchStage stage(TestDevice());
  for (const size_t size : {1, 40, 0, 7, 300}) {
    const data::HostBatch batch = RandomBatch(size, static_cast<uint32_t>(size));
    const absl::StatusOr<DeviceBatch> view = stage.View(batch);
    ASSERT_TRUE(view.ok()) << view.status();
    ExpectThere(*view, batch);
    stage.Release();
  }
}

TEST(BatchStage, CopiesTheNextBatchesWhileTheCurrentOneIsUsed) {
  BatchStage stage(TestDevice());
  std::vector<data::HostBatch> batches;
  for (uint32_t i = 0; i < 6; ++i) batches.push_back(RandomBatch(20 + i, i));
  for (size_t i = 0; i < batches.size(); ++i) {
    const absl::StatusOr<DeviceBatch> view = stage.View(batches[i]);
    ASSERT_TRUE(view.ok()) << view.status();
    std::vector<const data::HostBatch*> next;
    for (size_t k = i + 1; k < std::min(i + 1 + BatchStage::kAhead, batches.size()); ++k) {
      next.push_back(&batches[k]);
    }
    ASSERT_TRUE(stage.Begin(next).ok());
    ExpectThere(*view, batches[i]);
    stage.Release();
  }
}

// A new batch can be at the address of one that was viewed.
TEST(BatchStage, DoesNotReuseTheViewOfAnEarlierBatchAtTheSameAddress) {
  BatchStage stage(TestDevice());
  data::HostBatch batch = RandomBatch(9, 1);
  ASSERT_TRUE(stage.View(batch).ok());
  stage.Release();
  batch = RandomBatch(12, 2);
  const absl::StatusOr<DeviceBatch> view = stage.View(batch);
  ASSERT_TRUE(view.ok()) << view.status();
  ExpectThere(*view, batch);
}

// A run that stops inside a pass leaves batches begun, and frees them.
TEST(BatchStage, ABegunBatchIsNotTakenForALaterOneAtItsAddress) {
  BatchStage stage(TestDevice());
  std::optional<data::HostBatch> batch = RandomBatch(9, 1);
  const data::HostBatch* const address = &*batch;
  ASSERT_TRUE(stage.Begin({address}).ok());
  batch.reset();
  batch = RandomBatch(9, 2);
  ASSERT_EQ(&*batch, address);
  const absl::StatusOr<DeviceBatch> view = stage.View(*batch);
  ASSERT_TRUE(view.ok()) << view.status();
  ExpectThere(*view, *batch);
  stage.Release();
}

// An evaluation between two steps overwrites batches that were begun.
TEST(BatchStage, ABegunBatchCanBeAbandoned) {
  BatchStage stage(TestDevice());
  const data::HostBatch begun = RandomBatch(9, 1), other = RandomBatch(7, 4);
  const data::HostBatch first = RandomBatch(12, 2), second = RandomBatch(5, 3);
  ASSERT_TRUE(stage.Begin({&begun, &other}).ok());
  ASSERT_TRUE(stage.Begin({&begun, &second}).ok());
  for (const data::HostBatch* batch : {&begun, &second, &first, &other, &begun}) {
    const absl::StatusOr<DeviceBatch> view = stage.View(*batch);
    ASSERT_TRUE(view.ok()) << view.status();
    ExpectThere(*view, *batch);
    stage.Release();
  }
}

}  // namespace
}  // namespace cistern::model
