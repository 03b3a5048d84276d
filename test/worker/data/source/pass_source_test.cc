// Compares passes with a naive implementation: samples in a list, keys in a map.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "test/worker/data/sample_list.h"

namespace cistern::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void ExpectSegments(const HostSparseBatch& sparse) {
  std::map<Row, std::vector<uint32_t>> outputs;  // by row; ascending
  for (size_t output = 0; output + 1 < sparse.offsets.size(); ++output) {
    for (uint32_t k = sparse.offsets[output]; k < sparse.offsets[output + 1]; ++k) {
      outputs[sparse.rows[k]].push_back(static_cast<uint32_t>(output));
    }
  }
  std::vector<Row> rows;
  std::vector<uint32_t> offsets = {0}, all;
  for (const auto& [row, places] : outputs) {
    rows.push_back(row);
    all.insert(all.end(), places.begin(), places.end());
    offsets.push_back(static_cast<uint32_t>(all.size()));
  }
  EXPECT_EQ(sparse.segment_rows, rows);
  EXPECT_EQ(sparse.segment_offsets, offsets);
  EXPECT_EQ(sparse.segment_outputs, all);
}

TEST(PassSource, BatchesHoldTheSamplesInOrderAndTheLastIsShort) {
  const std::vector<Sample> samples = MakeSamples(25);
  for (size_t step : {1, 7, 1000}) {
    const std::vector<Pass> passes = AllPasses(SmallPasses(10), samples, step);
    ASSERT_EQ(passes.size(), 1u);
    EXPECT_EQ(passes[0].samples, 25u);
    EXPECT_TRUE(passes[0].ends_epoch);
    std::vector<Sample> got;
    for (const auto& batch : BatchesOf(passes)) got.insert(got.end(), batch.begin(), batch.end());
    EXPECT_EQ(got, samples);
    EXPECT_EQ(passes[0].batches.size(), 3u);
    EXPECT_EQ(passes[0].batches[2].size, 5u);
  }
}

TEST(PassSource, KeysAreTheDistinctKeysOfThePass) {
  const std::vector<Sample> samples = MakeSamples(100);
  const std::vector<Pass> passes = AllPasses(SmallPasses(10), samples);
  for (size_t i = 0; i < kSlots.size(); ++i) {
    std::set<Key> expected;
    for (const Sample& sample : samples) {
      for (const auto& slot : sample.keys[i]) expected.insert(slot.begin(), slot.end());
    }
    const auto keys = passes[0].keys[i].keys();
    EXPECT_EQ(std::set<Key>(keys.begin(), keys.end()), expected);
    EXPECT_EQ(keys.size(), expected.size());
  }
}

TEST(PassSource, SegmentsAreTheOccurrencesSortedByRow) {
  // Small and large batches use different sort algorithms.
  for (size_t batchsize : {1, 10, 3000}) {
    for (uint64_t key_max : {3, 300, 100000}) {
      const auto passes = AllPasses(SmallPasses(batchsize), MakeSamples(3000, key_max));
      for (const HostBatch& batch : passes[0].batches) {
        for (const HostSparseBatch& sparse : batch.sparse) ExpectSegments(sparse);
      }
    }
  }
}

TEST(PassSource, SegmentArraysStayEmptyWhenDisabled) {
  PassOptions options = SmallPasses(10);
  options.segments = false;
  const std::vector<Pass> passes = AllPasses(options, MakeSamples(30));
  ASSERT_EQ(passes[0].batches.size(), 3u);
  for (const HostBatch& batch : passes[0].batches) {
    EXPECT_TRUE(batch.sparse[0].segment_rows.empty());
    EXPECT_TRUE(batch.sparse[0].segment_offsets.empty());
    EXPECT_TRUE(batch.sparse[0].segment_outputs.empty());
  }
}

TEST(PassSource, EveryEpochEndsAPass) {
  PassOptions options = SmallPasses(10);
  options.num_epochs = 3;
  const std::vector<Sample> samples = MakeSamples(20);  // a multiple of the batch size
  const std::vector<Pass> passes = AllPasses(options, samples);
  ASSERT_EQ(passes.size(), 3u);
  for (uint32_t epoch = 0; epoch < 3; ++epoch) {
    EXPECT_EQ(passes[epoch].epoch, epoch);
    EXPECT_TRUE(passes[epoch].ends_epoch);
    EXPECT_EQ(passes[epoch].batches.size(), 2u);
  }
}

TEST(PassSource, CyclesThroughTheDataWithFullBatches) {
  const std::vector<Sample> samples = MakeSamples(7);
  for (size_t batchsize : {1, 3, 7, 10, 25}) {
    PassOptions options = SmallPasses(batchsize);
    options.max_batches = 9;
    size_t next = 0;
    const std::vector<Pass> passes = AllPasses(options, samples, 2);
    for (const Pass& pass : passes) {
      EXPECT_EQ(pass.epoch, next / 7);
      size_t ends = 0;
      for (const HostBatch& batch : pass.batches) {
        ASSERT_EQ(batch.size, batchsize);
        const size_t first = next;
        for (const Sample& sample : SamplesOf(pass, batch)) {
          ASSERT_EQ(sample, samples[next++ % 7]);
        }
        ends += next / 7 > first / 7;
      }
      EXPECT_EQ(ends, pass.ends_epoch ? 1u : 0u);
    }
    EXPECT_EQ(next, 9 * batchsize);
  }
}

TEST(PassSource, WithoutRepeatStopsAtTheEndOfTheData) {
  PassOptions options = SmallPasses(4);
  options.repeat = false;
  options.max_batches = 2;
  EXPECT_EQ(BatchesOf(AllPasses(options, MakeSamples(10))).size(), 2u);
  options.max_batches = 100;
  const auto batches = BatchesOf(AllPasses(options, MakeSamples(10)));
  ASSERT_EQ(batches.size(), 3u);
  EXPECT_EQ(batches[2].size(), 2u);
}

TEST(PassSource, BudgetCutsPassesButNotTheirBatches) {
  const std::vector<Sample> samples = MakeSamples(500, 2000);
  PassOptions options = SmallPasses(10);
  const auto whole = BatchesOf(AllPasses(options, samples));
  const size_t budget = 20000;
  options.byte_budget = budget;
  const std::vector<Pass> passes = AllPasses(options, samples);
  EXPECT_GT(passes.size(), 5u);
  EXPECT_EQ(BatchesOf(passes), whole);
  for (const Pass& pass : passes) {
    size_t bytes = pass.keys[0].size() * 100 + pass.keys[1].size() * 40;
    for (const HostBatch& batch : pass.batches) {
      bytes += 4 * (batch.label.capacity() + batch.dense.capacity());
      for (const HostSparseBatch& sparse : batch.sparse) {
        bytes += 4 * (sparse.offsets.capacity() + sparse.rows.capacity() +
                      sparse.segment_rows.capacity() + sparse.segment_offsets.capacity() +
                      sparse.segment_outputs.capacity());
        ExpectSegments(sparse);
      }
    }
    EXPECT_LE(bytes, budget);
    // A pass much below the budget would waste the device.
    EXPECT_TRUE(&pass == &passes.back() || bytes > budget / 2) << bytes;
    EXPECT_EQ(pass.ends_epoch, &pass == &passes.back());
  }
}

TEST(PassSource, CutEveryEndsPassesAtItsMultiples) {
  PassOptions options = SmallPasses(10);
  options.cut_every = 4;
  options.max_batches = 10;
  std::vector<size_t> sizes;
  for (const Pass& pass : AllPasses(options, MakeSamples(70))) sizes.push_back(pass.batches.size());
  EXPECT_THAT(sizes, ElementsAre(4, 3, 1, 2));  // batches 4 and 8, and the epoch's end at 7
}

TEST(PassSource, TheFirstPassesAreShortAndGrow) {
  PassOptions options = SmallPasses(10);
  options.first_samples = 15;
  options.num_epochs = 2;
  const std::vector<Sample> samples = MakeSamples(400);
  const auto sizes_from = [&](const PassCursor& start) {
    PassSource source(
        options, [&](uint32_t) { return std::make_unique<ListReader>(samples, 7); }, start);
    std::vector<std::pair<size_t, PassCursor>> passes;
    for (auto pass = source.Next(); pass.ok() && *pass != nullptr; pass = source.Next()) {
      passes.push_back({(*pass)->batches.size(), (*pass)->end});
    }
    return passes;
  };
  const auto passes = sizes_from({});
  std::vector<size_t> sizes;
  for (const auto& [size, end] : passes) sizes.push_back(size);
  EXPECT_THAT(sizes, ElementsAre(2, 4, 12, 22, 40));
  // A resumed run makes the same passes.
  for (size_t i = 0; i < passes.size(); ++i) {
    const auto rest = sizes_from(passes[i].second);
    EXPECT_TRUE(std::equal(rest.begin(), rest.end(), passes.begin() + i + 1, passes.end()));
  }
  options.shuffle = true;
  EXPECT_EQ(sizes_from({})[0].first, 40u);
}

TEST(PassSource, PassesEndAtTheirTargetUnlessTheyAreShuffled) {
  PassOptions options = SmallPasses(10);
  options.first_samples = 100000;
  options.byte_budget = 100000;
  const std::vector<Sample> samples = MakeSamples(2000);
  const auto first = [&] { return std::move(AllPasses(options, samples)[0]); };
  const auto bytes = [&](const Pass& pass) {
    size_t sum = 0;
    for (size_t i = 0; i < pass.keys.size(); ++i) {
      sum += pass.keys[i].size() * (options.value_bytes[i] + kKeyBytes);
    }
    return sum;  // without the batches
  };
  const Pass target = first();
  EXPECT_LT(bytes(target), PassTarget(options.byte_budget));
  options.shuffle = true;
  const Pass whole = first();
  EXPECT_GT(whole.batches.size(), target.batches.size() * 5 / 4);
  EXPECT_LT(bytes(whole), options.byte_budget);
}

TEST(PassSource, ErrorOfABatchOverTheBudgetNamesTheOption) {
  PassOptions options = SmallPasses(10);
  options.byte_budget = 1000;
  const std::vector<Sample> samples = MakeSamples(50);
  PassSource source(options, [&](uint32_t) { return std::make_unique<ListReader>(samples, 10); });
  const auto pass = source.Next();
  EXPECT_EQ(pass.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(pass.status().message()), HasSubstr("cistern.pass_memory_mb"));
  EXPECT_EQ(source.Next().status(), pass.status());
  // The message does not suggest an option that would not help.
  options.device_bound = true;
  PassSource on_gpu(options, [&](uint32_t) { return std::make_unique<ListReader>(samples, 10); });
  EXPECT_THAT(std::string(on_gpu.Next().status().message()),
              AllOf(HasSubstr("the GPU memory left by the model"),
                    HasSubstr("lower solver.batchsize"), Not(HasSubstr("pass_memory_mb"))));
}

TEST(PassSource, ShuffleIsAFunctionOfSeedAndEpoch) {
  const std::vector<Sample> samples = MakeSamples(103);
  PassOptions options = SmallPasses(10);
  options.shuffle = true;
  options.shuffle_seed = 1;
  options.num_epochs = 2;
  const std::vector<Pass> passes = AllPasses(options, samples);
  const auto batches = BatchesOf(passes);
  EXPECT_EQ(BatchesOf(AllPasses(options, samples, 3)), batches);
  std::vector<std::vector<float>> orders(2);
  for (size_t pass = 0; pass < 2; ++pass) {
    for (const HostBatch& batch : passes[pass].batches) {
      for (const HostSparseBatch& sparse : batch.sparse) ExpectSegments(sparse);
      for (const Sample& sample : SamplesOf(passes[pass], batch)) {
        EXPECT_EQ(sample, samples[static_cast<size_t>(sample.label)]);
        orders[pass].push_back(sample.label);
      }
    }
    EXPECT_EQ(passes[pass].batches.back().size, 3u);
    EXPECT_EQ(std::set<float>(orders[pass].begin(), orders[pass].end()).size(), 103u);
  }
  EXPECT_NE(orders[0], orders[1]);
  options.shuffle_seed = 2;
  EXPECT_NE(BatchesOf(AllPasses(options, samples)), batches);
}

TEST(PassSource, ShufflePutsEverySampleInEveryPlace) {
  const std::vector<Sample> samples = MakeSamples(8);
  PassOptions options = SmallPasses(8);
  options.shuffle = true;
  options.num_epochs = 8000;
  size_t count[8][8] = {};
  for (const auto& batch : BatchesOf(AllPasses(options, samples))) {
    for (size_t place = 0; place < 8; ++place) ++count[place][static_cast<int>(batch[place].label)];
  }
  // 1000 expected in each of 64 cells, standard deviation 30.
  for (auto& place : count) {
    for (size_t n : place) EXPECT_NEAR(static_cast<double>(n), 1000, 150);
  }
}

TEST(PassSource, RefusesDataWithoutSamples) {
  const std::vector<Sample> none;
  for (size_t max_batches : {0, 5}) {
    PassOptions options = SmallPasses(8);
    options.max_batches = max_batches;
    PassSource source(options, [&](uint32_t) { return std::make_unique<ListReader>(none, 1); });
    EXPECT_EQ(source.Next().status().code(), absl::StatusCode::kDataLoss);
  }
}

TEST(PassSource, PassesReaderErrorsThrough) {
  PassSource source(SmallPasses(8), [](uint32_t) { return absl::NotFoundError("gone"); });
  EXPECT_EQ(source.Next().status(), absl::NotFoundError("gone"));
}

}  // namespace
}  // namespace cistern::data
