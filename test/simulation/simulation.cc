#include "test/simulation/simulation.h"

#include <algorithm>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/check.h"
#include "server/checkpoint/state_folder.h"
#include "test/simulation/worker_actor.h"
#include "test/worker/client/restartable_fleet.h"

namespace cistern {
namespace {

constexpr size_t kMaxZombies = 3;
constexpr uint64_t kMaxSteps = 600;  // steps with faults; then faults stop

server::ServerOptions Shape(std::mt19937_64& random, uint64_t seed) {
  server::ServerOptions options;
  options.local_state = seed % 3 == 0;
  options.shard_num = 4;
  options.keep_commits = 1 + random() % 3;
  options.compact_min_bytes = random() % 2 == 0 ? 1 : uint64_t{1} << 20;
  return options;
}

class Simulation {
 public:
  Simulation(uint64_t seed, const ReferenceRun& reference, FaultCounts* counts,
             bool zombies_pass_fence)
      : seed_(seed),
        reference_(reference),
        zombies_pass_fence_(zombies_pass_fence),
        random_(seed),
        beside_random_(seed + 1),
        rates_(FaultRates::Of(kRates[random_() % 4])),
        commit_every_(1 + random_() % 3 / 2 * (random_() % 3)),
        fleet_(1 + static_cast<uint32_t>(random_() % 3), Shape(random_, seed), counts) {}

  SimulationResult Run() {
    const absl::Status started = fleet_.StartAll();
    if (!started.ok()) return Finished(started.ToString());
    fleet_.meanwhile = [this] { Beside(); };
    NewWorker();
    while (!trained_ && wrong_.empty() && result_.steps < kMaxSteps) {
      Disturb();
      StepOf(*worker_);
      LookAtDisk();
    }
    if (wrong_.empty()) FinishWithoutFaults();
    return Finished(wrong_);
  }

 private:
  static constexpr int kRates[] = {10, 40, 100, 250};  // in 10,000

  SimulationResult Finished(const std::string& wrong) {
    fleet_.meanwhile = nullptr;
    result_.wrong = wrong;
    return result_;
  }
  void Wrong(const std::string& what) {
    absl::MutexLock lock(&mutex_);
    if (wrong_.empty()) wrong_ = what;
  }

  void NewWorker() {
    if (worker_ != nullptr) {
      if (zombies_pass_fence_) worker_->PassFence();
      absl::MutexLock lock(&mutex_);
      zombies_.push_back(std::move(worker_));
      if (zombies_.size() > kMaxZombies && !zombies_.front()->busy)
        zombies_.erase(zombies_.begin());
    }
    WorkerActor::Options options;
    options.id = static_cast<uint32_t>(++result_.workers);
    options.seed = seed_;
    options.rates = faults_ ? rates_ : FaultRates();
    options.last_pass = ReferenceRun::kPasses;
    options.commit_every = commit_every_;
    worker_ = std::make_shared<WorkerActor>(&fleet_, options);
  }

  // Injects events between two steps of the worker.
  void Disturb() {
    for (size_t rank = 0; rank < fleet_.size(); ++rank) {
      if (random_() % 3 == 0) StartServer(rank);
    }
    if (random_() % 40 == 0) fleet_.Kill(random_() % fleet_.size());
    if (random_() % 150 == 0) {
      fleet_.LosePower(random_());
      StartServer(random_() % fleet_.size());
    }
    if (random_() % 30 == 0 && result_.workers + 8 < ReferenceRun::kWriters) NewWorker();
    if (random_() % 8 == 0) fleet_.DeliverLate(random_());
    if (random_() % 4 == 0) ZombieStep(random_());
  }

  // Injects events while a call is in transit.
  void Beside() {
    switch (beside_random_() % 8) {
      case 0:
        return fleet_.DeliverLate(beside_random_());
      case 1:
        return fleet_.Kill(beside_random_() % fleet_.size());
      case 2:
        if (beside_random_() % 4 == 0) fleet_.LosePower(beside_random_());
        return;
      case 3:
        return StartServer(beside_random_() % fleet_.size());
      default:
        // A takeover in the middle of another worker's verb needs several steps.
        for (uint64_t steps = beside_random_() % 5; steps-- > 0;) ZombieStep(beside_random_());
    }
  }

  void StartServer(size_t rank) {
    const absl::Status started = fleet_.Start(rank);
    if (!started.ok())
      Wrong(absl::StrCat("server ", rank, " does not start: ", started.ToString()));
  }

  void ZombieStep(uint64_t draw) {
    std::shared_ptr<WorkerActor> zombie;
    {
      absl::MutexLock lock(&mutex_);
      if (zombies_.empty()) return;
      zombie = zombies_[draw % zombies_.size()];
    }
    StepOf(*zombie);
  }

  void StepOf(WorkerActor& actor) {
    if (actor.busy.exchange(true)) return;  // the interrupted call belongs to this actor
    const WorkerActor::Outcome outcome = actor.Step();
    if (outcome == WorkerActor::Outcome::kCommitted) {
      absl::MutexLock lock(&mutex_);
      acknowledged_ = std::max(acknowledged_, actor.client()->committed_pass());
      ++result_.commits;
    }
    // Without a fence an old worker may get any error; only its effect on others counts.
    const bool counts = !zombies_pass_fence_ || &actor == worker_.get();
    if (outcome == WorkerActor::Outcome::kBroken && counts) {
      Wrong(absl::StrCat("worker ", actor.id(), " got the error ", actor.trouble()));
    }
    actor.busy = false;
    if (&actor != worker_.get()) return;
    ++result_.steps;
    if (outcome != WorkerActor::Outcome::kOver) return;
    trained_ =
        actor.client() != nullptr && actor.client()->committed_pass() == ReferenceRun::kPasses;
    if (!trained_ && result_.workers + 8 < ReferenceRun::kWriters) NewWorker();
  }

  // Checks that every manifest on disk is correct and does not change.
  void LookAtDisk() {
    PassId acknowledged;
    {
      absl::MutexLock lock(&mutex_);
      acknowledged = acknowledged_;
    }
    const auto folder =
        server::StateFolder::OpenToRead(fleet_.disk(), server::StateFolderOf("/cluster"));
    if (!folder.ok()) return Wrong(folder.status().ToString());
    const auto commits = (*folder)->Commits();
    if (!commits.ok()) return Wrong(commits.status().ToString());
    const uint64_t newest = commits->empty() ? 0 : commits->back();
    // A loss of power may remove the name of an unacknowledged decision.
    seen_.erase(seen_.upper_bound(newest), seen_.end());
    PassId pass = 0;
    for (const uint64_t commit : *commits) {
      const auto manifest = (*folder)->ReadManifest(commit);
      if (!manifest.ok()) return Wrong(manifest.status().ToString());
      LookAtManifest(*manifest);
      pass = manifest->manifest.pass();
    }
    if (pass < acknowledged) {
      Wrong(absl::StrCat("pass ", acknowledged, " was acknowledged, but the newest commit holds ",
                         "pass ", pass));
    }
  }

  void LookAtManifest(const server::ParsedManifest& parsed) {
    const v1::Manifest& manifest = parsed.manifest;
    const std::string what = absl::StrCat("commit ", manifest.commit());
    const auto before = seen_.find(manifest.commit() - 1);
    if (before != seen_.end() && before->second != manifest.previous()) {
      Wrong(what + " does not follow its predecessor");
    }
    const auto [seen, is_new] = seen_.emplace(manifest.commit(), parsed.self_xxh3);
    if (seen->second == parsed.self_xxh3 && !is_new) return;
    if (before != seen_.end() || is_new) CheckDigests(manifest, what);
    // Only a loss of power may replace an unacknowledged manifest.
    seen->second = parsed.self_xxh3;
    seen_.erase(seen_.upper_bound(manifest.commit()), seen_.end());
  }

  void CheckDigests(const v1::Manifest& manifest, const std::string& what) {
    if (manifest.tables_size() != 2 || manifest.dense_tables_size() != 1 ||
        manifest.pass() > ReferenceRun::kPasses) {
      return Wrong(what + " has other tables");
    }
    const ReferenceRun::Digests digests{manifest.tables(kRows).digest(),
                                        manifest.dense_tables(kSum).digest()};
    if (!(digests == reference_.after()[manifest.pass()])) {
      return Wrong(
          absl::StrCat(what, " is not pass ", manifest.pass(), " of a run without faults"));
    }
    uint32_t writer = 0;
    absl::string_view text = manifest.worker();
    if (!absl::ConsumePrefix(&text, "{\"writer\": ") || !absl::ConsumeSuffix(&text, "}") ||
        !absl::SimpleAtoi(text, &writer) || writer >= ReferenceRun::kWriters) {
      return Wrong(absl::StrCat(what, " has no writer: ", manifest.worker()));
    }
    if (manifest.tables(kWriter).digest() != reference_.WriterDigest(writer)) {
      Wrong(absl::StrCat(what, " of worker ", writer, " has rows of another attempt"));
    }
  }

  // Stops all faults: the next passes must commit, and the state must survive a restart.
  void FinishWithoutFaults() {
    fleet_.meanwhile = nullptr;
    faults_ = false;
    while (fleet_.late_num() > 0) fleet_.DeliverLate(0);
    for (size_t rank = 0; rank < fleet_.size(); ++rank) StartServer(rank);
    NewWorker();
    for (int step = 0; !trained_ && wrong_.empty(); ++step) {
      if (step > 3 + 3 * static_cast<int>(ReferenceRun::kPasses)) {
        return Wrong("the passes do not finish although all faults have stopped");
      }
      const uint64_t workers = result_.workers;
      StepOf(*worker_);
      if (result_.workers != workers) return Wrong("an undisturbed worker was refused");
      LookAtDisk();
    }
    if (!wrong_.empty()) return;
    CheckMemory("at the end");
    for (size_t rank = 0; rank < fleet_.size(); ++rank) fleet_.Kill(rank);
    for (size_t rank = 0; rank < fleet_.size(); ++rank) StartServer(rank);
    if (wrong_.empty()) CheckMemory("after a restart");
    LookAtDisk();
  }

  void CheckMemory(const std::string& when) {
    WorkerActor::Options options;
    WorkerActor reader(&fleet_, options);
    if (reader.Step() != WorkerActor::Outcome::kGoesOn || reader.client() == nullptr) {
      return Wrong(when + ": no client can connect");
    }
    const absl::Status claimed = reader.client()->ClaimTerm();
    if (!claimed.ok()) return Wrong(absl::StrCat(when, ": ", claimed.ToString()));
    const std::vector<uint64_t> digests = DigestsOf(*reader.client());
    const ReferenceRun::Digests all{digests[kRows], digests[2 + kSum]};
    if (!(all == reference_.after()[ReferenceRun::kPasses])) {
      return Wrong(when + ": the tables differ from those of a run without faults");
    }
    v1::ScrubRequest scrub;
    *scrub.mutable_identity() = reader.client()->identity();
    scrub.set_files(true);
    const absl::Status clean = reader.client()->ForEachServer([&](size_t, ControlPlane& server) {
      v1::ScrubReply reply;
      return server.Scrub(scrub, &reply);
    });
    if (!clean.ok()) Wrong(absl::StrCat(when, ": ", clean.ToString()));
  }

  const uint64_t seed_;
  const ReferenceRun& reference_;
  const bool zombies_pass_fence_;
  std::mt19937_64 random_, beside_random_;  // for the main loop, and for events during calls
  const FaultRates rates_;
  const uint32_t commit_every_;
  SimulatedFleet fleet_;
  bool faults_ = true, trained_ = false;
  std::shared_ptr<WorkerActor> worker_;
  std::map<uint64_t, uint64_t> seen_;  // manifests' hashes, by commit
  SimulationResult result_;

  absl::Mutex mutex_;  // guards the state used by steps that run during another actor's call
  std::vector<std::shared_ptr<WorkerActor>> zombies_;
  PassId acknowledged_ = 0;
  std::string wrong_;
};

}  // namespace

ReferenceRun::ReferenceRun() : after_(kPasses + 1), writers_(kWriters) {
  server::ServerOptions options;
  options.shard_num = 4;
  options.threads = 1;
  const auto node = server::ServerNode::Create(options).value();
  const auto client = ParameterClient::Connect({node->link("reference")}, ClientOptions()).value();
  CISTERN_CHECK(client->CreateTables(SimulationSchema()).ok() && client->ClaimTerm().ok());
  for (uint32_t writer = 1; writer < kWriters; ++writer) {
    CISTERN_CHECK(client->BeginPass().ok());
    std::vector<float> carried;
    CISTERN_CHECK(PushPass(*client, writer, &carried).ok());
    CISTERN_CHECK(client->CommitPass().ok());
    const std::vector<uint64_t> digests = DigestsOf(*client);
    writers_[writer] = digests[kWriter];
    if (writer <= kPasses) after_[writer] = {digests[kRows], digests[2 + kSum]};
  }
}

SimulationResult Simulate(uint64_t seed, const ReferenceRun& reference, FaultCounts* counts,
                          bool zombies_pass_fence) {
  return Simulation(seed, reference, counts, zombies_pass_fence).Run();
}

}  // namespace cistern
