// Passes whose batches are read ahead, compared with the same passes read in step.
#include "worker/data/source/read_ahead_cursor.h"

#include <gtest/gtest.h>

#include "test/worker/data/sample_list.h"

namespace cistern::data {
namespace {

TEST(ReadAheadCursor, MakesTheSamePasses) {
  const std::vector<Sample> samples = MakeSamples(100);
  PassOptions options = SmallPasses(8);
  options.num_epochs = 3;
  options.byte_budget = 9000;
  const std::vector<Pass> expected = AllPasses(options, samples, 7);
  ASSERT_GT(expected.size(), 6u);
  options.read_ahead = true;
  const auto expect_same = [&](const std::vector<Pass>& passes, size_t first) {
    ASSERT_EQ(passes.size(), expected.size() - first);
    for (size_t i = 0; i < passes.size(); ++i) {
      EXPECT_EQ(passes[i].begin, expected[first + i].begin);
      EXPECT_EQ(passes[i].end, expected[first + i].end);
      EXPECT_EQ(passes[i].ends_epoch, expected[first + i].ends_epoch);
      EXPECT_EQ(passes[i].is_last, expected[first + i].is_last);
      ASSERT_EQ(passes[i].batches.size(), expected[first + i].batches.size());
      for (size_t b = 0; b < passes[i].batches.size(); ++b) {
        EXPECT_EQ(SamplesOf(passes[i], passes[i].batches[b]),
                  SamplesOf(expected[first + i], expected[first + i].batches[b]));
      }
    }
  };
  expect_same(AllPasses(options, samples, 7), 0);
  expect_same(AllPasses(options, samples, 7, expected[3].end), 4);
}

// Samples before the error are in passes, as without reading ahead.
TEST(ReadAheadCursor, AnErrorComesAtItsPlace) {
  class FailingReader : public ListReader {
   public:
    using ListReader::ListReader;
    absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) override {
      CISTERN_ASSIGN_OR_RETURN(const size_t got, ListReader::Read(max_samples, block));
      if (got == 0) return absl::DataLossError("cut short");
      return got;
    }
  };
  const std::vector<Sample> samples = MakeSamples(24);
  PassOptions options = SmallPasses(8);
  options.read_ahead = true;
  options.cut_every = 1;
  PassSource source(options,
                    [&](uint32_t) { return std::make_unique<FailingReader>(samples, 100); });
  for (int i = 0; i < 2; ++i) {
    const auto pass = source.Next();
    ASSERT_TRUE(pass.ok()) << pass.status();
    EXPECT_EQ((*pass)->samples, 8u);
  }
  EXPECT_EQ(source.Next().status(), absl::DataLossError("cut short"));
}

// A source whose passes are never asked for ends too.
TEST(ReadAheadCursor, StopsWithItsSource) {
  const std::vector<Sample> samples = MakeSamples(100);
  PassOptions options = SmallPasses(8);
  options.read_ahead = true;
  options.num_epochs = 1000;
  PassSource unused(options, [&](uint32_t) { return std::make_unique<ListReader>(samples, 7); });
  PassSource used(options, [&](uint32_t) { return std::make_unique<ListReader>(samples, 7); });
  EXPECT_TRUE(used.Next().ok());
}

}  // namespace
}  // namespace cistern::data
