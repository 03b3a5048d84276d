// Compares passes that several workers share with those of a single worker.
#include "worker/pass/shared_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "absl/synchronization/mutex.h"
#include "test/worker/pass/group_passes.h"
#include "worker/group/message.h"
#include "worker/pass/key_owner.h"
#include "worker/pass/pass_coordinator.h"

namespace cistern {
namespace {

using testing::HasSubstr;

TEST(SharedPass, WorkersShareTheSamplesOfASingleWorkerInOrder) {
  const std::vector<data::Sample> samples = data::MakeSamples(103);
  for (const uint32_t size : {1u, 2u, 3u}) {
    data::PassOptions options = data::SmallPasses(10);
    options.num_epochs = 2;
    ExpectSamePasses(MakeGroupPasses(size, options, samples), data::AllPasses(options, samples));
    options.max_batches = 25;  // batches that span the end of an epoch
    ExpectSamePasses(MakeGroupPasses(size, options, samples), data::AllPasses(options, samples));
    options.segments = false;
    ExpectSamePasses(MakeGroupPasses(size, options, samples), data::AllPasses(options, samples));
  }
}

TEST(SharedPass, TheLastBatchMayHaveFewerSamplesThanWorkers) {
  const std::vector<data::Sample> samples = data::MakeSamples(9);
  const data::PassOptions options = data::SmallPasses(4);
  ExpectSamePasses(MakeGroupPasses(4, options, samples), data::AllPasses(options, samples));
}

TEST(SharedPass, ContinuesFromACursorLikeASingleWorker) {
  const std::vector<data::Sample> samples = data::MakeSamples(100);
  const data::PassOptions options = data::SmallPasses(10);
  const std::vector<data::Pass> whole = data::AllPasses(options, samples);
  const data::PassCursor inside = whole[0].CursorAfter(4);
  ExpectSamePasses(MakeGroupPasses(3, options, samples, inside),
                   data::AllPasses(options, samples, 1000, inside));
}

TEST(SharedPass, EveryKeyHasOneOwner) {
  const std::vector<data::Sample> samples = data::MakeSamples(200);
  const std::vector<data::Pass> expected = data::AllPasses(data::SmallPasses(20), samples);
  const GroupPasses passes = MakeGroupPasses(3, data::SmallPasses(20), samples);
  for (size_t i = 0; i < data::kSlots.size(); ++i) {
    std::multiset<Key> held;
    for (const auto& own : passes) {
      const auto keys = own[0].keys[i].keys();
      EXPECT_GT(keys.size(), expected[0].keys[i].size() / 6);
      held.insert(keys.begin(), keys.end());
    }
    const auto keys = expected[0].keys[i].keys();
    EXPECT_EQ(held, std::multiset<Key>(keys.begin(), keys.end()));
  }
}

// The owner's segments for a batch: the places of the rows that it gives, grouped by row.
TEST(SharedPass, SegmentsOfServedRowsHoldTheirPlacesByRow) {
  const GroupPasses passes = MakeGroupPasses(3, data::SmallPasses(50), data::MakeSamples(200, 40));
  for (const auto& own : passes) {
    for (const data::HostBatch& batch : own[0].batches) {
      for (const data::HostExchange& rows : batch.exchanged) {
        std::map<Row, std::vector<uint32_t>> places;
        for (uint32_t k = 0; k < rows.served.rows.size(); ++k) {
          places[rows.served.rows[k]].push_back(k);
        }
        std::vector<Row> moved;
        std::vector<uint32_t> all;
        for (const auto& [row, some] : places) {
          moved.push_back(row);
          all.insert(all.end(), some.begin(), some.end());
        }
        EXPECT_EQ(rows.served.segment_rows, moved);
        EXPECT_EQ(rows.served.segment_outputs, all);
      }
    }
  }
}

TEST(SharedPass, OccurrencesAreCountedWithTheirSlotAndLabel) {
  std::vector<data::Sample> samples = data::MakeSamples(120, 30);
  for (size_t i = 0; i < samples.size(); ++i) samples[i].label = i % 3 == 0 ? 1 : 0;
  const GroupPasses passes = MakeGroupPasses(3, data::SmallPasses(40), samples);
  std::map<Key, std::vector<uint32_t>> expected, counted;  // of input 0, in all batches
  for (const data::Sample& sample : samples) {
    for (uint32_t slot = 0; slot < data::kSlots[0]; ++slot) {
      for (const Key key : sample.keys[0][slot]) {
        expected[key].push_back((sample.label > 0 ? data::kSlots[0] : 0) + slot);
      }
    }
  }
  for (const auto& own : passes) {
    for (const data::HostBatch& batch : own[0].batches) {
      const data::HostExchange& rows = batch.exchanged[0];
      EXPECT_TRUE(batch.exchanged[1].occurrences.empty());
      for (size_t s = 0; s < rows.served.segment_rows.size(); ++s) {
        std::vector<uint32_t>& some = counted[own[0].keys[0].keys()[rows.served.segment_rows[s]]];
        some.insert(some.end(), rows.occurrences.begin() + rows.occurrence_offsets[s],
                    rows.occurrences.begin() + rows.occurrence_offsets[s + 1]);
      }
    }
  }
  EXPECT_EQ(counted, expected);  // also in the order of the data
}

TEST(SharedPass, KeysOfBatchesAreKeptOnRequest) {
  const std::vector<data::Sample> samples = data::MakeSamples(50);
  const GroupPasses passes = MakeGroupPasses(2, data::SmallPasses(50), samples);
  std::vector<Key> expected, kept;
  for (const data::Sample& sample : samples) {
    expected.insert(expected.end(), sample.keys[1][0].begin(), sample.keys[1][0].end());
  }
  for (const auto& own : passes) {
    const data::HostSparseBatch& sparse = own[0].batches[0].sparse[1];
    kept.insert(kept.end(), sparse.keys.begin(), sparse.keys.end());
    EXPECT_TRUE(own[0].batches[0].sparse[0].keys.empty());
  }
  EXPECT_EQ(kept, expected);
}

TEST(SharedPass, PassesEndAtTheSameBatchOnAllWorkers) {
  const std::vector<data::Sample> samples = data::MakeSamples(400, 100000);
  data::PassOptions options = data::SmallPasses(20);
  options.byte_budget = 30000;
  const GroupPasses passes = MakeGroupPasses(3, options, samples);
  EXPECT_GT(passes[0].size(), 2u);
  std::vector<data::Sample> all;
  for (size_t p = 0; p < passes[0].size(); ++p) {
    for (const auto& own : passes) {
      ASSERT_EQ(own.size(), passes[0].size());
      ASSERT_EQ(own[p].batches.size(), passes[0][p].batches.size());
    }
    for (size_t b = 0; b < passes[0][p].batches.size(); ++b) {
      const std::vector<data::Sample> some = SamplesOfAll(passes, p, b);
      all.insert(all.end(), some.begin(), some.end());
    }
  }
  EXPECT_EQ(all, samples);
}

// The number of batches of each pass if a worker may own at most `most` keys over all inputs.
std::vector<size_t> CutsByOwnedKeys(const std::vector<data::Sample>& samples, size_t batchsize,
                                    uint32_t workers, size_t most) {
  std::vector<std::set<std::pair<size_t, Key>>> owned(workers);
  std::vector<size_t> batches = {0};
  for (size_t begin = 0; begin < samples.size(); begin += batchsize) {
    const auto add = [&] {
      for (size_t n = begin; n < std::min(samples.size(), begin + batchsize); ++n) {
        for (size_t input = 0; input < data::kSlots.size(); ++input) {
          for (const std::vector<Key>& slot : samples[n].keys[input]) {
            for (const Key key : slot) owned[OwnerOf(key, workers)].insert({input, key});
          }
        }
      }
    };
    add();
    if (std::any_of(owned.begin(), owned.end(),
                    [most](const auto& keys) { return keys.size() > most; })) {
      batches.push_back(0);
      for (auto& keys : owned) keys.clear();
      add();
    }
    ++batches.back();
  }
  return batches;
}

// Values are so large that only they count towards the memory limit.
TEST(SharedPass, APassIsCutWhenAnOwnerHasNoRoomForItsKeys) {
  constexpr size_t kValue = 1000000, kMost = 60;
  // With many keys every batch has new ones; with few, all keys are soon known.
  for (const uint64_t keys : {2000, 110}) {
    const std::vector<data::Sample> samples = data::MakeSamples(300, keys);
    for (const uint32_t size : {1u, 2u, 3u}) {
      data::PassOptions options = data::SmallPasses(4);
      options.value_bytes = {kValue, kValue};
      options.byte_budget = kMost * kValue + kValue / 2;
      const GroupPasses passes = MakeGroupPasses(size, options, samples);
      std::vector<size_t> cuts;
      for (const data::Pass& pass : passes[0]) cuts.push_back(pass.batches.size());
      EXPECT_EQ(cuts, CutsByOwnedKeys(samples, 4, size, kMost)) << size << " " << keys;
      EXPECT_GT(cuts.size(), 1u);
      for (const auto& own : passes) {
        for (size_t p = 0; p < own.size(); ++p) {
          EXPECT_EQ(own[p].batches.size(), cuts[p]);
          EXPECT_LE(own[p].keys[0].size() + own[p].keys[1].size(), kMost);
        }
      }
    }
  }
}

TEST(SharedPass, TheWorkerWithTheSmallestBudgetDecides) {
  constexpr size_t kValue = 1000000;
  const std::vector<data::Sample> samples = data::MakeSamples(300, 2000);
  std::vector<size_t> cuts[2];
  group::ExpectAllWell(group::RunGroup(2, [&](group::ProcessGroup& group) -> absl::Status {
    data::PassOptions options = data::SmallPasses(4);
    options.value_bytes = {kValue, kValue};
    options.part = group.rank();
    options.parts = 2;
    options.byte_budget = (group.rank() == 0 ? 1000 : 60) * kValue + kValue / 2;
    data::PassSource source(
        options, [&](uint32_t) { return std::make_unique<data::ListReader>(samples, 7); }, {},
        nullptr, CoordinatorOf(group, options.value_bytes));
    while (true) {
      CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<data::Pass> pass, source.Next());
      if (pass == nullptr) return absl::OkStatus();
      cuts[group.rank()].push_back(pass->batches.size());
      EXPECT_TRUE(group.rank() == 0 ||
                  pass->owned[0].keys.size() + pass->owned[1].keys.size() <= 60);
    }
  }));
  EXPECT_EQ(cuts[0], cuts[1]);
  EXPECT_GT(cuts[0].size(), CutsByOwnedKeys(samples, 4, 2, 1000).size());
}

TEST(SharedPass, AnErrorOfOneReaderFailsAllWorkers) {
  const std::vector<data::Sample> samples = data::MakeSamples(100);
  class BadReader : public data::ListReader {
   public:
    using data::ListReader::ListReader;
    absl::StatusOr<size_t> Read(size_t, data::SampleBlock*) override {
      return absl::DataLossError("a.norm: record 3");
    }
  };
  const auto ends = group::RunGroup(3, [&](group::ProcessGroup& group) -> absl::Status {
    data::PassOptions options = data::SmallPasses(10);
    options.part = group.rank();
    options.parts = 3;
    data::PassSource source(
        options,
        [&](uint32_t) -> std::unique_ptr<data::SampleReader> {
          if (group.rank() == 1) return std::make_unique<BadReader>(samples, 7);
          return std::make_unique<data::ListReader>(samples, 7);
        },
        {}, nullptr, CoordinatorOf(group, options.value_bytes));
    return source.Next().status();
  });
  for (const absl::Status& end : ends) {
    EXPECT_EQ(end.code(), absl::StatusCode::kDataLoss) << end;
    EXPECT_THAT(end.message(), HasSubstr("record 3"));
  }
}

TEST(SharedPass, DifferentDataIsDetected) {
  const std::vector<data::Sample> samples = data::MakeSamples(100), fewer = data::MakeSamples(99);
  const auto ends = group::RunGroup(2, [&](group::ProcessGroup& group) -> absl::Status {
    data::PassOptions options = data::SmallPasses(10);
    options.part = group.rank();
    options.parts = 2;
    data::PassSource source(
        options,
        [&](uint32_t) {
          return std::make_unique<data::ListReader>(group.rank() == 0 ? samples : fewer, 7);
        },
        {}, nullptr, CoordinatorOf(group, options.value_bytes));
    return source.Next().status();
  });
  for (const absl::Status& end : ends) {
    EXPECT_EQ(end.code(), absl::StatusCode::kFailedPrecondition) << end;
    EXPECT_THAT(end.message(), HasSubstr("give all workers the same files"));
  }
}

// Worker 0 owns key 7 and gives a row of one batch to worker 1, which sends `asks` as its request.
// Returns the owner's status.
absl::Status OwnerTold(const std::vector<uint32_t>& asks) {
  data::Pass pass;
  pass.keys.resize(1);
  pass.owned.resize(1);
  pass.owned[0].keys.Add(7);
  pass.owned[0].asked.resize(2);
  data::HostBatch& batch = pass.batches.emplace_back();
  batch.sparse.resize(1);
  batch.sparse[0].slot_num = 1;
  batch.sparse[0].offsets = {0};
  const auto ends = group::RunGroup(2, [&](group::ProcessGroup& group) -> absl::Status {
    if (group.leads()) return ExchangeRows(group, {true, {false}, {true}}, &pass);
    CISTERN_RETURN_IF_ERROR(group.Exchange({"", ""}).status());
    std::string message;
    group::PutNumbers<uint32_t>(asks, &message);
    return group.Exchange({message, ""}).status();
  });
  EXPECT_TRUE(ends[1].ok()) << ends[1];
  return ends[0];
}

TEST(SharedPass, InvalidRowsAndOccurrencesAreBlamedOnTheirSender) {
  EXPECT_TRUE(OwnerTold({0}).ok());
  EXPECT_TRUE(OwnerTold({1, 0, 2, 0, 1}).ok());
  const std::vector<std::pair<std::vector<uint32_t>, const char*>> wrong = {
      {{}, "sent too little"},
      {{2, 0}, "sent too little"},
      {{~0u}, "sent too little"},
      {{1, 1, 1, 0}, "asks for row 1 of 1"},
      {{1, ~0u, 1, 0}, "asks for row 4294967295 of 1"},
      {{1, 0}, "sent too little"},
      {{1, 0, 0}, "asks for a row that its batch does not hold"},
      {{1, 0, 1, 2}, "counts occurrence 2 of 2"},
      {{1, 0, ~0u, 0}, "sent too little"},
      {{0, 0}, "asks for rows of more batches than exist"},
  };
  for (const auto& [asks, error] : wrong) {
    const absl::Status told = OwnerTold(asks);
    EXPECT_EQ(told.code(), absl::StatusCode::kInternal) << told;
    EXPECT_THAT(told.message(), HasSubstr(absl::StrCat("worker 1 ", error)));
  }
}

}  // namespace
}  // namespace cistern
