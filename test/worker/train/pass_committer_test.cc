// Passes that are committed while the next one trains.
#include "worker/train/pass_committer.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "test/worker/train/resume_fixture.h"

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
  ModelConfig OverlapConfig(std::vector<std::string> more = {}) {
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

  std::atomic<bool> blocked_{false};
};

TEST_F(PassCommitterTest, ThePassAfterItTrainsDuringTheCommit) {
  const ModelConfig config = OverlapConfig();
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
    pass_line |= p.event == RunEvent::kPass;
    if (p.event != RunEvent::kTrain || p.iter <= ends[0] || trained.HasBeenNotified()) return;
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

TEST_F(PassCommitterTest, AnEvaluationWaitsForTheCommit) {
  const ModelConfig config = OverlapConfig({"solver.eval_interval=7"});
  const Outcome expected = Undisturbed(config);
  Scene scene(folder_ + "/slow", DiskWithFiles());
  auto client = scene.Client();
  std::atomic<bool> committing{false};
  for (size_t rank = 0; rank < 2; ++rank) {
    scene.fleet->address(rank).before = [&](const char* method) -> absl::Status {
      if (std::string(method) == "PreparePass") committing = true;
      if (std::string(method) == "CommitPass") absl::SleepFor(absl::Milliseconds(30));
      return absl::OkStatus();
    };
    scene.fleet->address(rank).after = [&](const char* method) -> absl::Status {
      if (std::string(method) == "CommitPass") committing = false;
      return absl::OkStatus();
    };
  }
  JobOptions options = scene.Options();
  options.progress = [&](const Progress& p) {
    if (p.event == RunEvent::kEval) {
      EXPECT_FALSE(committing);
    }
  };
  const auto summary = Train(config, *client, options);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(OutcomeOf(config, *client, scene, *summary), expected);
}

TEST_F(PassCommitterTest, ACrashCostsAtMostTwoPasses) {
  const ModelConfig config = OverlapConfig();
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
      if (p.event == RunEvent::kPass) first_end = p.iter;
      if (p.event == RunEvent::kTrain) trained = p.iter;
      // Some steps of the third pass are trained while the second is being committed.
      if (first_end > 0 && p.event == RunEvent::kTrain && p.iter > 2 * first_end + 2 &&
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
  for (size_t rank = 0; rank < 2; ++rank) {
    scene.fleet->address(rank).before = [](const char* method) -> absl::Status {
      if (std::string(method) == "PreparePass") absl::SleepFor(absl::Milliseconds(100));
      return absl::OkStatus();
    };
  }
  uint64_t trained = 0, committed = 0;
  JobOptions options = scene.Options();
  options.progress = [&](const Progress& p) {
    (p.event == RunEvent::kPass ? committed : trained) = p.iter;
  };
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
      OverlapConfig({"cistern.commit_every=2", "solver.eval_interval=9", "cistern.shuffle=true"}),
      23);
}

}  // namespace
}  // namespace cistern
