// From any cursor, a source makes the same remaining passes as a source that made all passes.
#include "worker/data/source/pass_cursor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/worker/data/sample_list.h"

namespace cistern::data {
namespace {

using testing::HasSubstr;

// Expects that both passes give the same training.
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

// All ways to cut a run into passes: by epochs or by cycling through the data, shuffled or not, by
// the budget, at multiples of cut_every.
std::vector<PassOptions> WaysToCut() {
  std::vector<PassOptions> ways;
  for (const bool shuffle : {false, true}) {
    for (const size_t max_batches : {0, 41}) {
      for (const size_t cut_every : {0, 3}) {
        for (const size_t budget : {20000, 1 << 30}) {
          PassOptions& options = ways.emplace_back(SmallPasses(10));
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

TEST(PassCursor, ResumesFromTheEndOfEveryPass) {
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

TEST(PassCursor, ResumesInsideAPassWithTheRemainingBatches) {
  const std::vector<Sample> samples = MakeSamples(123, 2000);
  for (PassOptions options : WaysToCut()) {
    const std::vector<Pass> all = AllPasses(options, samples);
    const auto batches = BatchesOf(all);
    // A higher limit must not make the interrupted pass larger.
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
        // Interrupts the resumed pass again.
        EXPECT_EQ(rest[0].CursorAfter(rest[0].batches.size() - 1),
                  pass.CursorAfter(pass.batches.size() - 1));
      }
      first += pass.batches.size();
    }
  }
}

TEST(PassCursor, NothingRemainsAfterTheLimitIsLowered) {
  const std::vector<Sample> samples = MakeSamples(50);
  PassOptions options = SmallPasses(10);
  options.num_epochs = 3;
  const std::vector<Pass> epochs = AllPasses(options, samples);
  options.num_epochs = 2;
  EXPECT_TRUE(AllPasses(options, samples, 7, epochs[2].end).empty());
  options.max_batches = 12;
  EXPECT_TRUE(AllPasses(options, samples, 7, epochs[2].end).empty());
}

TEST(PassCursor, DataThatEndsBeforeTheStartHasChanged) {
  PassOptions options = SmallPasses(10);
  options.cut_every = 3;
  const std::vector<Pass> all = AllPasses(options, MakeSamples(100));
  const std::vector<Sample> fewer = MakeSamples(25);
  for (const PassCursor& start : {all[0].end, all[0].CursorAfter(1), all[2].CursorAfter(2)}) {
    PassSource source(
        options, [&](uint32_t) { return std::make_unique<ListReader>(fewer, 7); }, start);
    const auto pass = source.Next();
    if (start == all[0].CursorAfter(1)) {
      EXPECT_TRUE(pass.ok()) << pass.status();  // 25 samples suffice for its three batches
      continue;
    }
    EXPECT_EQ(pass.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(pass.status().message()),
                HasSubstr("the data changed since the run stopped"));
  }
}

TEST(PassCursor, AnInterruptedPassNeedsItsPreviousMemoryLimit) {
  const std::vector<Sample> samples = MakeSamples(100, 2000);
  const std::vector<Pass> all = AllPasses(SmallPasses(10), samples);
  PassOptions options = SmallPasses(10);
  options.byte_budget = 20000;
  PassSource source(
      options, [&](uint32_t) { return std::make_unique<ListReader>(samples, 7); },
      all[0].CursorAfter(4));
  const auto pass = source.Next();
  EXPECT_EQ(pass.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(pass.status().message()), HasSubstr("the value that it had"));
}

}  // namespace
}  // namespace cistern::data
