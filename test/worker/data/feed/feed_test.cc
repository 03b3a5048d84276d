#include "worker/data/feed/feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "test/worker/data/feed/number_files.h"
#include "test/worker/data/scratch.h"
#include "worker/data/feed/folder_feed.h"
#include "worker/data/source/pass_source.h"

namespace cistern::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Keys = std::vector<Key>;

// Where the numbers of several workers meet.
//
// Threads: one a worker.
class Meeting {
 public:
  explicit Meeting(size_t workers) : sent_(workers) {}

  ShareNumbers ShareOf(size_t part) {
    return
        [this, part](const absl::StatusOr<std::vector<uint64_t>>& own) { return Share(part, own); };
  }

 private:
  using Numbers = absl::StatusOr<std::vector<uint64_t>>;

  absl::StatusOr<std::vector<std::vector<uint64_t>>> Share(size_t part, const Numbers& own) {
    absl::MutexLock lock(&mutex_);
    const auto nobody_is_late = [this] { return gone_ == 0; };
    mutex_.Await(absl::Condition(&nobody_is_late));
    sent_[part] = own;
    ++come_;
    const auto all_came = [this] { return come_ == sent_.size(); };
    mutex_.Await(absl::Condition(&all_came));
    const std::vector<Numbers> all = sent_;
    if (++gone_ == sent_.size()) come_ = gone_ = 0;
    std::vector<std::vector<uint64_t>> numbers;
    for (const Numbers& one : all) {
      CISTERN_RETURN_IF_ERROR(one.status());
      numbers.push_back(*one);
    }
    return numbers;
  }

  absl::Mutex mutex_;
  std::vector<Numbers> sent_;
  size_t come_ = 0, gone_ = 0;
};

Keys KeysOf(const Pass& pass) {
  Keys keys;
  for (const HostBatch& batch : pass.batches) {
    for (const Row row : batch.sparse[0].rows) keys.push_back(pass.keys[0].keys()[row]);
  }
  return keys;
}

PassOptions PassesOf(const std::shared_ptr<Feed>& feed, size_t byte_budget) {
  PassOptions options;
  options.shape = {1, 0, {1}, {}, false};
  options.batchsize = 4;
  options.value_bytes = {100};
  options.byte_budget = byte_budget;
  options.streams = feed->streams();
  options.endless = feed;
  return options;
}

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
    return std::make_unique<PassSource>(
        PassesOf(feed, budget_), [feed](uint32_t, uint32_t stream) { return feed->Open(stream); },
        start);
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
  Meeting meeting(2);
  while (true) {
    const bool begun = alone->Begin(0, nullptr).value();
    bool one = false;
    {
      ThreadPool thread(1);
      thread.Run([&] { one = workers[1]->Begin(0, meeting.ShareOf(1)).value(); });
      EXPECT_EQ(workers[0]->Begin(0, meeting.ShareOf(0)).value(), begun);
    }
    EXPECT_EQ(one, begun);
    if (!begun) break;
    for (const auto& worker : workers) {
      EXPECT_EQ(worker->slice(), alone->slice());
      EXPECT_EQ(worker->next_slice(), alone->next_slice());
    }
  }
}

// Topics in memory, by topic and partition; a message is a sample, whose key is a number, or bad if
// that is 0. New partitions and messages are added at the end.
using Topics = std::deque<std::deque<Keys>>;

struct BadMessages {
  std::atomic<int> read = 0;         // all are left out
  std::vector<uint64_t> seen_after;  // partitions of each topic that are seen once one was read
};

class TopicPartition : public FeedPartition {
 public:
  TopicPartition(const Keys* messages, size_t at, BadMessages* bad)
      : messages_(*messages), at_(at), bad_(*bad) {}

  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) override {
    size_t count = 0;
    while (count < max_samples && at_ < messages_.size()) {
      const Key key = messages_[at_++];
      if (key == 0) {
        ++bad_.read;
        continue;
      }
      block->label.push_back(1);
      block->sparse[0].keys.push_back(key);
      block->sparse[0].offsets.push_back(static_cast<uint32_t>(block->sparse[0].keys.size()));
      ++block->size;
      ++count;
    }
    range_ += count;
    return count;
  }
  std::string TakeRange() override {
    const size_t count = std::exchange(range_, 0);
    return count == 0 ? "" : std::to_string(count);
  }
  absl::Status ReadRange(const std::string& range, SampleBlock* block) override {
    return Read(std::stoull(range), block).status();
  }
  std::string place() const override { return std::to_string(at_); }
  FeedLag lag() const override { return {messages_.size() - at_, std::nullopt}; }

 private:
  const Keys& messages_;
  size_t at_, range_ = 0;
  BadMessages& bad_;
};

// sees: how many partitions of each topic this worker sees.
class TopicSource : public FeedSource {
 public:
  TopicSource(const Topics* topics, const std::vector<uint64_t>* sees, BadMessages* bad)
      : topics_(*topics), sees_(*sees), bad_(*bad) {
    Use(sees_);
  }
  const std::vector<std::string>& partitions() const override { return names_; }
  std::vector<uint64_t> PartitionsNow() override {
    return bad_.read > 0 && !bad_.seen_after.empty() ? bad_.seen_after : sees_;
  }
  void Use(const std::vector<uint64_t>& counts) override {
    names_.clear();
    places_.clear();
    for (size_t t = 0; t < counts.size(); ++t) {
      for (size_t i = 0; i < counts[t]; ++i) {
        names_.push_back(NameOf(t, i));
        places_.emplace_back(t, i);
      }
    }
  }
  std::string identity() const override { return "topics"; }
  absl::StatusOr<std::unique_ptr<FeedPartition>> Open(size_t i, const std::string& place) override {
    const auto [topic, partition] = places_[i];
    if (fails_at_ == names_[i]) return absl::UnavailableError(names_[i] + " has no leader");
    return std::make_unique<TopicPartition>(&topics_[topic][partition],
                                            place.empty() ? 0 : std::stoull(place), &bad_);
  }
  static std::string NameOf(size_t topic, size_t partition) {
    return std::string(1, static_cast<char>('a' + topic)) + "/" + std::to_string(partition);
  }
  void FailAt(const std::string& partition) { fails_at_ = partition; }

 private:
  const Topics& topics_;
  const std::vector<uint64_t>& sees_;
  BadMessages& bad_;
  std::vector<std::string> names_;
  std::vector<std::pair<size_t, size_t>> places_;
  std::string fails_at_;
};

// Some workers that read topics, and all that they read, by partition.
class GrowingFeedTest : public testing::Test {
 protected:
  using Read = std::map<std::string, Keys>;

  GrowingFeedTest() {
    feed_.inputs = 1;
    feed_.ends_when_empty = true;
    feed_.seconds = 1e6;
  }
  // `workers` start at a place. All see what sees_[worker] says.
  void Start(uint32_t workers, const std::string& slice) {
    workers_.clear();
    sources_.clear();
    for (uint32_t part = 0; part < workers; ++part) {
      FeedOptions options = feed_;
      options.part = part;
      options.parts = workers;
      DataPlace start;
      start.slice = slice;
      auto source = std::make_unique<TopicSource>(&topics_, &sees_[part], &bad_);
      sources_.push_back(source.get());
      auto feed = Feed::Create(options, std::move(source), nullptr, &status_, &start);
      ASSERT_TRUE(feed.ok()) << feed.status();
      workers_.push_back(*std::move(feed));
    }
  }
  // The next slice of all workers; nullopt: the feed ends.
  std::optional<Read> Next() {
    std::vector<absl::StatusOr<bool>> begun(workers_.size(), false);
    Meeting meeting(workers_.size());
    {
      ThreadPool threads(static_cast<int>(workers_.size()));
      threads.ParallelFor(workers_.size(), [&](size_t part) {
        begun[part] = workers_[part]->Begin(0, meeting.ShareOf(part));
      });
    }
    for (const auto& one : begun) {
      if (!one.ok()) errors_.push_back(one.status());
    }
    if (!errors_.empty()) return std::nullopt;
    for (const auto& one : begun) EXPECT_EQ(*one, *begun[0]);
    if (!*begun[0]) return std::nullopt;
    return SamplesOfSlice();
  }
  Read SamplesOfSlice() {
    Read read;
    const auto json = nlohmann::json::parse(workers_[0]->slice());
    const size_t streams = workers_[0]->streams();
    EXPECT_EQ(json["partitions"].size(), streams);
    for (size_t part = 0; part < workers_.size(); ++part) {
      EXPECT_EQ(workers_[part]->slice(), workers_[0]->slice());
      EXPECT_EQ(workers_[part]->next_slice(), workers_[0]->next_slice());
      for (size_t i = streams * part / workers_.size(); i < streams * (part + 1) / workers_.size();
           ++i) {
        SampleBlock block = NumberBlock();
        EXPECT_TRUE((*workers_[part]->Open(static_cast<uint32_t>(i)))->Read(1 << 20, &block).ok());
        if (block.size > 0) read[json["partitions"][i]["name"]] = block.sparse[0].keys;
      }
    }
    return read;
  }
  static void Append(const Read& more, Read* all) {
    for (const auto& [name, keys] : more) {
      (*all)[name].insert((*all)[name].end(), keys.begin(), keys.end());
    }
  }
  Read AllOfTopics() const {
    Read all;
    for (size_t t = 0; t < topics_.size(); ++t) {
      for (size_t i = 0; i < topics_[t].size(); ++i) {
        if (!topics_[t][i].empty()) all[TopicSource::NameOf(t, i)] = topics_[t][i];
      }
    }
    return all;
  }

  Topics topics_;
  std::map<uint32_t, std::vector<uint64_t>> sees_;  // by worker
  BadMessages bad_;
  FeedOptions feed_;
  FeedStatus status_;
  std::vector<std::unique_ptr<Feed>> workers_;
  std::vector<TopicSource*> sources_;  // of workers_
  std::vector<absl::Status> errors_;
};

TEST_F(GrowingFeedTest, ReadsANewPartitionFromItsFirstMessage) {
  topics_ = {{{1, 2, 3, 4, 5, 6}}, {{50}}};
  sees_[0] = {1, 1};
  feed_.samples = 4;
  Start(1, "");
  EXPECT_EQ(Next(), (Read{{"a/0", {1, 2, 3}}, {"b/0", {50}}}));
  EXPECT_THAT(status_.TakeNotes(), testing::IsEmpty());
  topics_[0].push_back({10, 11});
  sees_[0] = {2, 1};
  EXPECT_EQ(Next(), (Read{{"a/0", {4, 5}}, {"a/1", {10, 11}}}));
  EXPECT_THAT(status_.TakeNotes(), ElementsAre(HasSubstr("a/1 is a new partition")));
  // Its place is in the commit, at its place in the order.
  const auto json = nlohmann::json::parse(workers_[0]->next_slice());
  EXPECT_EQ(json["partitions"][1]["name"], "a/1");
  EXPECT_EQ(json["partitions"][1]["place"], 2);
  EXPECT_EQ(json["partitions"][2]["name"], "b/0");
  EXPECT_EQ(Next(), (Read{{"a/0", {6}}}));
  EXPECT_EQ(Next(), std::nullopt);
}

TEST_F(GrowingFeedTest, ReadsANewPartitionWhileTheOthersAreEmpty) {
  topics_ = {{{1}}};
  sees_[0] = {1};
  Start(1, "");
  EXPECT_EQ(Next(), (Read{{"a/0", {1}}}));
  topics_[0].push_back({10});
  topics_[0].push_back({20});
  sees_[0] = {3};
  EXPECT_EQ(Next(), (Read{{"a/1", {10}}, {"a/2", {20}}}));
  EXPECT_THAT(status_.TakeNotes(), ElementsAre(HasSubstr("a/1, a/2 are new partitions")));
}

TEST_F(GrowingFeedTest, BatchesTakeEqualPartsOfNewPartitions) {
  topics_ = {{{1, 2, 3, 4}}};
  sees_[0] = {1};
  feed_.samples = 4;
  DataPlace start;
  const std::shared_ptr<Feed> feed =
      Feed::Create(feed_, std::make_unique<TopicSource>(&topics_, &sees_[0], &bad_), nullptr,
                   &status_, &start)
          .value();
  PassSource source(PassesOf(feed, size_t{1} << 20),
                    [feed](uint32_t, uint32_t stream) { return feed->Open(stream); });
  const auto first = source.Next().value();
  EXPECT_THAT(KeysOf(*first), ElementsAre(1, 2, 3, 4));
  topics_[0][0].insert(topics_[0][0].end(), {5, 6});
  topics_[0].push_back({10, 11});
  sees_[0] = {2};
  const auto second = source.Next().value();
  EXPECT_THAT(KeysOf(*second), ElementsAre(5, 6, 10, 11));
  EXPECT_TRUE(second->begin.next.streams.empty());
  EXPECT_THAT(second->CursorAfter(1).next.slice, HasSubstr("a/1"));
}

TEST_F(GrowingFeedTest, UsesAPartitionOnceAllWorkersSeeIt) {
  topics_ = {{{1, 2}, {11, 12}, {21, 22}}};
  sees_[0] = {3};
  sees_[1] = {1};  // also when they start
  feed_.samples = 1;
  Start(2, "");
  EXPECT_EQ(Next(), (Read{{"a/0", {1}}}));
  EXPECT_EQ(workers_[0]->streams(), 1u);
  sees_[1] = {2};
  EXPECT_EQ(Next(), (Read{{"a/0", {2}}, {"a/1", {11}}}));  // one of each
}

// A slice that was made before a partition was added is read again as it was.
TEST_F(GrowingFeedTest, ResumesInsideASliceOfFewerPartitions) {
  topics_ = {{{1, 2, 3}}};
  sees_[0] = {1};
  feed_.samples = 2;
  Start(1, "");
  const std::optional<Read> first = Next();
  const std::string slice = workers_[0]->slice();
  topics_[0].push_back({10});
  sees_[0] = sees_[1] = {2};
  Start(2, slice);
  EXPECT_EQ(workers_[0]->streams(), 1u);
  EXPECT_EQ(Next(), first);
  EXPECT_EQ(Next(), (Read{{"a/0", {3}}, {"a/1", {10}}}));
}

// While the workers wait for samples, one leaves out a message of a partition that another one
// gets.
TEST_F(GrowingFeedTest, ReadsNoBadMessageAgainWhenItsPartitionMoves) {
  topics_ = {{{1}, {2}}};
  sees_[0] = sees_[1] = {2};
  feed_.ends_when_empty = false;
  feed_.samples = 1;
  Start(2, "");
  EXPECT_EQ(Next(), (Read{{"a/0", {1}}, {"a/1", {2}}}));
  topics_[0][1].push_back(0);
  topics_[0].push_back({});
  topics_[0].push_back({30});
  bad_.seen_after = {4};
  EXPECT_EQ(Next(), (Read{{"a/3", {30}}}));
  EXPECT_EQ(bad_.read, 1);
  EXPECT_EQ(nlohmann::json::parse(workers_[0]->slice())["partitions"][1]["place"], 2);
}

TEST_F(GrowingFeedTest, AllWorkersLearnThatAPartitionCannotBeOpened) {
  topics_ = {{{1}, {2}}};
  sees_[0] = sees_[1] = {2};
  Start(2, "");
  ASSERT_TRUE(Next().has_value());
  topics_[0].push_back({3});
  sees_[0] = sees_[1] = {3};
  sources_[1]->FailAt("a/2");
  EXPECT_EQ(Next(), std::nullopt);
  ASSERT_EQ(errors_.size(), 2u);
  for (const absl::Status& error : errors_) {
    EXPECT_TRUE(absl::IsUnavailable(error)) << error;
    EXPECT_THAT(error.message(), HasSubstr("a/2 has no leader"));
  }
}

// Messages and partitions come at any time, workers see them late, and are killed and replaced by
// more or fewer, after or inside a slice: each message is read once, and each slice again as it
// was.
TEST_F(GrowingFeedTest, ReadsEachMessageOnceInRandomHistories) {
  for (unsigned seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto draw = [&random](uint64_t bound) { return random() % bound; };
    topics_.clear();
    topics_.resize(1 + draw(2));
    for (auto& topic : topics_) topic.resize(1 + draw(2));
    sees_.clear();
    feed_.samples = 1 + draw(20);
    std::string place;
    Read committed;
    std::optional<Read> again;  // a slice that was not committed
    Key key = 0;
    for (int life = 0; life < 12; ++life) {
      const bool is_last = life == 11;
      const auto workers = static_cast<uint32_t>(1 + draw(4));
      const auto look = [&](uint32_t worker) {
        std::vector<uint64_t>& sees = sees_[worker];
        sees.resize(topics_.size(), 1);
        for (size_t t = 0; t < sees.size(); ++t) {
          const uint64_t all = topics_[t].size();
          sees[t] = is_last ? all : sees[t] + draw(all - sees[t] + 1);
        }
      };
      // A worker that starts sees at least what is in a commit.
      for (uint32_t w = 0; w < 4; ++w) {
        look(w);
        if (place.empty()) continue;
        const auto json = nlohmann::json::parse(place);
        for (const auto& partition : json["partitions"]) {
          const std::string name = partition["name"];
          uint64_t& seen = sees_[w][static_cast<size_t>(name[0] - 'a')];
          seen = std::max<uint64_t>(seen, std::stoull(name.substr(2)) + 1);
        }
      }
      Start(workers, place);
      for (uint64_t slices = is_last ? 100000 : 1 + draw(4); slices > 0; --slices) {
        const std::optional<Read> read = Next();
        ASSERT_TRUE(errors_.empty()) << errors_[0];
        if (again) {
          EXPECT_EQ(read, again);
        }
        again.reset();
        if (!read) break;
        if (slices == 1 && !is_last && draw(2) == 0) {
          place = workers_[0]->slice();
          again = read;
          break;
        }
        Append(*read, &committed);
        place = workers_[0]->next_slice();
        if (is_last) continue;
        for (auto& topic : topics_) {
          if (topic.size() < 6 && draw(4) == 0) topic.emplace_back();
          for (Keys& messages : topic) {
            for (uint64_t n = draw(12); n > 0; --n) messages.push_back(++key);
          }
        }
        for (uint32_t w = 0; w < workers; ++w) look(w);
      }
      // Nothing may have been there yet.
      if (key == 0) topics_[0][0].push_back(++key);
    }
    EXPECT_EQ(committed, AllOfTopics());
  }
}

}  // namespace
}  // namespace cistern::data
