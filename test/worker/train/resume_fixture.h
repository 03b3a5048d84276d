// Runs with injected failures, on durable servers in this process and a disk in memory.
#pragma once

#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "test/support/memory_file_system.h"
#include "test/worker/client/restartable_fleet.h"
#include "test/worker/train/job_fixture.h"

namespace cistern {

// All results of a run except times.
struct Outcome {
  std::vector<uint64_t> digests;   // of all tables
  std::vector<std::string> lines;  // of metrics.jsonl
  std::string predictions;         // of OUT/model
  std::vector<std::string> names;  // in OUT
  std::optional<double> auc;
  uint64_t iterations = 0, samples = 0;
  PassId pass = 0;
  bool operator==(const Outcome&) const = default;
};

// Injects a failure into the servers of a fleet at their n-th call from any client.
class Trouble {
 public:
  // happen: returns the status of a call of `rank`; runs for the n-th and all later calls.
  using Happen = std::function<absl::Status(size_t rank, uint64_t calls_since)>;

  void Watch(RestartableFleet& fleet) {
    for (size_t rank = 0; rank < fleet.size(); ++rank) {
      fleet.address(rank).before = [this, rank](const char*) -> absl::Status {
        const uint64_t call = ++calls_;
        return call < at_ ? absl::OkStatus() : happen_(rank, call - at_);
      };
    }
  }
  void At(uint64_t call, Happen happen) {
    calls_ = 0;
    at_ = call;
    happen_ = std::move(happen);
  }
  void Never() { at_ = ~uint64_t{0}; }
  uint64_t calls() const { return calls_; }

 private:
  std::atomic<uint64_t> calls_{0};
  std::atomic<uint64_t> at_{~uint64_t{0}};
  Happen happen_;
};

// The servers of a run, the disk of servers and worker, and the run's output folder.
struct Scene {
  explicit Scene(const std::string& out_dir, std::unique_ptr<MemoryFileSystem> found = nullptr)
      : out(out_dir),
        disk(found != nullptr ? std::move(found) : std::make_unique<MemoryFileSystem>()) {
    server::ServerOptions options;
    options.data_dir = "/servers";
    options.shard_num = 4;
    options.files = disk.get();
    fleet = std::make_unique<RestartableFleet>(2, options);
    trouble.Watch(*fleet);
  }

  // Two commits make a day, whenever they are made.
  std::unique_ptr<ParameterClient> Client() {
    ClientOptions options;
    options.retry_limit = absl::Milliseconds(20);
    const auto self = std::make_shared<const ParameterClient*>(nullptr);
    options.today = [self] { return 100 + static_cast<uint32_t>((*self)->committed_pass() / 2); };
    auto client = Connect(*fleet, options);
    *self = client.get();
    return client;
  }
  JobOptions Options(bool resume = false) {
    JobOptions options;
    options.out_dir = out;
    options.threads = 2;
    options.files = disk.get();
    options.resume = resume;
    return options;
  }

  const std::string out;
  const std::unique_ptr<MemoryFileSystem> disk;
  Trouble trouble;
  std::unique_ptr<RestartableFleet> fleet;
};

class Resume : public JobFixture {
 protected:
  void SetUp() override {
    JobFixture::SetUp();
    WriteSamples(folder_ + "/train.norm", 1000, 100, 1);  // 15 full batches and a short one
    WriteSamples(folder_ + "/test.norm", 300, 100, 2);
  }

  // Passes of 5 batches, the last of an epoch shorter; a snapshot after some of them.
  model::ModelConfig CutConfig(std::vector<std::string> more = {}) {
    std::vector<std::string> overrides = {"solver.batchsize=64", "solver.snapshot=5",
                                          "solver.snapshot_prefix=" + folder_ + "/files/a",
                                          "solver.display=2"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    return Config(overrides);
  }

  // The log lines of a run without those of failures and without times.
  static std::vector<std::string> LinesOf(const Scene& scene) {
    std::vector<std::string> lines;
    std::istringstream file(
        ReadWhole(*scene.disk, scene.out + "/metrics.jsonl", 1 << 20).value_or(""));
    for (std::string text; std::getline(file, text);) {
      auto line = nlohmann::ordered_json::parse(text);
      const std::string event = line["event"];
      if (event == "resume" || event == "recover" || event == "lost" || event == "warning")
        continue;
      line.erase("seconds");
      line.erase("phases");
      line.erase("samples_per_second");
      line.erase("idle");
      line.erase("busy");
      line.erase("kept_rows");  // depends on how early the next pass is read
      line.erase("phases");
      line.erase("evicted_rows");  // only lines of the process that committed have these
      line.erase("expired_rows");
      lines.push_back(line.dump());
    }
    return lines;
  }

  // evaluation.json comes from the process that evaluated the final state, which may have died.
  static std::vector<std::string> FilesOf(const Scene& scene) {
    std::vector<std::string> files = scene.disk->List(scene.out).value();
    std::erase(files, "evaluation.json");
    return files;
  }

  std::string ModelPredictions(const model::ModelConfig& config, Scene& scene) {
    server::ServerOptions options;
    options.shard_num = 4;
    EmbeddedFleet fleet(1, options);
    auto client = Connect(fleet);
    const absl::Status loaded = LoadModel(*scene.disk, config, *client, scene.out + "/model");
    EXPECT_TRUE(loaded.ok()) << loaded;
    return loaded.ok() ? Predictions(config, *client, "model") : "";
  }

  Outcome OutcomeOf(const model::ModelConfig& config, ParameterClient& client, Scene& scene,
                    const TrainSummary& summary) {
    return {DigestsOf(client), LinesOf(scene),         ModelPredictions(config, scene),
            FilesOf(scene),    summary.score.auc,      summary.iterations,
            summary.samples,   client.committed_pass()};
  }

  // A run without failures. calls: receives the number of calls to its servers.
  Outcome Undisturbed(const model::ModelConfig& config, uint64_t* calls = nullptr) {
    Scene scene(folder_ + "/undisturbed", DiskWithFiles());
    auto client = scene.Client();
    const auto summary = Train(config, *client, scene.Options());
    EXPECT_TRUE(summary.ok()) << summary.status();
    if (calls != nullptr) *calls = scene.trouble.calls();
    return summary.ok() ? OutcomeOf(config, *client, scene, *summary) : Outcome();
  }

  // The worker dies at its n-th call; a new one resumes.
  void ExpectResumes(const model::ModelConfig& config, const Outcome& expected, uint64_t call) {
    SCOPED_TRACE(absl::StrCat("the worker dies at call ", call));
    Scene scene(folder_ + "/killed", DiskWithFiles());
    {
      auto client = scene.Client();
      scene.trouble.At(call, [](size_t, uint64_t) { return absl::InternalError("dead"); });
      const auto dead = Train(config, *client, scene.Options());
      EXPECT_EQ(dead.status().code(), absl::StatusCode::kInternal) << dead.status();
    }
    scene.trouble.Never();
    auto client = scene.Client();
    const auto summary = Train(config, *client, scene.Options(/*resume=*/true));
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_EQ(OutcomeOf(config, *client, scene, *summary), expected);
    resumed_ += summary->resumed_from ? 1 : 0;
  }

  // A server loses its memory at the n-th call, and is down for the next `away` calls.
  void ExpectRecovers(const model::ModelConfig& config, const Outcome& expected, uint64_t call,
                      uint64_t away) {
    SCOPED_TRACE(absl::StrCat("a server dies at call ", call, ", for ", away, " calls"));
    Scene scene(folder_ + "/lost", DiskWithFiles());
    auto client = scene.Client();
    absl::Mutex mutex;
    bool restarted = false;
    scene.trouble.At(call, [&](size_t rank, uint64_t since) -> absl::Status {
      if (rank != call % scene.fleet->size()) return absl::OkStatus();
      if (since < away) return absl::UnavailableError("dead");
      absl::MutexLock lock(&mutex);
      return std::exchange(restarted, true) ? absl::OkStatus() : scene.fleet->Restart(rank);
    });
    const auto summary = Train(config, *client, scene.Options());
    scene.trouble.Never();
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_EQ(OutcomeOf(config, *client, scene, *summary), expected);
    EXPECT_TRUE(restarted);
    recoveries_ += summary->recoveries;
  }

  // Tests both failures at every `step`-th call of the run, or at every one if CISTERN_EVERY_CALL
  // is set.
  void ExpectGoesOnFromAnywhere(const model::ModelConfig& config, uint64_t step) {
    if (std::getenv("CISTERN_EVERY_CALL") != nullptr) step = 1;
    uint64_t calls = 0;
    const Outcome expected = Undisturbed(config, &calls);
    ASSERT_GT(calls, 50u);
    // The first calls are Hello, and the last ones may be too late to matter.
    for (uint64_t call = 10; call + 20 < calls; call += step) {
      ExpectResumes(config, expected, call);
      ExpectRecovers(config, expected, call, call % 3 == 0 ? 5 : 0);
      if (HasFailure()) return;
    }
    // A server that dies between passes needs no recovery, and a worker that dies in its first pass
    // has no commit to resume from.
    EXPECT_GT(resumed_, 3u);
    EXPECT_GT(recoveries_, 3u);
  }

  std::unique_ptr<MemoryFileSystem> DiskWithFiles() const {
    auto disk = std::make_unique<MemoryFileSystem>();
    for (const auto& [path, bytes] : files_) disk->Put(path, bytes);
    return disk;
  }

  std::map<std::string, std::string> files_;  // on the disk before a run begins
  uint64_t resumed_ = 0, recoveries_ = 0;
};

// The learning rate is too large: the fifth epoch is the best, and patience ends after the seventh.
inline const std::vector<std::string> kBestOfSeven = {"solver.num_epochs=10",
                                                      "solver.snapshot=0",
                                                      "cistern.eval_every_epoch=true",
                                                      "cistern.keep_best=true",
                                                      "cistern.patience=2",
                                                      "cistern.plateau_factor=0.9",
                                                      "optimizer.adam_hparam.learning_rate=0.1"};

}  // namespace cistern
