// Compares shared passes whose keys the device collects with passes whose keys the host collects.
#include <gtest/gtest.h>

#include <set>

#include "test/worker/model/test_device.h"
#include "test/worker/pass/group_passes.h"
#include "worker/data/source/batch_builder.h"
#include "worker/model/batch/batch_stage.h"
#include "worker/model/batch/device_keys.h"

namespace cistern {
namespace {

absl::StatusOr<std::unique_ptr<data::KeyCollector>> Collector() {
  return model::CollectSharedKeysOn(model::TestDevice(), data::kSlots.size());
}

GroupPasses OnDevice(uint32_t size, const data::PassOptions& options,
                     const std::vector<data::Sample>& samples, const data::PassCursor& start = {}) {
  return MakeGroupPasses(size, options, samples, start, Collector);
}

TEST(SharedDeviceKeys, WorkersShareTheSamplesOfASingleWorkerInOrder) {
  const std::vector<data::Sample> samples = data::MakeSamples(103);
  for (const uint32_t size : {1u, 2u, 3u}) {
    data::PassOptions options = data::SmallPasses(10);
    options.num_epochs = 2;
    ExpectSamePasses(OnDevice(size, options, samples), data::AllPasses(options, samples));
    options.max_batches = 25;  // batches that span the end of an epoch
    options.segments = false;
    ExpectSamePasses(OnDevice(size, options, samples), data::AllPasses(options, samples));
  }
}

TEST(SharedDeviceKeys, TheLastBatchMayHaveFewerSamplesThanWorkers) {
  const std::vector<data::Sample> samples = data::MakeSamples(9);
  ExpectSamePasses(OnDevice(4, data::SmallPasses(4), samples),
                   data::AllPasses(data::SmallPasses(4), samples));
}

TEST(SharedDeviceKeys, ContinueFromACursorLikeASingleWorker) {
  const std::vector<data::Sample> samples = data::MakeSamples(100);
  const data::PassOptions options = data::SmallPasses(10);
  const data::PassCursor inside = data::AllPasses(options, samples)[0].CursorAfter(4);
  ExpectSamePasses(OnDevice(3, options, samples, inside),
                   data::AllPasses(options, samples, 1000, inside));
}

// Passes are shuffled, and cut by the memory of keys and batches.
TEST(SharedDeviceKeys, PassesMatchThoseOfTheHost) {
  const std::vector<data::Sample> samples = data::MakeSamples(400, 100000);
  data::PassOptions options = data::SmallPasses(20);
  options.shuffle = true;
  options.byte_budget = 30000;
  const GroupPasses passes = OnDevice(3, options, samples);
  const GroupPasses expected = MakeGroupPasses(3, options, samples);
  ASSERT_GT(expected[0].size(), 2u);
  for (size_t w = 0; w < passes.size(); ++w) {
    ASSERT_EQ(passes[w].size(), expected[w].size());
    for (size_t p = 0; p < passes[w].size(); ++p) {
      const data::Pass &here = passes[w][p], &there = expected[w][p];
      ASSERT_EQ(here.batches.size(), there.batches.size());
      for (size_t b = 0; b < here.batches.size(); ++b) {
        EXPECT_EQ(SamplesOfAll(passes, p, b), SamplesOfAll(expected, p, b));
        for (size_t i = 0; i < data::kSlots.size(); ++i) {
          EXPECT_EQ(here.batches[b].exchanged[i].taken, there.batches[b].exchanged[i].taken);
          EXPECT_EQ(here.batches[b].sparse[i].keys, there.batches[b].sparse[i].keys);
        }
      }
      for (size_t i = 0; i < data::kSlots.size(); ++i) {
        const auto keys = here.keys[i].keys(), others = there.keys[i].keys();
        EXPECT_EQ(std::multiset<Key>(keys.begin(), keys.end()),
                  std::multiset<Key>(others.begin(), others.end()));
      }
      EXPECT_TRUE(here.collected.empty());
    }
  }
}

// A worker forwards only the keys that a batch adds; keys of a dropped batch are added again.
TEST(SharedDeviceKeys, ABatchAddsOnlyNewKeys) {
  const auto block = [](const std::vector<Key>& keys) {
    data::SampleBlock samples;
    samples.Reset(1);
    samples.size = 1;
    samples.label = {0};
    samples.sparse[0].keys = keys;
    samples.sparse[0].offsets.push_back(static_cast<uint32_t>(keys.size()));
    return samples;
  };
  const absl::StatusOr<std::unique_ptr<data::KeyCollector>> made =
      model::CollectSharedKeysOn(model::TestDevice(), 1);
  ASSERT_TRUE(made.ok()) << made.status();
  data::KeyCollector& keys = **made;
  const auto add = [&](const std::vector<Key>& some) {
    EXPECT_TRUE(keys.Add(block(some)).ok());
    return std::multiset<Key>(keys.added(0).begin(), keys.added(0).end());
  };
  EXPECT_EQ(add({7, 5, 7}), (std::multiset<Key>{5, 7}));
  data::Pass pass;
  pass.batches.push_back(keys.Take(block({7, 5, 7})));
  EXPECT_EQ(add({5, 9, 9, 1}), (std::multiset<Key>{1, 9}));
  keys.Drop();
  EXPECT_EQ(add({5}), std::multiset<Key>());
  pass.batches.push_back(keys.Take(block({5})));
  EXPECT_EQ(add({}), std::multiset<Key>());
  EXPECT_EQ(add({9, 5}), std::multiset<Key>{9});
  keys.Drop();
  ASSERT_TRUE(keys.Finish(&pass).ok());
  ASSERT_EQ(pass.collected.size(), 1u);
  EXPECT_EQ(std::multiset<Key>(pass.collected[0].keys.begin(), pass.collected[0].keys.end()),
            (std::multiset<Key>{5, 7}));
  EXPECT_EQ(add({9, 5}), (std::multiset<Key>{5, 9}));  // a new pass
}

TEST(SharedDeviceKeys, ABatchThatDoesNotFitFailsAllWorkers) {
  const std::vector<data::Sample> samples = data::MakeSamples(30);
  const auto ends = group::RunGroup(3, [&](group::ProcessGroup& group) -> absl::Status {
    data::PassOptions options = data::SmallPasses(20);
    options.part = group.rank();
    options.parts = 3;
    options.byte_budget = group.rank() == 1 ? 1000 : 1000000;
    options.device_bound = true;
    CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<data::KeyCollector> keys, Collector());
    data::PassSource source(
        options, [&](uint32_t) { return std::make_unique<data::ListReader>(samples, 7); }, {},
        std::move(keys), CoordinatorOf(group, options.value_bytes));
    return source.Next().status();
  });
  for (const absl::Status& end : ends) {
    EXPECT_EQ(end.code(), absl::StatusCode::kResourceExhausted) << end;
    EXPECT_NE(end.message().find("lower solver.batchsize"), std::string::npos) << end;
  }
}

void ExpectSegmentsThere(const model::DeviceSparseBatch& there, data::HostSparseBatch here) {
  EXPECT_TRUE(here.segments_there);
  EXPECT_TRUE(here.segment_rows.empty());
  EXPECT_EQ(model::Here(there.rows, here.rows.size()), here.rows);
  data::SegmentBuilder().Build(&here);
  ASSERT_EQ(there.distinct, here.segment_rows.size());
  EXPECT_EQ(model::Here(there.segment_rows, there.distinct), here.segment_rows);
  EXPECT_EQ(model::Here(there.segment_offsets, there.distinct + 1), here.segment_offsets);
  EXPECT_EQ(model::Here(there.segment_outputs, here.segment_outputs.size()), here.segment_outputs);
}

TEST(SharedDeviceKeys, SegmentsAreMadeWhenABatchIsBrought) {
  if (model::TestDevice().kind() == DeviceKind::kCpu)
    GTEST_SKIP() << "the host makes those of a CPU";
  const GroupPasses passes = OnDevice(3, data::SmallPasses(30), data::MakeSamples(100));
  for (const std::vector<data::Pass>& own : passes) {
    model::BatchStage stage(model::TestDevice());
    for (const data::HostBatch& batch : own[0].batches) {
      const absl::StatusOr<model::DeviceBatch> view = stage.View(batch);
      ASSERT_TRUE(view.ok()) << view.status();
      if (&batch != &own[0].batches.back()) {
        ASSERT_TRUE(stage.Begin({&(&batch)[1]}).ok());
      }
      for (size_t i = 0; i < data::kSlots.size(); ++i) {
        ExpectSegmentsThere(view->sparse[i], batch.sparse[i]);
        ExpectSegmentsThere(view->exchanged[i].served, batch.exchanged[i].served);
      }
      stage.Release();
      const absl::StatusOr<model::DeviceBatch> plain =
          stage.View(batch, model::BatchStage::Use::kPredict);
      ASSERT_TRUE(plain.ok()) << plain.status();
      EXPECT_EQ(model::Here(plain->sparse[0].rows, batch.sparse[0].rows.size()),
                batch.sparse[0].rows);
      EXPECT_EQ(plain->exchanged[0].served.distinct, 0u);
      stage.Release();
    }
  }
}

// A step may allocate memory only where the communicator can wait with a deadline.
TEST(SharedDeviceKeys, RoomForABatchIncludesItsSegments) {
  if (model::TestDevice().kind() == DeviceKind::kCpu) GTEST_SKIP() << "a CPU takes no memory";
  const data::HostBatch batch =
      std::move(OnDevice(1, data::SmallPasses(30), data::MakeSamples(60))[0][0].batches[0]);
  model::BatchStage stage(model::TestDevice());
  EXPECT_FALSE(stage.HasRoom({&batch}));
  for (int place = 0; place < 3; ++place) {  // evaluation makes no segments
    ASSERT_TRUE(stage.View(batch, model::BatchStage::Use::kPredict).ok());
    stage.Release();
  }
  EXPECT_FALSE(stage.HasRoom({&batch}));
  for (int place = 0; place < 3; ++place) {
    ASSERT_TRUE(stage.View(batch).ok());
    stage.Release();
  }
  EXPECT_TRUE(stage.HasRoom({&batch}));
}

}  // namespace
}  // namespace cistern
