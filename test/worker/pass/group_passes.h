// Makes the passes of a process group, with workers as threads of the test, and inspects them.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "test/worker/data/sample_list.h"
#include "test/worker/group/group_threads.h"
#include "worker/pass/pass_coordinator.h"
#include "worker/pass/shared_pass.h"

namespace cistern {

// Passes by worker.
using GroupPasses = std::vector<std::vector<data::Pass>>;

// Creates the key collector of a worker; null: the host collects.
using MakeCollector = std::function<absl::StatusOr<std::unique_ptr<data::KeyCollector>>()>;

// Batches keep the keys of input 1. Clicks of input 0 are counted if the host collects keys.
inline GroupPasses MakeGroupPasses(uint32_t size, const data::PassOptions& options,
                                   const std::vector<data::Sample>& samples,
                                   const data::PassCursor& start = {},
                                   const MakeCollector& collector = nullptr) {
  GroupPasses passes(size);
  group::ExpectAllWell(group::RunGroup(size, [&](group::ProcessGroup& group) -> absl::Status {
    data::PassOptions own = options;
    own.part = group.rank();
    own.parts = size;
    std::unique_ptr<data::KeyCollector> keys;
    if (collector) {
      CISTERN_ASSIGN_OR_RETURN(keys, collector());
    }
    data::PassSource source(
        own, [&](uint32_t) { return std::make_unique<data::ListReader>(samples, 7); }, start,
        std::move(keys), CoordinatorOf(group, options.value_bytes));
    while (true) {
      CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<data::Pass> pass, source.Next());
      if (pass == nullptr) return absl::OkStatus();
      const ExchangeOptions exchange = {
          options.segments, {false, true}, {options.segments && !collector, false}};
      CISTERN_RETURN_IF_ERROR(ExchangeRows(group, exchange, pass.get()));
      passes[group.rank()].push_back(std::move(*pass));
    }
  }));
  return passes;
}

inline size_t Sum(const std::vector<uint32_t>& numbers, size_t count) {
  return std::accumulate(numbers.begin(), numbers.begin() + static_cast<ptrdiff_t>(count),
                         size_t{0});
}

// The key of row `row` of an input in worker w's batch, looked up at its owner.
inline Key KeyBehind(const GroupPasses& passes, size_t w, size_t pass, size_t batch, size_t input,
                     size_t row) {
  const std::vector<uint32_t>& taken = passes[w][pass].batches[batch].exchanged[input].taken;
  size_t owner = 0;
  while (row >= taken[owner]) row -= taken[owner++];
  const data::Pass& there = passes[owner][pass];
  const data::HostExchange& rows = there.batches[batch].exchanged[input];
  EXPECT_EQ(rows.given[w], taken[owner]);
  return there.keys[input].keys()[rows.served.rows[Sum(rows.given, w) + row]];
}

// All samples of a batch, in worker order.
inline std::vector<data::Sample> SamplesOfAll(const GroupPasses& passes, size_t pass,
                                              size_t batch) {
  std::vector<data::Sample> all;
  for (size_t w = 0; w < passes.size(); ++w) {
    const data::HostBatch& own = passes[w][pass].batches[batch];
    if (own.size > 0) {
      EXPECT_EQ(own.first, all.size());
    }
    const std::vector<data::Sample> part = data::SamplesOf(
        own, [&](size_t input, Row row) { return KeyBehind(passes, w, pass, batch, input, row); });
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

inline void ExpectSamePasses(const GroupPasses& passes, const std::vector<data::Pass>& expected) {
  for (const std::vector<data::Pass>& own : passes) ASSERT_EQ(own.size(), expected.size());
  for (size_t p = 0; p < expected.size(); ++p) {
    for (const std::vector<data::Pass>& own : passes) {
      ASSERT_EQ(own[p].batches.size(), expected[p].batches.size());
      EXPECT_EQ(own[p].samples, expected[p].samples);
      EXPECT_EQ(own[p].end, expected[p].end);
      EXPECT_EQ(own[p].ends_epoch, expected[p].ends_epoch);
      EXPECT_EQ(own[p].is_last, expected[p].is_last);
    }
    for (size_t b = 0; b < expected[p].batches.size(); ++b) {
      EXPECT_EQ(SamplesOfAll(passes, p, b), data::SamplesOf(expected[p], expected[p].batches[b]));
      for (const auto& own : passes) {
        EXPECT_EQ(own[p].batches[b].all, expected[p].batches[b].size);
      }
    }
  }
}

}  // namespace cistern
