// Passes of data in streams: the same samples for any number of workers, each read by one of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>
#include <set>

#include "absl/synchronization/mutex.h"
#include "test/worker/pass/group_passes.h"

namespace cistern {
namespace {

using testing::HasSubstr;

// Reads a stream; may not know its length.
class StreamReader : public data::ListReader {
 public:
  StreamReader(const std::vector<data::Sample>& samples, size_t step, bool is_known)
      : data::ListReader(samples, step), samples_(samples.size()), is_known_(is_known) {}
  std::optional<uint64_t> Samples() const override {
    return is_known_ ? std::optional<uint64_t>(samples_) : std::nullopt;
  }

 private:
  const uint64_t samples_;
  const bool is_known_;
};

// Data divided into streams, whose numbers start where those of the stream before end.
struct Layout {
  std::vector<std::vector<data::Sample>> streams;
  bool is_known = true;

  explicit Layout(const std::vector<size_t>& sizes, bool known = true) : is_known(known) {
    const std::vector<data::Sample> all =
        data::MakeSamples(std::accumulate(sizes.begin(), sizes.end(), size_t{0}));
    auto next = all.begin();
    for (const size_t size : sizes) {
      streams.emplace_back(next, next + static_cast<ptrdiff_t>(size));
      next += static_cast<ptrdiff_t>(size);
    }
  }
};

data::PassOptions OptionsFor(const Layout& layout, size_t batchsize) {
  data::PassOptions options = data::SmallPasses(batchsize);
  options.streams = static_cast<uint32_t>(layout.streams.size());
  return options;
}

// Opens the streams of `layout`, and notes in `opened` which.
class Opener {
 public:
  explicit Opener(const Layout& layout) : layout_(layout) {}
  data::PassSource::OpenStream For(uint32_t worker) {
    return [this, worker](uint32_t, uint32_t stream) {
      absl::MutexLock lock(&mutex_);
      readers_[stream].insert(worker);
      return std::make_unique<StreamReader>(layout_.streams.at(stream), 7, layout_.is_known);
    };
  }
  // The workers that opened each stream.
  std::map<uint32_t, std::set<uint32_t>> readers() {
    absl::MutexLock lock(&mutex_);
    return readers_;
  }

 private:
  const Layout& layout_;
  absl::Mutex mutex_;
  std::map<uint32_t, std::set<uint32_t>> readers_;
};

std::vector<data::Pass> OneWorker(const data::PassOptions& options, const Layout& layout,
                                  const data::PassCursor& start = {}) {
  Opener opener(layout);
  data::PassSource source(options, opener.For(0), start);
  std::vector<data::Pass> passes;
  while (true) {
    auto pass = source.Next();
    EXPECT_TRUE(pass.ok()) << pass.status();
    if (!pass.ok() || *pass == nullptr) return passes;
    passes.push_back(std::move(**pass));
  }
}

GroupPasses Workers(uint32_t size, const data::PassOptions& options, const Layout& layout,
                    const data::PassCursor& start = {}, Opener* opener = nullptr) {
  Opener own(layout);
  if (opener == nullptr) opener = &own;
  GroupPasses passes(size);
  group::ExpectAllWell(group::RunGroup(size, [&](group::ProcessGroup& group) -> absl::Status {
    data::PassOptions part = options;
    part.part = group.rank();
    part.parts = size;
    data::PassSource source(part, opener->For(group.rank()), start, nullptr,
                            CoordinatorOf(group, options.value_bytes));
    while (true) {
      CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<data::Pass> pass, source.Next());
      if (pass == nullptr) return absl::OkStatus();
      CISTERN_RETURN_IF_ERROR(ExchangeRows(
          group, {options.segments, {false, true}, {options.segments, false}}, pass.get()));
      passes[group.rank()].push_back(std::move(*pass));
    }
  }));
  return passes;
}

// The numbers of the samples of each epoch.
std::vector<std::multiset<float>> EpochsOf(const std::vector<data::Pass>& passes) {
  std::vector<std::multiset<float>> epochs;
  for (const data::Pass& pass : passes) {
    epochs.resize(std::max<size_t>(epochs.size(), pass.epoch + 1));
    for (const data::HostBatch& batch : pass.batches) {
      epochs[pass.epoch].insert(batch.label.begin(), batch.label.end());
    }
  }
  return epochs;
}

std::multiset<float> AllNumbers(const Layout& layout) {
  std::multiset<float> all;
  for (const auto& stream : layout.streams) {
    for (const data::Sample& sample : stream) all.insert(sample.label);
  }
  return all;
}

// Layouts of streams of very different length, some of them empty.
std::vector<Layout> RandomLayouts(size_t count) {
  std::mt19937 random(20261123);
  std::vector<Layout> layouts;
  while (layouts.size() < count) {
    std::vector<size_t> sizes(2 + random() % 9);
    for (size_t& size : sizes) {
      const size_t kind = random() % 4;
      size = kind == 0 ? 0 : kind == 1 ? random() % 5 : random() % 90;
    }
    if (std::accumulate(sizes.begin(), sizes.end(), size_t{0}) == 0) continue;
    layouts.emplace_back(sizes, random() % 2 == 0);
  }
  return layouts;
}

TEST(StreamPasses, AnEpochHoldsEverySampleOnce) {
  for (const Layout& layout : RandomLayouts(40)) {
    for (const size_t batchsize : {1, 7, 10, 1000}) {
      data::PassOptions options = OptionsFor(layout, batchsize);
      options.num_epochs = 2;
      const std::vector<data::Pass> passes = OneWorker(options, layout);
      const std::multiset<float> all = AllNumbers(layout);
      EXPECT_EQ(EpochsOf(passes), (std::vector<std::multiset<float>>{all, all}));
      for (const data::Pass& pass : passes) {
        for (size_t b = 0; b + 1 < pass.batches.size(); ++b) {
          EXPECT_EQ(pass.batches[b].size, batchsize);
        }
      }
    }
  }
}

TEST(StreamPasses, EveryNumberOfWorkersTrainsTheSameBatches) {
  for (const Layout& layout : RandomLayouts(6)) {
    for (const size_t max_batches : {0, 23}) {
      data::PassOptions options = OptionsFor(layout, 10);
      options.num_epochs = 2;
      options.max_batches = max_batches;
      options.cut_every = 3;
      const std::vector<data::Pass> one = OneWorker(options, layout);
      for (const uint32_t workers : {2, 3, 4, 5}) {
        Opener opener(layout);
        ExpectSamePasses(Workers(workers, options, layout, {}, &opener), one);
        EXPECT_EQ(opener.readers().size(), layout.streams.size());
        for (const auto& [stream, readers] : opener.readers()) EXPECT_EQ(readers.size(), 1u);
      }
    }
  }
}

TEST(StreamPasses, ResumeWithAnyNumberOfWorkers) {
  const Layout layout({40, 3, 0, 77, 12, 25}, /*known=*/true);
  const Layout unknown({40, 3, 0, 77, 12, 25}, /*known=*/false);
  for (const Layout* data : {&layout, &unknown}) {
    data::PassOptions options = OptionsFor(*data, 10);
    options.cut_every = 3;
    options.num_epochs = 2;
    const std::vector<data::Pass> one = OneWorker(options, *data);
    ASSERT_GT(one.size(), 5u);
    for (const size_t done : {0, 2, 4}) {
      std::vector<data::Pass> rest = OneWorker(options, *data, one[done].end);
      ASSERT_EQ(rest.size(), one.size() - done - 1);
      for (size_t p = 0; p < rest.size(); ++p) {
        for (size_t b = 0; b < rest[p].batches.size(); ++b) {
          EXPECT_EQ(data::SamplesOf(rest[p], rest[p].batches[b]),
                    data::SamplesOf(one[done + 1 + p], one[done + 1 + p].batches[b]));
        }
      }
      ExpectSamePasses(Workers(3, options, *data, one[done].end), rest);
      const data::PassCursor inside = one[done].CursorAfter(1);
      ExpectSamePasses(Workers(2, options, *data, inside), OneWorker(options, *data, inside));
    }
  }
}

TEST(StreamPasses, AreTheSameWhetherLengthsAreKnownOrNot) {
  for (Layout layout : RandomLayouts(10)) {
    layout.is_known = true;
    const data::PassOptions options = OptionsFor(layout, 10);
    const std::vector<data::Pass> known = OneWorker(options, layout);
    layout.is_known = false;
    const std::vector<data::Pass> unknown = OneWorker(options, layout);
    ASSERT_EQ(known.size(), unknown.size());
    for (size_t p = 0; p < known.size(); ++p) {
      ASSERT_EQ(known[p].batches.size(), unknown[p].batches.size());
      for (size_t b = 0; b < known[p].batches.size(); ++b) {
        EXPECT_EQ(known[p].batches[b].label, unknown[p].batches[b].label);
      }
    }
  }
}

TEST(StreamPasses, StreamsGiveEqualPartsWhileTheyLast) {
  const Layout layout({100, 3, 9, 100});
  const std::vector<data::Pass> passes = OneWorker(OptionsFor(layout, 10), layout);
  ASSERT_EQ(passes.size(), 1u);
  // Numbers of the samples that each stream gives to a batch.
  std::vector<std::vector<int>> parts;
  for (const data::HostBatch& batch : passes[0].batches) {
    std::vector<int>& of_batch = parts.emplace_back(4);
    for (const float label : batch.label) {
      ++of_batch[label < 100 ? 0 : label < 103 ? 1 : label < 112 ? 2 : 3];
    }
  }
  using testing::ElementsAre;
  ASSERT_EQ(parts.size(), 22u);
  EXPECT_THAT(parts[0], ElementsAre(2, 3, 2, 3));
  EXPECT_THAT(parts[1], ElementsAre(3, 0, 4, 3));
  EXPECT_THAT(parts[2], ElementsAre(4, 0, 3, 3));
  EXPECT_THAT(parts[3], ElementsAre(5, 0, 0, 5));
  EXPECT_THAT(parts[21], ElementsAre(1, 0, 0, 1));
}

TEST(StreamPasses, AnEmptyDataSetIsRefusedByAllWorkers) {
  const Layout layout({0, 0, 0});
  Opener opener(layout);
  data::PassSource source(OptionsFor(layout, 10), opener.For(0));
  EXPECT_THAT(std::string(source.Next().status().message()), HasSubstr("holds no sample"));
}

TEST(StreamPasses, AnErrorOfOneStreamFailsAllWorkers) {
  const Layout layout({50, 50, 50});
  const auto ends = group::RunGroup(3, [&](group::ProcessGroup& group) -> absl::Status {
    data::PassOptions part = OptionsFor(layout, 10);
    part.part = group.rank();
    part.parts = 3;
    data::PassSource source(
        part,
        [&](uint32_t, uint32_t stream) -> absl::StatusOr<std::unique_ptr<data::SampleReader>> {
          if (stream == 1) return absl::DataLossError("b.norm: cut short");
          return std::make_unique<StreamReader>(layout.streams[stream], 7, true);
        },
        {}, nullptr, CoordinatorOf(group, part.value_bytes));
    return source.Next().status();
  });
  for (const absl::Status& end : ends) {
    EXPECT_EQ(end.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(end.message()), HasSubstr("b.norm: cut short"));
  }
}

TEST(StreamPasses, DataThatChangedSinceTheRunStoppedIsRefused) {
  const Layout layout({40, 30, 20});
  data::PassOptions options = OptionsFor(layout, 10);
  options.cut_every = 5;
  const data::PassCursor stopped = OneWorker(options, layout)[0].end;
  EXPECT_EQ(stopped.next.streams.size(), 3u);
  const auto resume = [&](const Layout& now) {
    Opener opener(now);
    data::PassSource source(OptionsFor(now, 10), opener.For(0), stopped);
    return std::string(source.Next().status().message());
  };
  EXPECT_THAT(resume(Layout({40, 30, 20, 5})), HasSubstr("the data changed"));
  EXPECT_THAT(resume(Layout({5, 30, 20})), HasSubstr("the data changed"));
}

}  // namespace
}  // namespace cistern
