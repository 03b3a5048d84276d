// Passes whose keys the device collects, compared with those of the host.
#include "worker/model/batch/device_keys.h"

#include <gtest/gtest.h>

#include <set>

#include "common/base/hash.h"
#include "test/worker/data/sample_list.h"
#include "test/worker/model/test_device.h"
#include "worker/data/source/batch_builder.h"
#include "worker/data/source/key_collector.h"
#include "worker/model/batch/batch_stage.h"

namespace cistern::model {
namespace {

std::vector<data::Pass> PassesOnDevice(const data::PassOptions& options,
                                       const std::vector<data::Sample>& samples) {
  auto collector = CollectKeysOn(TestDevice(), data::kSlots.size());
  EXPECT_TRUE(collector.ok()) << collector.status();
  return data::AllPasses(options, samples, 1000, {}, *std::move(collector));
}

// Finds the rows of a batch on the host.
void FindRows(const data::Pass& pass, data::HostBatch* batch) {
  for (size_t i = 0; i < data::kSlots.size(); ++i) {
    data::HostSparseBatch& sparse = batch->sparse[i];
    sparse.rows.resize(sparse.keys.size());
    pass.keys[i].Find(sparse.keys, sparse.rows.data());
  }
}

TEST(DeviceKeys, PassesHaveTheSameBatchesAndKeysAsOnTheHost) {
  const std::vector<data::Sample> samples = data::MakeSamples(400);
  data::PassOptions options = data::SmallPasses(20);
  options.shuffle = true;
  options.byte_budget = 40000;
  const std::vector<data::Pass> expected = data::AllPasses(options, samples);
  std::vector<data::Pass> passes = PassesOnDevice(options, samples);
  ASSERT_GT(expected.size(), 3u);
  ASSERT_EQ(passes.size(), expected.size());
  for (size_t p = 0; p < passes.size(); ++p) {
    ASSERT_EQ(passes[p].batches.size(), expected[p].batches.size()) << p;
    for (size_t i = 0; i < data::kSlots.size(); ++i) {
      const auto keys = passes[p].keys[i].keys(), others = expected[p].keys[i].keys();
      EXPECT_EQ(std::set<Key>(keys.begin(), keys.end()),
                std::set<Key>(others.begin(), others.end()));
      EXPECT_EQ(keys.size(), others.size());
      EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end(),
                                 [](Key a, Key b) { return MixKey(a) < MixKey(b); }));
    }
    for (size_t b = 0; b < passes[p].batches.size(); ++b) {
      FindRows(passes[p], &passes[p].batches[b]);
      EXPECT_EQ(data::SamplesOf(passes[p], passes[p].batches[b]),
                data::SamplesOf(expected[p], expected[p].batches[b]));
    }
  }
}

TEST(DeviceKeys, RejectsABatchThatDoesNotFit) {
  const std::vector<data::Sample> samples = data::MakeSamples(30);
  data::PassOptions options = data::SmallPasses(20);
  options.byte_budget = 1000;
  auto collector = CollectKeysOn(TestDevice(), data::kSlots.size());
  ASSERT_TRUE(collector.ok()) << collector.status();
  data::PassSource source(
      options, [&](uint32_t) { return std::make_unique<data::ListReader>(samples, 1000); }, {},
      *std::move(collector));
  EXPECT_EQ(source.Next().status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(DeviceKeys, BatchStageComputesRowsAndSegments) {
  if (TestDevice().kind() == DeviceKind::kCpu) GTEST_SKIP() << "on a CPU the host finds the rows";
  const std::vector<data::Sample> samples = data::MakeSamples(100);
  const std::vector<data::Pass> passes = PassesOnDevice(data::SmallPasses(30), samples);
  ASSERT_EQ(passes.size(), 1u);
  BatchStage stage(TestDevice());
  for (const data::HostBatch& batch : passes[0].batches) {
    const absl::StatusOr<DeviceBatch> view = stage.View(batch);
    ASSERT_TRUE(view.ok()) << view.status();
    if (&batch != &passes[0].batches.back()) {
      ASSERT_TRUE(stage.Begin({&(&batch)[1]}).ok());
    }
    data::HostBatch expected = batch;
    FindRows(passes[0], &expected);
    data::SegmentBuilder().Build(&expected);
    for (size_t i = 0; i < data::kSlots.size(); ++i) {
      const DeviceSparseBatch& there = view->sparse[i];
      const data::HostSparseBatch& here = expected.sparse[i];
      ASSERT_EQ(there.distinct, here.segment_rows.size());
      EXPECT_EQ(Here(there.rows, here.rows.size()), here.rows);
      EXPECT_EQ(Here(there.segment_rows, there.distinct), here.segment_rows);
      EXPECT_EQ(Here(there.segment_offsets, there.distinct + 1), here.segment_offsets);
      EXPECT_EQ(Here(there.segment_outputs, here.segment_outputs.size()), here.segment_outputs);
    }
    stage.Release();
    // A prediction needs no segments.
    const absl::StatusOr<DeviceBatch> plain = stage.View(batch, BatchStage::Use::kPredict);
    ASSERT_TRUE(plain.ok()) << plain.status();
    EXPECT_EQ(Here(plain->sparse[0].rows, expected.sparse[0].rows.size()), expected.sparse[0].rows);
    EXPECT_EQ(plain->sparse[0].distinct, 0u);
    stage.Release();
  }
}

}  // namespace
}  // namespace cistern::model
