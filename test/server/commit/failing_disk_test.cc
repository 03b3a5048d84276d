// Every call to the disk fails once, in turn, in each part of a cluster's life. Each time the error
// is reported, committed state is intact, and the same step succeeds when repeated.
#include <gtest/gtest.h>

#include <functional>
#include <iostream>

#include "test/server/commit/durable_fixture.h"
#include "test/support/fault_file_system.h"
#include "test/support/memory_file_system.h"
#include "test/worker/client/embedded_fleet.h"
#include "test/worker/client/restartable_fleet.h"

namespace cistern::server {
namespace {

// A cluster of two servers on a disk that fails on request.
class FailingCluster {
 public:
  // memory_limit: of each server (ServerOptions), with kLocalState: that, too.
  explicit FailingCluster(uint64_t memory_limit = 0) : files_(&disk_) {
    ServerOptions options;
    options.local_state = (memory_limit & kLocalState) != 0;
    options.data_dir = "/cluster";
    options.shard_num = 4;
    options.keep_commits = 2;
    options.compact_min_bytes = 1;
    options.files = &files_;
    options.memory_limit_bytes = memory_limit & ~kLocalState;
    fleet_ = std::make_unique<RestartableFleet>(2, options);
    Join();
    EXPECT_EQ(Round(), absl::OkStatus());
    EXPECT_EQ(Round(), absl::OkStatus());
  }

  FaultFileSystem& files() { return files_; }
  void AwaitMerges() {
    for (size_t rank = 0; rank < 2; ++rank) fleet_->node(rank).AwaitCompaction();
  }
  RestartableFleet& fleet() { return *fleet_; }
  ParameterClient& client() { return *client_; }
  PassId committed() const { return client_->committed_pass(); }

  // Becomes the writer, as a worker does when it starts or returns to the last commit.
  void Join() {
    ClientOptions options;
    options.retry_limit = absl::ZeroDuration();  // this test examines the first error
    client_ = Connected(fleet_->Links(), options);
    ASSERT_NE(client_, nullptr);
    ASSERT_EQ(client_->CreateTables(TestSchema()), absl::OkStatus());
    ASSERT_EQ(client_->ClaimTerm(), absl::OkStatus());
  }
  // Writes the pass after the committed one; its values depend only on its number.
  absl::Status Round(bool durable = true) {
    CISTERN_RETURN_IF_ERROR(client_->BeginPass());
    CISTERN_RETURN_IF_ERROR(Push(client_->committed_pass() + 1));
    ParameterClient::CommitOptions commit;
    commit.durable = durable;
    const absl::Status committed = client_->CommitPass(commit);
    AwaitMerges();  // merges run on other threads; the order of disk calls must not vary
    return committed;
  }
  absl::Status Push(uint64_t pass) {
    std::vector<Key> keys;
    for (Key key = 1; key <= 40; ++key) keys.push_back(key * 31 + pass % 5);
    std::vector<float> values = ValuesOf(keys, client_->layout(kDeep).full_floats());
    for (float& value : values) value += static_cast<float>(pass);
    const std::vector<uint8_t> has_embedx(keys.size(), 1);
    CISTERN_RETURN_IF_ERROR(client_->Push(kDeep, keys, values.data(), has_embedx.data()));
    const std::vector<float> dense(3000, static_cast<float>(pass));
    return client_->PushDense(kMlp, dense.data());
  }

 private:
  MemoryFileSystem disk_;
  FaultFileSystem files_;
  std::unique_ptr<RestartableFleet> fleet_;
  std::unique_ptr<ParameterClient> client_;
};

std::vector<uint64_t> DigestsAfter(PassId passes) {
  static std::map<PassId, std::vector<uint64_t>> known;
  const auto found = known.find(passes);
  if (found != known.end()) return found->second;
  FailingCluster cluster;
  while (cluster.committed() < passes) EXPECT_EQ(cluster.Round(), absl::OkStatus());
  return known[passes] = DigestsOf(cluster.client());
}

// In how many of the four ways each call fails; scripts/torture.sh tries them all.
uint64_t Ways() {
  const char* ways = std::getenv("CISTERN_FAULTS");
  return ways == nullptr ? 1 : std::max(1ull, std::strtoull(ways, nullptr, 10));
}

// Runs `step` on fresh clusters with the first, the second ... disk call failing, until none fails.
void FailEveryCallOf(const std::string& name, uint64_t memory_limit,
                     const std::function<absl::Status(FailingCluster&)>& step) {
  for (const Fault fault :
       {Fault::kNoSpace, Fault::kInputOutput, Fault::kShortWrite, Fault::kLostReply}) {
    uint64_t places = 0;
    for (uint64_t call = 1;; ++call) {
      // Neighbouring calls fail in different ways.
      if ((call + static_cast<uint64_t>(fault)) % 4 >= Ways()) continue;
      FailingCluster cluster(memory_limit);
      const PassId before = cluster.committed();
      cluster.files().FailCall(call, fault);
      const absl::Status status = step(cluster);
      const std::vector<std::string> hits = cluster.files().hits();
      cluster.files().FailNothing();
      if (hits.empty()) {
        EXPECT_EQ(status, absl::OkStatus()) << name;
        break;
      }
      ++places;
      const std::string where = absl::StrCat(name, ", fault ", static_cast<int>(fault), " in '",
                                             hits[0], "': ", status.ToString());
      // The next writer finds a commit and can continue.
      for (size_t rank = 0; rank < 2; ++rank) {
        if (call % 2 == 1) continue;
        ASSERT_EQ(cluster.fleet().Restart(rank), absl::OkStatus()) << where;
      }
      ASSERT_NO_FATAL_FAILURE(cluster.Join()) << where;
      ASSERT_GE(cluster.committed(), before) << where;
      ASSERT_LE(cluster.committed(), before + 3) << where;
      ASSERT_EQ(DigestsOf(cluster.client()), DigestsAfter(cluster.committed())) << where;
      ASSERT_EQ(cluster.Round(), absl::OkStatus()) << where;
      ASSERT_EQ(DigestsOf(cluster.client()), DigestsAfter(cluster.committed())) << where;
    }
    EXPECT_GT(places, 3u) << name;
    std::cout << name << ", fault " << static_cast<int>(fault) << ": " << places << " places\n";
  }
}

// The parameter is the memory limit of the servers; 1: every row is in files. With kLocalState each
// server has a folder of its own.
class FailingDisk : public testing::TestWithParam<uint64_t> {};

TEST_P(FailingDisk, ACommit) {
  FailEveryCallOf("commit", GetParam(), [](FailingCluster& cluster) { return cluster.Round(); });
}

TEST_P(FailingDisk, ACommitOfSeveralPasses) {
  FailEveryCallOf("commit of three passes", GetParam(),
                  [](FailingCluster& cluster) -> absl::Status {
                    CISTERN_RETURN_IF_ERROR(cluster.Round(/*durable=*/false));
                    CISTERN_RETURN_IF_ERROR(cluster.Round(/*durable=*/false));
                    return cluster.Round();
                  });
}

TEST_P(FailingDisk, AReplacementOfEverything) {
  FailEveryCallOf("replacement", GetParam(), [](FailingCluster& cluster) -> absl::Status {
    const PassId pass = cluster.committed();
    // The same rows again, as one new base.
    CISTERN_RETURN_IF_ERROR(cluster.client().Clear(0));
    for (PassId p = 1; p <= pass; ++p) {
      CISTERN_RETURN_IF_ERROR(cluster.Round(/*durable=*/p == pass));
    }
    return absl::OkStatus();
  });
}

TEST_P(FailingDisk, AClaim) {
  FailEveryCallOf("claim", GetParam(), [](FailingCluster& cluster) {
    CISTERN_RETURN_IF_ERROR(cluster.Round(/*durable=*/false));
    return cluster.client().ClaimTerm();
  });
}

TEST_P(FailingDisk, ARestart) {
  FailEveryCallOf("restart", GetParam(), [](FailingCluster& cluster) -> absl::Status {
    for (size_t rank : {0, 1}) {
      const absl::Status started = cluster.fleet().Restart(rank);
      if (started.ok()) continue;
      EXPECT_EQ(cluster.fleet().Start(rank), absl::OkStatus());
      return started;
    }
    return absl::OkStatus();
  });
}

// Pulls change nothing, so all that must hold is that the error is reported and the next one
// succeeds.
TEST_P(FailingDisk, APullAndACommitOfWhatItRead) {
  FailEveryCallOf("pull and commit", GetParam(), [](FailingCluster& cluster) -> absl::Status {
    const uint32_t stride = cluster.client().layout(kDeep).full_floats();
    std::vector<Key> keys;
    for (Key key = 1; key <= 60; ++key) keys.push_back(key * 31 + 1);
    std::vector<float> values(keys.size() * stride);
    std::vector<uint8_t> has_embedx(keys.size());
    CISTERN_RETURN_IF_ERROR(cluster.client().Pull(kDeep, keys, /*absent_is_zero=*/true,
                                                  values.data(), has_embedx.data()));
    return cluster.Round();
  });
}

INSTANTIATE_TEST_SUITE_P(, FailingDisk, testing::Values(uint64_t{0}, kLocalState | 1),
                         [](const auto& tested) {
                           return tested.param == 0 ? "InMemory" : "InFilesOfItsOwn";
                         });

}  // namespace
}  // namespace cistern::server
