// Passes that are committed while the next one trains.
#include "worker/train/pass_committer.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <numeric>
#include <set>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "test/worker/train/resume_fixture.h"
#include "worker/train/live_state.h"

namespace cistern {
namespace {

using testing::HasSubstr;

// Long enough for any machine; reached only by a test that fails.
constexpr absl::Duration kLimit = absl::Seconds(60);

class PassCommitterTest : public Resume {
 protected:
  void SetUp() override {
    JobFixture::SetUp();
    WriteSamples(folder_ + "/train.norm", 1000, 2000, 1);  // 15 full batches and a short one
    WriteSamples(folder_ + "/test.norm", 300, 2000, 2);
  }

  // Passes of about 5 batches, cut because a MiB holds no more of these wide rows. No snapshot and
  // no evaluation waits for a commit.
  model::ModelConfig OverlapConfig(std::vector<std::string> more = {}) {
    std::vector<std::string> overrides = {"solver.batchsize=64",
                                          "solver.display=1",
                                          "solver.num_epochs=2",
                                          "cistern.pass_memory_mb=1",
                                          "cistern.eval_every_epoch=false",
                                          "layers.deep.sparse_embedding_hparam."
                                          "embedding_vec_size=64",
                                          "layers.reshape1.leading_dim=256"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    return Config(overrides);
  }

  // Blocks the first call of `method` on server 1 until `released`; the call then continues.
  void BlockFirst(Scene& scene, const std::string& method, absl::Notification& released) {
    scene.fleet->address(1).before = [&, method](const char* called) -> absl::Status {
      if (method != called || blocked_.exchange(true)) return absl::OkStatus();
      if (released.WaitForNotificationWithTimeout(kLimit)) return absl::OkStatus();
      return absl::InternalError("nothing was trained during the commit");
    };
  }

  // Holds the calls of `method` until the training waits for the commit that they are part of.
  void HoldUntilAwaited(Scene& scene, const std::string& method) {
    for (size_t rank = 0; rank < 2; ++rank) {
      scene.fleet->address(rank).before = [&, method](const char* called) -> absl::Status {
        if (method != called) return absl::OkStatus();
        const absl::Time limit = absl::Now() + kLimit;
        while (!live_.awaits_commit && absl::Now() < limit) std::this_thread::yield();
        return live_.awaits_commit ? absl::OkStatus() : absl::InternalError("nobody waits for it");
      };
    }
  }

  std::atomic<bool> blocked_{false};
  LiveState live_;
};

// The rows of a pass that its commit leaves out are not on the servers; all others are.
TEST(PassCommitter, PushesAllRowsButThoseThatStay) {
  EmbeddedFleet fleet(2);
  auto client = Writer(fleet.Links());
  const auto device = DeviceContext::Open(DeviceKind::kCpu).value();
  const std::vector<Key> keys = TestKeys(3000);
  auto pass = std::make_shared<ReadyPass>();
  model::RowStage stage(*device);
  for (const TableId id : {kCtr, kDeep}) {
    auto& table =
        *pass->tables.emplace_back(std::make_unique<model::PassTable>(client->layout(id), *device));
    ASSERT_TRUE(table.Resize(keys.size()).ok());
    table.set_keys(keys);
    const std::vector<float> values = ValuesOf(keys, table.layout().full_floats());
    std::copy(values.begin(), values.end(), table.values());
    std::fill_n(table.has_embedx(), keys.size(), 1);
  }
  auto staying = std::make_shared<std::vector<Row>>();
  for (Row row = 0; row < keys.size(); row += 3) staying->push_back(row);
  std::reverse(staying->begin(), staying->end());
  PassCommitter committer(*client, *device, nullptr);
  committer.Start({pass, {nullptr, staying}, nullptr, {}}, [] {});
  const absl::Status committed = committer.Wait();
  ASSERT_TRUE(committed.ok()) << committed;
  for (const TableId id : {kCtr, kDeep}) {
    const Pulled pulled = PullKeys(*client, id, keys, /*absent_is_zero=*/true);
    ASSERT_TRUE(pulled.status.ok());
    const uint32_t stride = client->layout(id).full_floats();
    for (size_t row = 0; row < keys.size(); ++row) {
      const bool stays = id == kDeep && row % 3 == 0;
      ASSERT_EQ(pulled.has_embedx[row], stays ? kAbsent : 1) << row;
      ASSERT_EQ(pulled.values[row * stride + stride - 1],
                stays ? 0.0f : CellOf(keys[row], stride - 1));
    }
  }
}

TEST_F(PassCommitterTest, ThePassAfterItTrainsDuringTheCommit) {
  const model::ModelConfig config = OverlapConfig();
  const Outcome expected = Undisturbed(config);
  ASSERT_GE(expected.pass, 6u);  // several passes an epoch
  std::vector<uint64_t> ends;    // the last step of each pass
  for (const std::string& line : expected.lines) {
    if (line.find("\"event\":\"pass\"") == std::string::npos) continue;
    ends.push_back(nlohmann::json::parse(line)["iter"].get<uint64_t>());
  }
  ASSERT_GE(ends[1], ends[0] + 2);
  Scene scene(folder_ + "/blocked", DiskWithFiles());
  auto client = scene.Client();
  absl::Notification preparing, trained;
  BlockFirst(scene, "PreparePass", trained);
  // A pass is one pull of each server. The third one's would read rows that the first still has to
  // commit.
  std::atomic<int> pulls[2] = {}, pulls_before_commit[2] = {};
  for (size_t rank = 0; rank < 2; ++rank) {
    Address& server = scene.fleet->address(rank);
    server.before_frame = [&, rank](FrameKind kind) { pulls[rank] += kind == FrameKind::kPull; };
    server.before = [&, rank, block = server.before](const char* method) -> absl::Status {
      const std::string called = method;
      if (called == "PreparePass" && rank == 1 && !preparing.HasBeenNotified()) preparing.Notify();
      if (called == "CommitPass" && pulls_before_commit[rank] == 0) {
        pulls_before_commit[rank] = pulls[rank].load();
      }
      return block ? block(method) : absl::OkStatus();
    };
  }
  uint64_t lines_during_commit = 0;
  bool pass_line = false;
  JobOptions options = scene.Options();
  options.progress = [&](const Progress& p) {
    pass_line |= p.event == report::RunEvent::kPass;
    if (p.event != report::RunEvent::kTrain || p.iter <= ends[0] || trained.HasBeenNotified())
      return;
    ++lines_during_commit;
    // All of the second pass is trained while the commit of the first waits.
    if (p.iter < ends[1]) return;
    EXPECT_TRUE(preparing.WaitForNotificationWithTimeout(kLimit));
    // The file holds no line that the commit could take back.
    for (const std::string& line : LinesOf(scene)) {
      EXPECT_EQ(line.find("\"pass\":1"), std::string::npos) << line;
    }
    EXPECT_FALSE(pass_line);
    trained.Notify();
  };
  const auto summary = Train(config, *client, options);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(lines_during_commit, ends[1] - ends[0]);
  EXPECT_EQ(pulls_before_commit[0], 2);
  EXPECT_EQ(pulls_before_commit[1], 2);
  EXPECT_EQ(OutcomeOf(config, *client, scene, *summary), expected);
}

// The distinct keys of the batches [begin, end) of a run over the data of SetUp.
std::set<Key> KeysOfBatches(uint64_t begin, uint64_t end) {
  constexpr uint64_t kSamples = 1000, kBatch = 64, kBatches = 16, kRange = 2000;
  std::vector<Key> keys;  // as WriteSamples draws them
  std::mt19937 random(1);
  for (uint64_t i = 0; i < kSamples * kSlots; ++i) {
    keys.push_back(i % kSlots * kRange + random() % kRange);
  }
  std::set<Key> distinct;
  for (uint64_t batch = begin; batch < end; ++batch) {
    const uint64_t first = batch % kBatches * kBatch, last = std::min(first + kBatch, kSamples);
    distinct.insert(keys.begin() + static_cast<ptrdiff_t>(first * kSlots),
                    keys.begin() + static_cast<ptrdiff_t>(last * kSlots));
  }
  return distinct;
}

// The last steps of the passes of a run, after a 0.
std::vector<uint64_t> EndsOf(const std::vector<std::string>& lines) {
  std::vector<uint64_t> ends = {0};
  for (const std::string& line : lines) {
    const auto json = nlohmann::json::parse(line);
    if (json["event"] == "pass") ends.push_back(json["iter"]);
  }
  return ends;
}

// How many rows each pass shares with the next one.
std::vector<uint64_t> SharedWithNext(const std::vector<uint64_t>& ends) {
  std::vector<uint64_t> shared(ends.size() - 1);
  for (size_t pass = 0; pass + 2 < ends.size(); ++pass) {
    const std::set<Key> now = KeysOfBatches(ends[pass], ends[pass + 1]);
    for (const Key key : KeysOfBatches(ends[pass + 1], ends[pass + 2])) {
      shared[pass] += now.count(key);
    }
    EXPECT_GT(shared[pass], 0u);
  }
  return shared;
}

// Trains a run whose passes end at `ends`. Each waits with its last step until `server` is asked
// for the rows of the next one, which are known then. kept: receives Progress::kept_rows. stop_at:
// the step after which the run is interrupted; 0: none.
absl::StatusOr<TrainSummary> TrainInStep(const model::ModelConfig& config, ParameterClient& client,
                                         Address& server, const std::vector<uint64_t>& ends,
                                         JobOptions options, std::vector<uint64_t>* kept,
                                         uint64_t stop_at = 0) {
  absl::Mutex mutex;
  size_t pulls = 0;  // each pass is one
  std::atomic<bool> stopped{false};
  options.interrupted = &stopped;
  server.before_frame = [&](FrameKind kind) {
    absl::MutexLock lock(&mutex);
    pulls += kind == FrameKind::kPull;
  };
  options.progress = [&](const Progress& p) {
    if (p.event == report::RunEvent::kPass) kept->push_back(p.kept_rows.value_or(0));
    const auto end = std::find(ends.begin() + 1, ends.end() - 1, p.iter);
    if (p.event != report::RunEvent::kTrain || end == ends.end() - 1) return;
    const size_t wanted = static_cast<size_t>(end - ends.begin()) + 1;
    const auto pulled = [&] { return pulls >= wanted; };
    absl::MutexLock lock(&mutex);
    EXPECT_TRUE(mutex.AwaitWithTimeout(absl::Condition(&pulled), kLimit)) << p.iter;
    stopped = p.iter == stop_at;
  };
  auto summary = Train(config, client, options);
  server.before_frame = nullptr;
  return summary;
}

TEST_F(PassCommitterTest, CommitsInMemoryLeaveOutTheRowsOfTheNextPass) {
  const Outcome expected = Undisturbed(OverlapConfig());  // each commit is durable
  const std::vector<uint64_t> ends = EndsOf(expected.lines), shared = SharedWithNext(ends);
  ASSERT_GE(ends.size(), 7u);
  for (const uint64_t commit_every : {2, 3}) {
    const model::ModelConfig config =
        OverlapConfig({absl::StrCat("cistern.commit_every=", commit_every)});
    Scene scene(absl::StrCat(folder_, "/every", commit_every), DiskWithFiles());
    auto client = scene.Client();
    std::vector<uint64_t> kept, stay = shared;
    for (size_t pass = commit_every; pass <= stay.size(); pass += commit_every) stay[pass - 1] = 0;
    const auto summary =
        TrainInStep(config, *client, scene.fleet->address(0), ends, scene.Options(), &kept);
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_EQ(kept, stay);
    EXPECT_EQ(summary->kept_rows, std::accumulate(stay.begin(), stay.end(), uint64_t{0}));
    EXPECT_EQ(OutcomeOf(config, *client, scene, *summary), expected);
  }
}

// Servers that are not durable, if nobody reads them after a run that fails: until the last pass,
// also if a signal makes it the last one while the rows of the next one are known.
TEST_F(PassCommitterTest, PassesLeaveOutRowsOnServersThatEndWithTheRun) {
  const model::ModelConfig config = OverlapConfig();
  const std::vector<uint64_t> ends = EndsOf(Undisturbed(config).lines);
  for (const uint64_t stop_at : {uint64_t{0}, ends[3]}) {
    std::vector<uint64_t> digests[2], kept[2], stay = SharedWithNext(ends);
    if (stop_at > 0) stay = {stay[0], stay[1], 0};
    for (const bool end_with_run : {false, true}) {
      EmbeddedFleet fleet(2);
      Address server;
      server.Connect(&fleet.node(0));
      auto client = Connected({{"server 0", &server, &server}, fleet.node(1).link("server 1")});
      JobOptions options = Options("embedded");
      options.servers_end_with_run = end_with_run;
      const auto summary =
          TrainInStep(config, *client, server, ends, options, &kept[end_with_run], stop_at);
      ASSERT_TRUE(summary.ok()) << summary.status();
      EXPECT_EQ(summary->interrupted(), stop_at > 0);
      digests[end_with_run] = DigestsOf(*client);
    }
    EXPECT_EQ(digests[1], digests[0]);
    EXPECT_EQ(kept[0], std::vector<uint64_t>(stay.size()));
    EXPECT_EQ(kept[1], stay);
  }
}

// What durable commits hold does not depend on how many there are, whatever rows and tables are.
TEST_F(PassCommitterTest, CommitsInMemoryChangeNoResult) {
  const std::string deep = "cistern.embeddings.deep.";
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"optimizer.update_type=Global"},
        {deep + "row_type=bfloat16", deep + "accessor=ctr", deep + "embedx_threshold=1"},
        {deep + "max_rows=2000"},
        {deep + "expire_passes=1"}}) {
    SCOPED_TRACE(more[0]);
    const Outcome expected = Undisturbed(OverlapConfig(more));
    std::vector<std::string> fewer = more;
    fewer.push_back("cistern.commit_every=3");
    EXPECT_EQ(Undisturbed(OverlapConfig(fewer)), expected);
  }
}

TEST_F(PassCommitterTest, AnEvaluationWaitsForTheCommit) {
  const model::ModelConfig config = OverlapConfig({"solver.eval_interval=7"});
  const Outcome expected = Undisturbed(config);
  Scene scene(folder_ + "/slow", DiskWithFiles());
  auto client = scene.Client();
  HoldUntilAwaited(scene, "CommitPass");
  std::atomic<uint64_t> committed{0};
  scene.fleet->address(1).after = [&](const char* method) -> absl::Status {
    committed += std::string(method) == "CommitPass";
    return absl::OkStatus();
  };
  int evaluations = 0;
  JobOptions options = scene.Options();
  options.live = &live_;
  options.progress = [&](const Progress& p) {
    if (p.event != report::RunEvent::kEval) return;
    ++evaluations;
    EXPECT_EQ(committed, p.pass);
  };
  const auto summary = Train(config, *client, options);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_GT(evaluations, 3);
  EXPECT_EQ(OutcomeOf(config, *client, scene, *summary), expected);
}

TEST_F(PassCommitterTest, ACrashCostsAtMostTwoPasses) {
  const model::ModelConfig config = OverlapConfig();
  const Outcome expected = Undisturbed(config);
  Scene scene(folder_ + "/killed", DiskWithFiles());
  uint64_t first_end = 0, trained = 0;
  {
    auto client = scene.Client();
    absl::Notification released;
    std::atomic<int> prepares{0};
    scene.fleet->address(1).before = [&](const char* method) -> absl::Status {
      if (std::string(method) != "PreparePass" || ++prepares != 2) return absl::OkStatus();
      released.WaitForNotificationWithTimeout(kLimit);
      return absl::InternalError("dead");
    };
    JobOptions options = scene.Options();
    options.progress = [&](const Progress& p) {
      if (p.event == report::RunEvent::kPass) first_end = p.iter;
      if (p.event == report::RunEvent::kTrain) trained = p.iter;
      // Some steps of the third pass are trained while the second is being committed.
      if (first_end > 0 && p.event == report::RunEvent::kTrain && p.iter > 2 * first_end + 2 &&
          !released.HasBeenNotified()) {
        released.Notify();
      }
    };
    const auto dead = Train(config, *client, options);
    EXPECT_EQ(dead.status().code(), absl::StatusCode::kInternal) << dead.status();
    EXPECT_THAT(std::string(dead.status().message()), HasSubstr("pass 2"));
  }
  scene.fleet->address(1).before = nullptr;
  auto client = scene.Client();
  const auto summary = Train(config, *client, scene.Options(/*resume=*/true));
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->resumed_from, first_end);
  EXPECT_GT(trained, 2 * first_end);
  EXPECT_EQ(OutcomeOf(config, *client, scene, *summary), expected);
}

// Data that cannot be read ends the run, and does not take back the pass in commit.
TEST_F(PassCommitterTest, AnErrorKeepsTheCommitInFlight) {
  const std::string path = folder_ + "/train.norm";
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 10);
  Scene scene(folder_ + "/cut", DiskWithFiles());
  auto client = scene.Client();
  HoldUntilAwaited(scene, "PreparePass");
  uint64_t trained = 0, committed = 0;
  JobOptions options = scene.Options();
  options.progress = [&](const Progress& p) {
    (p.event == report::RunEvent::kPass ? committed : trained) = p.iter;
  };
  options.live = &live_;
  const auto summary = Train(OverlapConfig(), *client, options);
  EXPECT_EQ(summary.status().code(), absl::StatusCode::kDataLoss) << summary.status();
  EXPECT_GT(client->committed_pass(), 0u);
  EXPECT_EQ(committed, trained);
}

TEST_F(PassCommitterTest, ARunResumesFromAnyPointOfTwoPasses) {
  ExpectGoesOnFromAnywhere(OverlapConfig(), 17);
}

TEST_F(PassCommitterTest, ARunResumesFromAnyPointWithFewerCommitsAndEvaluations) {
  ExpectGoesOnFromAnywhere(
      OverlapConfig({"cistern.commit_every=3", "solver.eval_interval=9", "cistern.shuffle=true",
                     "cistern.embeddings.deep.row_type=bfloat16"}),
      17);
}

}  // namespace
}  // namespace cistern
