#include "worker/data/feed/feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "test/worker/data/feed/number_files.h"
#include "test/worker/data/scratch.h"
#include "worker/data/feed/folder_feed.h"
#include "worker/data/source/pass_source.h"

namespace cistern {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Keys = std::vector<Key>;

// Passes of a growing folder.
class FeedTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.folder = scratch_.Path("in");
    folder_.open = OpenNumbers;
    folder_.look_seconds = 0;
    std::filesystem::create_directories(folder_.folder);
    feed_.inputs = 1;
    feed_.ends_when_empty = true;
  }
  // Keys first, first + 1, ... of a file.
  void Write(const std::string& name, Key first, size_t count) {
    std::string lines;
    for (size_t i = 0; i < count; ++i) lines += std::to_string(first + i) + "\n";
    scratch_.Write("in/" + name, lines);
  }
  absl::StatusOr<std::unique_ptr<PassSource>> Open(PassCursor start = {}) {
    CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<FeedSource> source, OpenFolderFeed(folder_));
    CISTERN_ASSIGN_OR_RETURN(
        const std::shared_ptr<Feed> feed,
        Feed::Create(
            feed_, std::move(source), [this] { return stops_; }, &status_, &start.next));
    PassOptions options;
    options.shape = {1, 0, {1}, {}, false};
    options.batchsize = 4;
    options.value_bytes = {100};
    options.byte_budget = budget_;
    options.streams = feed->partitions();
    options.endless = feed;
    return std::make_unique<PassSource>(
        options, [feed](uint32_t, uint32_t stream) { return feed->Open(stream); }, start);
  }
  static Keys KeysOf(const Pass& pass) {
    Keys keys;
    for (const HostBatch& batch : pass.batches) {
      for (const Row row : batch.sparse[0].rows) keys.push_back(pass.keys[0].keys()[row]);
    }
    return keys;
  }
  static std::unique_ptr<Pass> Next(PassSource& source) {
    auto pass = source.Next();
    EXPECT_TRUE(pass.ok()) << pass.status();
    return pass.ok() ? *std::move(pass) : nullptr;
  }

  Scratch scratch_;
  FolderFeedOptions folder_;
  FeedOptions feed_;
  FeedStatus status_;
  bool stops_ = false;
  size_t budget_ = size_t{1} << 20;
};

TEST_F(FeedTest, MakesAPassOfASlice) {
  Write("a", 1, 10);
  Write("b", 11, 3);
  feed_.samples = 9;
  auto source = Open().value();
  auto pass = Next(*source);
  EXPECT_THAT(KeysOf(*pass), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_EQ(pass->batches.size(), 3u);  // the last one is short
  EXPECT_FALSE(pass->ends_epoch);
  pass = Next(*source);
  EXPECT_THAT(KeysOf(*pass), ElementsAre(10, 11, 12, 13));
  EXPECT_EQ(Next(*source), nullptr);
}

TEST_F(FeedTest, TakesEqualPartsOfItsPartitions) {
  folder_.partitions = 2;
  for (int i = 0; i < 12; ++i) Write("f" + std::to_string(i), 100 * i, 4);
  auto source = Open().value();
  const auto pass = Next(*source);
  EXPECT_EQ(pass->samples, 48u);
  // A batch of 4 has two samples of each partition, while both have some.
  const Keys keys = KeysOf(*pass);
  EXPECT_EQ(keys[1], keys[0] + 1);
  EXPECT_EQ(keys[3], keys[2] + 1);
  EXPECT_NE(keys[2], keys[1] + 1);
}

TEST_F(FeedTest, ContinuesAfterAPassAndInsideOne) {
  for (int i = 0; i < 6; ++i) Write("f" + std::to_string(i), 10 * i, 7);
  feed_.samples = 17;
  auto source = Open().value();
  std::vector<std::unique_ptr<Pass>> passes;
  while (auto pass = Next(*source)) passes.push_back(std::move(pass));
  ASSERT_EQ(passes.size(), 3u);
  Write("a", 900, 5);  // its name comes before those that are read
  for (size_t p = 0; p < passes.size(); ++p) {
    for (size_t trained = 1; trained <= passes[p]->batches.size(); ++trained) {
      const PassCursor cursor = passes[p]->CursorAfter(trained);
      auto resumed = Open(cursor).value();
      Keys want, got;
      for (size_t q = p; q < passes.size(); ++q) {
        const Keys keys = KeysOf(*passes[q]);
        want.insert(want.end(), keys.begin() + (q == p ? std::min(keys.size(), trained * 4) : 0),
                    keys.end());
      }
      while (auto pass = Next(*resumed)) {
        const Keys keys = KeysOf(*pass);
        got.insert(got.end(), keys.begin(), keys.end());
      }
      // The new file may be read anywhere in what was not a slice yet.
      got.erase(std::remove_if(got.begin(), got.end(), [](Key key) { return key >= 900; }),
                got.end());
      EXPECT_EQ(got, want) << "pass " << p << " batch " << trained;
    }
  }
}

TEST_F(FeedTest, ASliceLargerThanAPassBecomesSeveral) {
  Write("a", 1, 100);
  budget_ = 5000;
  auto source = Open().value();
  Keys all;
  std::vector<std::unique_ptr<Pass>> passes;
  while (auto pass = Next(*source)) {
    const Keys keys = KeysOf(*pass);
    all.insert(all.end(), keys.begin(), keys.end());
    passes.push_back(std::move(pass));
  }
  ASSERT_GT(passes.size(), 2u);
  EXPECT_EQ(all.size(), 100u);
  auto resumed = Open(passes[0]->end).value();
  EXPECT_EQ(KeysOf(*Next(*resumed)), KeysOf(*passes[1]));
}

TEST_F(FeedTest, EndsWhereAWorkerStopsAndLosesNothing) {
  Write("a", 1, 8);
  feed_.ends_when_empty = false;
  feed_.samples = 8;
  auto source = Open().value();
  const auto pass = Next(*source);
  stops_ = true;
  Write("b", 9, 2);
  EXPECT_EQ(Next(*source), nullptr);
  stops_ = false;
  feed_.samples = 2;
  EXPECT_THAT(KeysOf(*Next(*Open(pass->end).value())), ElementsAre(9, 10));
}

TEST_F(FeedTest, ASliceEndsSomeTimeAfterItsFirstSample) {
  feed_.ends_when_empty = false;
  feed_.seconds = 0;
  Write("a", 1, 2);
  auto source = Open().value();
  EXPECT_THAT(KeysOf(*Next(*source)), ElementsAre(1, 2));
}

TEST_F(FeedTest, RefusesSlicesThatAreNotItsOwn) {
  Write("a", 1, 8);
  auto source = Open().value();
  const PassCursor end = Next(*source)->end;
  const auto error = [&](const std::string& slice) {
    PassCursor cursor = end;
    cursor.next.slice = slice;
    return Open(cursor).status();
  };
  for (const char* slice : {"x", "[]", "{}", R"({"source":1,"partitions":[]})"}) {
    EXPECT_TRUE(absl::IsDataLoss(error(slice))) << slice;
  }
  auto json = nlohmann::ordered_json::parse(end.next.slice);
  auto other = json;
  other["source"] = "folder /elsewhere";
  EXPECT_THAT(error(other.dump()).message(), HasSubstr("in the stream folder /elsewhere"));
  other = json;
  other["partitions"][0]["name"] = "7";
  EXPECT_THAT(error(other.dump()).message(), HasSubstr("partition 7"));
  for (const char* part : {"name", "place"}) {
    other = json;
    other["partitions"][0].erase(part);
    EXPECT_TRUE(absl::IsDataLoss(error(other.dump()))) << part;
  }
}

TEST_F(FeedTest, AWorkerSeesTheErrorsOfItsPartitions) {
  scratch_.Write("in/a", "1\n2\nbad\n");
  auto source = Open().value();
  EXPECT_THAT(source->Next().status().message(), HasSubstr("a bad line"));
}

// Two workers read two partitions; the batches together are those of one worker.
TEST_F(FeedTest, SeveralWorkersMakeTheSlicesOfOne) {
  folder_.partitions = 2;
  for (int i = 0; i < 12; ++i) Write("f" + std::to_string(i), 100 * i, 7);
  feed_.samples = 30;
  DataPlace start;
  const auto alone =
      Feed::Create(feed_, OpenFolderFeed(folder_).value(), nullptr, nullptr, &start).value();
  std::vector<std::unique_ptr<Feed>> workers;
  for (uint32_t part = 0; part < 2; ++part) {
    FeedOptions options = feed_;
    options.part = part;
    options.parts = 2;
    workers.push_back(
        Feed::Create(options, OpenFolderFeed(folder_).value(), nullptr, nullptr, &start).value());
  }
  // The workers' numbers meet here.
  absl::Mutex mutex;
  std::vector<std::vector<uint64_t>> sent(2);
  int come = 0, gone = 0;
  const auto share = [&](uint32_t part) -> ShareNumbers {
    return [&, part](const absl::StatusOr<std::vector<uint64_t>>& own)
               -> absl::StatusOr<std::vector<std::vector<uint64_t>>> {
      absl::MutexLock lock(&mutex);
      const auto nobody_is_late = [&] { return gone == 0; };
      mutex.Await(absl::Condition(&nobody_is_late));
      sent[part] = own.value();
      ++come;
      const auto all_came = [&] { return come == 2; };
      mutex.Await(absl::Condition(&all_came));
      auto all = sent;
      if (++gone == 2) come = gone = 0;
      return all;
    };
  };
  while (true) {
    const bool begun = alone->Begin(0, nullptr).value();
    bool one = false;
    {
      ThreadPool thread(1);
      thread.Run([&] { one = workers[1]->Begin(0, share(1)).value(); });
      EXPECT_EQ(workers[0]->Begin(0, share(0)).value(), begun);
    }
    EXPECT_EQ(one, begun);
    if (!begun) break;
    for (const auto& worker : workers) {
      EXPECT_EQ(worker->slice(), alone->slice());
      EXPECT_EQ(worker->next_slice(), alone->next_slice());
    }
  }
}

}  // namespace
}  // namespace cistern
