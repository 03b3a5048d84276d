// kill -9 at random moments of commits, merges and saves, with real server processes on a real
// disk: nothing acknowledged is lost, and no partially written file is accepted.
//
// CISTERN_KILLS: number of kills (default 60; long runs use 1000). CISTERN_SEED: seed of the
// moments.
#include <gtest/gtest.h>

#include <iostream>
#include <random>
#include <thread>

#include "common/base/hash.h"
#include "common/saved_model/model_folder.h"
#include "test/integration/server_process.h"
#include "test/support/temp_folder.h"
#include "test/worker/client/embedded_fleet.h"
#include "test/worker/client/restartable_fleet.h"

namespace cistern {
namespace {

constexpr uint32_t kServers = 2;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

// Row counters: pass p adds one to its keys in the table kDeep, so that the rows show whether a
// pass was lost or counted twice.
class Counting {
 public:
  static std::vector<Key> KeysOf(PassId pass) {
    std::vector<Key> keys;
    for (Key key = 1; key <= 3000; ++key) {
      if (MixKey(key * 1000 + pass) % 3 == 0) keys.push_back(key);
    }
    return keys;
  }
  // The value that `key` must hold after `passes` passes.
  static float Expected(Key key, PassId passes) {
    float sum = 0;
    for (PassId pass = 1; pass <= passes; ++pass) sum += MixKey(key * 1000 + pass) % 3 == 0;
    return sum;
  }
  // Runs the next pass of the fleet.
  static absl::Status Pass(ParameterClient& client) {
    const PassId pass = client.committed_pass() + 1;
    const std::vector<Key> keys = KeysOf(pass);
    const uint32_t stride = client.layout(kDeep).full_floats();
    std::vector<float> values(keys.size() * stride);
    std::vector<uint8_t> has_embedx(keys.size());
    CISTERN_RETURN_IF_ERROR(client.Pull(kDeep, keys, true, values.data(), has_embedx.data()));
    for (size_t i = 0; i < keys.size(); ++i) {
      for (uint32_t cell = 0; cell < stride; ++cell) values[i * stride + cell] += 1.0f;
      has_embedx[i] = 1;
    }
    CISTERN_RETURN_IF_ERROR(client.BeginPass());
    CISTERN_RETURN_IF_ERROR(client.Push(kDeep, keys, values.data(), has_embedx.data()));
    const std::vector<float> dense(3000, static_cast<float>(pass));
    CISTERN_RETURN_IF_ERROR(client.PushDense(kMlp, dense.data()));
    return client.CommitPass();
  }
  static void Check(ParameterClient& client) {
    std::vector<Key> keys;
    for (Key key = 1; key <= 3000; ++key) keys.push_back(key);
    const Pulled rows = PullKeys(client, kDeep, keys, /*absent_is_zero=*/true);
    ASSERT_EQ(rows.status, absl::OkStatus());
    const uint32_t stride = client.layout(kDeep).full_floats();
    for (size_t i = 0; i < keys.size(); ++i) {
      ASSERT_EQ(rows.values[i * stride], Expected(keys[i], client.committed_pass()))
          << "key " << keys[i] << " at pass " << client.committed_pass();
    }
  }
};

// A durable fleet of processes that keep their ports when they restart. Server 1 has rows beyond
// its memory.
class CrashFleet {
 public:
  explicit CrashFleet(const std::string& data_dir)
      : flags_(
            {"--data_dir=" + data_dir, "--merge_min_kb=0", "--shard_num=4", "--log_level=warning"}),
        fleet_(kServers, {}, flags_) {}

  void KillAndRestart(uint32_t rank) {
    const int port = fleet_.servers[rank]->port();
    fleet_.servers[rank]->Kill();
    std::vector<std::string> flags = flags_;
    if (rank == 1) flags.push_back("--memory_limit_mb=0.03");
    fleet_.servers[rank] = std::make_unique<ServerProcess>(rank, kServers, port, flags);
    ASSERT_NE(fleet_.servers[rank]->ready_line(), "") << fleet_.servers[rank]->process().LogEnd();
  }
  std::unique_ptr<ParameterClient> Join() {
    ClientOptions options;
    options.retry_limit = absl::Seconds(20);
    return Writer(fleet_.fleet->links(), options);
  }

 private:
  const std::vector<std::string> flags_;
  ProcessFleet fleet_;
};

// A client thread that commits passes, and sometimes saves, until it is stopped. It returns to the
// last commit after a server is lost.
class Life {
 public:
  explicit Life(CrashFleet& fleet) : client_(fleet.Join()), thread_([this] { Run(); }) {}

  void Stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }
  ParameterClient& client() { return *client_; }
  PassId acknowledged() const { return acknowledged_; }
  uint64_t aborted() const { return aborted_; }
  // Names and passes of the acknowledged saves.
  const std::vector<std::pair<std::string, PassId>>& saved() const { return saved_; }
  const std::vector<std::string>& tried() const { return tried_; }

 private:
  void Run() {
    while (!stopping_) {
      const absl::Status committed = Counting::Pass(*client_);
      if (!committed.ok()) {
        ++aborted_;
        EXPECT_TRUE(IsLoss(committed)) << committed;
        while (!GoBack().ok() && !stopping_) continue;
        EXPECT_GE(client_->committed_pass(), acknowledged_);
        continue;
      }
      acknowledged_ = client_->committed_pass();
      if (acknowledged_ % 4 == 0) Save();
    }
    EXPECT_EQ(GoBack(), absl::OkStatus());
  }
  // Returns to the last commit, or creates the tables again if there is none. Claims a new term
  // first, because an earlier claim that was interrupted has fenced this client.
  absl::Status GoBack() {
    CISTERN_RETURN_IF_ERROR(client_->ClaimTerm());
    return client_->CreateTables(TestSchema());
  }
  static bool IsLoss(const absl::Status& status) {
    return absl::IsAborted(status) || absl::IsUnavailable(status) ||
           absl::IsDeadlineExceeded(status);
  }
  void Save() {
    tried_.push_back(absl::StrCat("save-", tried_.size()));
    const absl::Status saved = client_->ForEachServer([&](size_t, ControlPlane& server) {
      v1::SaveRequest request;
      *request.mutable_identity() = client_->identity();
      request.set_name(tried_.back());
      v1::SaveReply reply;
      return server.Save(request, &reply);
    });
    if (saved.ok()) saved_.emplace_back(tried_.back(), acknowledged_);
  }

  const std::unique_ptr<ParameterClient> client_;
  std::atomic<bool> stopping_{false};
  std::atomic<PassId> acknowledged_{0};
  std::atomic<uint64_t> aborted_{0};
  std::vector<std::pair<std::string, PassId>> saved_;
  std::vector<std::string> tried_;
  std::thread thread_;  // last, because it uses the members above
};

TEST(Crash, NothingAcknowledgedIsLostByKillingServers) {
  const uint64_t kills = FromEnvironment("CISTERN_KILLS", 60);
  const uint64_t seed = FromEnvironment("CISTERN_SEED", 1);
  std::mt19937_64 random(seed);
  TempFolder folder;
  CrashFleet fleet(folder.path());
  uint64_t passes = 0, aborted = 0;
  Life life(fleet);
  for (uint64_t kill = 0; kill < kills && !testing::Test::HasFailure(); ++kill) {
    // Kills at once, or up to a few passes later.
    absl::SleepFor(absl::Milliseconds(random() % 2 == 0 ? random() % 30 : random() % 500));
    fleet.KillAndRestart(static_cast<uint32_t>(random() % kServers));
  }
  life.Stop();
  ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  passes = life.acknowledged();
  aborted = life.aborted();
  EXPECT_GT(passes, 0u);
  EXPECT_GE(life.client().committed_pass(), passes);
  Counting::Check(life.client());
  // Also after the loss of all servers.
  for (uint32_t rank = 0; rank < kServers; ++rank) fleet.KillAndRestart(rank);
  ASSERT_EQ(life.client().ClaimTerm(), absl::OkStatus());
  EXPECT_GE(life.client().committed_pass(), passes);
  Counting::Check(life.client());

  // Acknowledged saves are whole and of the right pass; the others are whole or refused.
  LocalFileSystem files;
  for (const std::string& name : life.tried()) {
    const auto parts = ReadParts(files, folder / name);
    EXPECT_TRUE(parts.ok() || absl::IsNotFound(parts.status()) || absl::IsDataLoss(parts.status()))
        << name << ": " << parts.status();
  }
  for (const auto& [name, pass] : life.saved()) {
    v1::LoadRequest load;
    load.set_name(name);
    v1::LoadReply reply;
    ASSERT_EQ(life.client().Clear(0), absl::OkStatus());
    ASSERT_EQ(life.client().Load(load, &reply), absl::OkStatus()) << name;
    EXPECT_EQ(life.client().committed_pass(), pass);
    Counting::Check(life.client());
  }
  std::cout << kills << " kills (seed " << seed << "), " << passes << " passes committed, "
            << aborted << " repeated, " << life.saved().size() << " of " << life.tried().size()
            << " saves whole\n";
}

}  // namespace
}  // namespace cistern
