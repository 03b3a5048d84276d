// Passes against the naive way: samples in a list, keys in a map.
#include "worker/pass/pass_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace cistern {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<uint32_t> kSlots = {3, 1};

// One sample: its label is its number, which tells samples apart.
struct Sample {
  float label = 0;
  std::vector<float> dense;
  std::vector<std::vector<std::vector<Key>>> keys;  // [input][slot]
  bool operator==(const Sample&) const = default;
};

std::vector<Sample> MakeSamples(size_t count, uint64_t key_max = 300) {
  std::mt19937_64 random(count);
  std::vector<Sample> samples(count);
  for (size_t i = 0; i < count; ++i) {
    samples[i].label = static_cast<float>(i);
    samples[i].dense = {static_cast<float>(random() % 100), 1};
    for (uint32_t slots : kSlots) {
      auto& input = samples[i].keys.emplace_back(slots);
      for (std::vector<Key>& slot : input) {
        for (size_t n = random() % 4; n > 0; --n) slot.push_back(random() % key_max);
      }
    }
  }
  return samples;
}

class ListReader : public SampleReader {
 public:
  ListReader(const std::vector<Sample>& samples, size_t step) : samples_(samples), step_(step) {}

  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) override {
    const size_t count = std::min({max_samples, step_, samples_.size() - next_});
    for (size_t n = 0; n < count; ++n, ++block->size) {
      const Sample& sample = samples_[next_++];
      block->label.push_back(sample.label);
      block->dense.insert(block->dense.end(), sample.dense.begin(), sample.dense.end());
      for (size_t i = 0; i < kSlots.size(); ++i) {
        for (const std::vector<Key>& keys : sample.keys[i]) {
          SparseColumn& column = block->sparse[i];
          column.keys.insert(column.keys.end(), keys.begin(), keys.end());
          column.offsets.push_back(static_cast<uint32_t>(column.keys.size()));
        }
      }
    }
    return count;
  }

 private:
  const std::vector<Sample>& samples_;
  const size_t step_;
  size_t next_ = 0;
};

PassOptions Options(size_t batchsize) {
  PassOptions options;
  options.shape = {1, 2, kSlots, {}};
  options.batchsize = batchsize;
  options.value_bytes = {100, 40};
  return options;
}

std::vector<Pass> AllPasses(const PassOptions& options, const std::vector<Sample>& samples,
                            size_t step = 1000, const PassCursor& start = {}) {
  PassSource source(
      options, [&] { return std::make_unique<ListReader>(samples, step); }, start);
  std::vector<Pass> passes;
  while (true) {
    auto pass = source.Next();
    EXPECT_TRUE(pass.ok()) << pass.status();
    if (!pass.ok() || *pass == nullptr) return passes;
    passes.push_back(std::move(**pass));
  }
}

// The samples of a batch, its rows turned back into keys.
std::vector<Sample> SamplesOf(const Pass& pass, const Batch& batch) {
  std::vector<Sample> samples(batch.size);
  EXPECT_EQ(batch.label.size(), batch.size);
  EXPECT_EQ(batch.dense.size(), 2 * batch.size);
  for (size_t n = 0; n < batch.size; ++n) {
    samples[n].label = batch.label[n];
    samples[n].dense = {batch.dense[2 * n], batch.dense[2 * n + 1]};
    for (size_t i = 0; i < kSlots.size(); ++i) {
      const SparseBatch& sparse = batch.sparse[i];
      EXPECT_EQ(sparse.slot_num, kSlots[i]);
      auto& input = samples[n].keys.emplace_back(kSlots[i]);
      for (size_t slot = 0; slot < kSlots[i]; ++slot) {
        const size_t output = n * kSlots[i] + slot;
        for (uint32_t k = sparse.offsets[output]; k < sparse.offsets[output + 1]; ++k) {
          input[slot].push_back(pass.keys[i].keys()[sparse.rows[k]]);
        }
      }
    }
  }
  return samples;
}

std::vector<std::vector<Sample>> BatchesOf(const std::vector<Pass>& passes) {
  std::vector<std::vector<Sample>> batches;
  for (const Pass& pass : passes) {
    for (const Batch& batch : pass.batches) batches.push_back(SamplesOf(pass, batch));
  }
  return batches;
}

void ExpectSegments(const SparseBatch& sparse) {
  std::map<Row, std::vector<uint32_t>> outputs;  // by row, ascending as they come
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

TEST(PassSource, BatchesHoldTheSamplesInOrderWithAShortLast) {
  const std::vector<Sample> samples = MakeSamples(25);
  for (size_t step : {1, 7, 1000}) {
    const std::vector<Pass> passes = AllPasses(Options(10), samples, step);
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
  const std::vector<Pass> passes = AllPasses(Options(10), samples);
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
  // Small and large batches sort in different ways.
  for (size_t batchsize : {1, 10, 3000}) {
    for (uint64_t key_max : {3, 300, 100000}) {
      const auto passes = AllPasses(Options(batchsize), MakeSamples(3000, key_max));
      for (const Batch& batch : passes[0].batches) {
        for (const SparseBatch& sparse : batch.sparse) ExpectSegments(sparse);
      }
    }
  }
}

TEST(PassSource, WithoutSegmentsTheirArraysStayEmpty) {
  PassOptions options = Options(10);
  options.segments = false;
  const std::vector<Pass> passes = AllPasses(options, MakeSamples(30));
  ASSERT_EQ(passes[0].batches.size(), 3u);
  for (const Batch& batch : passes[0].batches) {
    EXPECT_TRUE(batch.sparse[0].segment_rows.empty());
    EXPECT_TRUE(batch.sparse[0].segment_offsets.empty());
    EXPECT_TRUE(batch.sparse[0].segment_outputs.empty());
  }
}

TEST(PassSource, AnEpochIsAtLeastOnePass) {
  PassOptions options = Options(10);
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

TEST(PassSource, GoesAroundTheDataWithFullBatches) {
  const std::vector<Sample> samples = MakeSamples(7);
  for (size_t batchsize : {1, 3, 7, 10, 25}) {
    PassOptions options = Options(batchsize);
    options.max_batches = 9;
    size_t next = 0;
    const std::vector<Pass> passes = AllPasses(options, samples, 2);
    for (const Pass& pass : passes) {
      EXPECT_EQ(pass.epoch, next / 7);
      size_t ends = 0;
      for (const Batch& batch : pass.batches) {
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
  PassOptions options = Options(4);
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
  PassOptions options = Options(10);
  const auto whole = BatchesOf(AllPasses(options, samples));
  const size_t budget = 20000;
  options.byte_budget = budget;
  const std::vector<Pass> passes = AllPasses(options, samples);
  EXPECT_GT(passes.size(), 5u);
  EXPECT_EQ(BatchesOf(passes), whole);
  for (const Pass& pass : passes) {
    size_t bytes = pass.keys[0].size() * 100 + pass.keys[1].size() * 40;
    for (const Batch& batch : pass.batches) {
      bytes += 4 * (batch.label.capacity() + batch.dense.capacity());
      for (const SparseBatch& sparse : batch.sparse) {
        bytes += 4 * (sparse.offsets.capacity() + sparse.rows.capacity() +
                      sparse.segment_rows.capacity() + sparse.segment_offsets.capacity() +
                      sparse.segment_outputs.capacity());
        ExpectSegments(sparse);
      }
    }
    EXPECT_LE(bytes, budget);
    // A cut that is too careful wastes the device.
    EXPECT_TRUE(&pass == &passes.back() || bytes > budget / 2) << bytes;
    EXPECT_EQ(pass.ends_epoch, &pass == &passes.back());
  }
}

TEST(PassSource, CutEveryEndsPassesAtItsMultiples) {
  PassOptions options = Options(10);
  options.cut_every = 4;
  options.max_batches = 10;
  std::vector<size_t> sizes;
  for (const Pass& pass : AllPasses(options, MakeSamples(70))) sizes.push_back(pass.batches.size());
  EXPECT_THAT(sizes, ElementsAre(4, 3, 1, 2));  // batches 4 and 8, and the epoch's end at 7
}

TEST(PassSource, ABatchOverTheBudgetSaysWhatToRaise) {
  PassOptions options = Options(10);
  options.byte_budget = 1000;
  const std::vector<Sample> samples = MakeSamples(50);
  PassSource source(options, [&] { return std::make_unique<ListReader>(samples, 10); });
  const auto pass = source.Next();
  EXPECT_EQ(pass.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(pass.status().message()), HasSubstr("cistern.pass_memory_mb"));
  EXPECT_EQ(source.Next().status(), pass.status());
}

TEST(PassSource, ShuffleIsAFunctionOfSeedAndEpoch) {
  const std::vector<Sample> samples = MakeSamples(103);
  PassOptions options = Options(10);
  options.shuffle = true;
  options.shuffle_seed = 1;
  options.num_epochs = 2;
  const std::vector<Pass> passes = AllPasses(options, samples);
  const auto batches = BatchesOf(passes);
  EXPECT_EQ(BatchesOf(AllPasses(options, samples, 3)), batches);
  std::vector<std::vector<float>> orders(2);
  for (size_t pass = 0; pass < 2; ++pass) {
    for (const Batch& batch : passes[pass].batches) {
      for (const SparseBatch& sparse : batch.sparse) ExpectSegments(sparse);
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

TEST(PassSource, ShufflePutsEverySampleEverywhere) {
  const std::vector<Sample> samples = MakeSamples(8);
  PassOptions options = Options(8);
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

// What two passes must have in common to train the same.
void ExpectSamePass(const Pass& pass, const Pass& expected) {
  ASSERT_EQ(pass.batches.size(), expected.batches.size());
  EXPECT_EQ(pass.samples, expected.samples);
  EXPECT_EQ(pass.epoch, expected.epoch);
  EXPECT_EQ(pass.ends_epoch, expected.ends_epoch);
  EXPECT_EQ(pass.is_last, expected.is_last);
  EXPECT_EQ(pass.begin, expected.begin);
  EXPECT_EQ(pass.end, expected.end);
  for (size_t i = 0; i < kSlots.size(); ++i) {
    const auto keys = pass.keys[i].keys(), wanted = expected.keys[i].keys();
    EXPECT_TRUE(std::equal(keys.begin(), keys.end(), wanted.begin(), wanted.end()));
  }
  for (size_t b = 0; b < pass.batches.size(); ++b) {
    EXPECT_EQ(SamplesOf(pass, pass.batches[b]), SamplesOf(expected, expected.batches[b]));
    for (size_t i = 0; i < kSlots.size(); ++i) {
      EXPECT_EQ(pass.batches[b].sparse[i].segment_outputs,
                expected.batches[b].sparse[i].segment_outputs);
    }
  }
}

// The ways a run may be cut into passes: by epochs or around the data, shuffled or not, by the
// budget, at multiples.
std::vector<PassOptions> WaysToCut() {
  std::vector<PassOptions> ways;
  for (const bool shuffle : {false, true}) {
    for (const size_t max_batches : {0, 41}) {
      for (const size_t cut_every : {0, 3}) {
        for (const size_t budget : {20000, 1 << 30}) {
          PassOptions& options = ways.emplace_back(Options(10));
          options.shuffle = shuffle;
          options.shuffle_seed = 5;
          options.max_batches = max_batches;
          options.num_epochs = 3;
          options.cut_every = cut_every;
          options.byte_budget = budget;
        }
      }
    }
  }
  return ways;
}

TEST(PassSource, GoesOnFromTheEndOfEveryPass) {
  const std::vector<Sample> samples = MakeSamples(123, 2000);
  for (const PassOptions& options : WaysToCut()) {
    const std::vector<Pass> all = AllPasses(options, samples);
    ASSERT_GE(all.size(), 2u);
    for (size_t done = 0; done < all.size(); ++done) {
      const std::vector<Pass> rest = AllPasses(options, samples, 7, all[done].end);
      ASSERT_EQ(done + 1 + rest.size(), all.size());
      for (size_t i = 0; i < rest.size(); ++i) ExpectSamePass(rest[i], all[done + 1 + i]);
      EXPECT_EQ(all[done].is_last, rest.empty());
    }
    ExpectSamePass(AllPasses(options, samples, 7, all[0].begin)[0], all[0]);
  }
}

TEST(PassSource, GoesOnInsideAPassWithTheBatchesThatAreLeft) {
  const std::vector<Sample> samples = MakeSamples(123, 2000);
  for (PassOptions options : WaysToCut()) {
    const std::vector<Pass> all = AllPasses(options, samples);
    const auto batches = BatchesOf(all);
    // A larger limit must not make the pass that was left in the middle larger.
    if (options.max_batches > 0) options.max_batches += 5;
    size_t first = 0;
    for (const Pass& pass : all) {
      for (size_t done = 1; done < pass.batches.size(); ++done) {
        const std::vector<Pass> rest = AllPasses(options, samples, 7, pass.CursorAfter(done));
        ASSERT_EQ(rest[0].batches.size(), pass.batches.size() - done);
        for (size_t b = 0; b < rest[0].batches.size(); ++b) {
          EXPECT_EQ(SamplesOf(rest[0], rest[0].batches[b]), batches[first + done + b]);
        }
        EXPECT_EQ(rest[0].end, pass.end);
        // Left in the middle once more.
        EXPECT_EQ(rest[0].CursorAfter(rest[0].batches.size() - 1),
                  pass.CursorAfter(pass.batches.size() - 1));
      }
      first += pass.batches.size();
    }
  }
}

TEST(PassSource, NothingIsLeftAfterALimitThatWasLowered) {
  const std::vector<Sample> samples = MakeSamples(50);
  PassOptions options = Options(10);
  options.num_epochs = 3;
  const std::vector<Pass> epochs = AllPasses(options, samples);
  options.num_epochs = 2;
  EXPECT_TRUE(AllPasses(options, samples, 7, epochs[2].end).empty());
  options.max_batches = 12;
  EXPECT_TRUE(AllPasses(options, samples, 7, epochs[2].end).empty());
}

TEST(PassSource, DataThatEndsBeforeTheStartIsNotTheDataThatItWas) {
  PassOptions options = Options(10);
  options.cut_every = 3;
  const std::vector<Pass> all = AllPasses(options, MakeSamples(100));
  const std::vector<Sample> fewer = MakeSamples(25);
  for (const PassCursor& start : {all[0].end, all[0].CursorAfter(1), all[2].CursorAfter(2)}) {
    PassSource source(
        options, [&] { return std::make_unique<ListReader>(fewer, 7); }, start);
    const auto pass = source.Next();
    if (start == all[0].CursorAfter(1)) {
      EXPECT_TRUE(pass.ok()) << pass.status();  // 25 samples make its three batches
      continue;
    }
    EXPECT_EQ(pass.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(pass.status().message()), HasSubstr("not the data that it was"));
  }
}

TEST(PassSource, APassLeftInTheMiddleNeedsTheMemoryThatItHad) {
  const std::vector<Sample> samples = MakeSamples(100, 2000);
  const std::vector<Pass> all = AllPasses(Options(10), samples);
  PassOptions options = Options(10);
  options.byte_budget = 20000;
  PassSource source(
      options, [&] { return std::make_unique<ListReader>(samples, 7); }, all[0].CursorAfter(4));
  const auto pass = source.Next();
  EXPECT_EQ(pass.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(pass.status().message()), HasSubstr("the value that it had"));
}

TEST(PassSource, RefusesDataWithoutASample) {
  const std::vector<Sample> none;
  for (size_t max_batches : {0, 5}) {
    PassOptions options = Options(8);
    options.max_batches = max_batches;
    PassSource source(options, [&] { return std::make_unique<ListReader>(none, 1); });
    EXPECT_EQ(source.Next().status().code(), absl::StatusCode::kDataLoss);
  }
}

TEST(PassSource, ErrorsOfTheReaderPassThrough) {
  PassSource source(Options(8), [] { return absl::NotFoundError("gone"); });
  EXPECT_EQ(source.Next().status(), absl::NotFoundError("gone"));
}

}  // namespace
}  // namespace cistern
