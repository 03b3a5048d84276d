// A job's recovery from lost servers, and when it gives up.
#include <gmock/gmock.h>

#include <atomic>

#include "test/worker/train/resume_fixture.h"

namespace cistern {
namespace {

using testing::HasSubstr;

class Replay : public Resume {};

TEST_F(Replay, ALossBeforeTheFirstCommitRestartsTheRunFromItsStart) {
  const model::ModelConfig config = CutConfig({"solver.num_epochs=1", "solver.snapshot=0"});
  Scene scene(folder_ + "/run"), calm(folder_ + "/calm");
  auto client = scene.Client(), calm_client = calm.Client();
  for (int run = 0; run < 2; ++run) {
    // The second run starts with the rows of the first.
    ASSERT_TRUE(Train(config, *calm_client, calm.Options()).ok());
    if (run == 1) {
      scene.trouble.At(20, [&](size_t, uint64_t since) {
        return since < 3 ? absl::UnavailableError("dead") : absl::OkStatus();
      });
    }
    const auto summary = Train(config, *client, scene.Options());
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_EQ(summary->recoveries > 0, run == 1);
  }
  EXPECT_EQ(DigestsOf(*client), DigestsOf(*calm_client));
}

TEST_F(Replay, TheJobYieldsToAnotherWriter) {
  const model::ModelConfig config = CutConfig({"solver.num_epochs=3"});
  Scene scene(folder_ + "/run");
  auto client = scene.Client();
  bool taken = false;
  JobOptions options = scene.Options();
  options.progress = [&](const Progress& p) {
    if (p.event != report::RunEvent::kPass || p.iter != 10 || std::exchange(taken, true)) return;
    auto other = scene.Client();
    JobOptions theirs = Options("other");
    theirs.files = scene.disk.get();
    EXPECT_TRUE(Train(CutConfig({"solver.num_epochs=1"}), *other, theirs).ok());
  };
  const absl::Status status = Train(config, *client, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_TRUE(taken);
}

TEST_F(Replay, ServersThatStayDownEndTheJobAfterTheLimit) {
  Scene scene(folder_ + "/run");
  auto client = scene.Client();
  scene.trouble.At(60, [](size_t, uint64_t) { return absl::UnavailableError("dead"); });
  JobOptions options = scene.Options();
  options.recovery_seconds = 0.2;
  const absl::Status status = Train(CutConfig(), *client, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the servers did not come back"));
}

TEST_F(Replay, TheLogReportsTheLossAndThePassOfTheResume) {
  Scene scene(folder_ + "/run");
  auto client = scene.Client();
  std::vector<std::string> events;
  JobOptions options = scene.Options();
  options.progress = [&](const Progress& p) {
    if (p.event == report::RunEvent::kWarning) return;
    if (!p.message.empty())
      events.push_back(absl::StrCat(report::EventName(p.event), ": ", p.message));
  };
  // The loss occurs while the third pass is pushed.
  std::atomic<bool> armed = false, lost = false;  // the client calls from several threads
  scene.fleet->address(1).before = [&](const char* method) -> absl::Status {
    if (std::string(method) == "BeginPass" && client->committed_pass() == 2) armed = true;
    if (!armed || std::string(method) != "SealPass" || lost.exchange(true)) return absl::OkStatus();
    return scene.fleet->Restart(1);
  };
  const auto summary = Train(CutConfig({"solver.num_epochs=1"}), *client, options);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->recoveries, 1u);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_THAT(events[0], HasSubstr("lost: pass 3: server 1"));
  EXPECT_THAT(events[1], HasSubstr("recover: training again from pass 3"));
  std::istringstream file(ReadWhole(*scene.disk, scene.out + "/metrics.jsonl", 1 << 20).value());
  std::vector<std::string> recovers, losses;
  for (std::string text; std::getline(file, text);) {
    const auto line = nlohmann::json::parse(text);
    if (line["event"] == "recover") recovers.push_back(line["message"]);
    if (line["event"] == "lost") losses.push_back(line["message"]);
  }
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_THAT(losses[0], HasSubstr("pass 3: server 1"));
  ASSERT_EQ(recovers.size(), 1u);
  EXPECT_THAT(recovers[0], HasSubstr("server 1"));
}

}  // namespace
}  // namespace cistern
