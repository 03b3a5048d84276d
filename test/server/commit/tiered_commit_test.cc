// Servers with a memory limit: what is in memory, what a pull reads, and what a commit remembers of
// it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>

#include "test/server/commit/durable_fixture.h"

namespace cistern::server {
namespace {

class TieredCommit : public DurableCommit {
 protected:
  static v1::StatsReply StatsOf(ParameterClient& client) {
    v1::StatsRequest request;
    *request.mutable_identity() = client.identity();
    v1::StatsReply reply;
    EXPECT_EQ(client.servers()[0].control->Stats(request, &reply), absl::OkStatus());
    return reply;
  }
  static std::vector<uint64_t> RecordedDigests(const ParameterClient& client) {
    std::vector<uint64_t> digests;
    for (const auto& table : client.manifest().tables()) digests.push_back(table.digest());
    for (const auto& table : client.manifest().dense_tables()) digests.push_back(table.digest());
    return digests;
  }
  // Pulls a part of all keys, as evaluation does while passes are trained.
  static void PullSome(ParameterClient& client, std::mt19937_64& random) {
    for (const TableId table : {kCtr, kDeep}) {
      std::vector<Key> keys;
      for (Key key = 1; key < 400; ++key) {
        if (random() % 2 == 0) keys.push_back(key * 977);
      }
      std::vector<float> values(keys.size() * client.layout(table).full_floats());
      std::vector<uint8_t> has_embedx(keys.size());
      ASSERT_EQ(client.Pull(table, keys, random() % 2 == 0, values.data(), has_embedx.data()),
                absl::OkStatus());
    }
  }
};

// A commit takes the hashes of the rows that it replaces out of a digest, and remembers those that
// pulls have read. A row that another commit has changed since has another hash.
TEST_P(TieredCommit, PullsAtAnyTimeChangeNoDigest) {
  RestartableFleet fleet(2, Base());
  auto client = Writer(fleet.Links());
  std::mt19937_64 random(GetParam());
  for (uint64_t round = 1; round <= 24; ++round) {
    if (random() % 2 == 0) PullSome(*client, random);
    ASSERT_EQ(client->BeginPass(), absl::OkStatus());
    if (random() % 2 == 0) PullSome(*client, random);
    ASSERT_EQ(PushRound(*client, round), absl::OkStatus());
    if (random() % 2 == 0) PullSome(*client, random);
    ParameterClient::CommitOptions commit;
    commit.durable = round % 5 != 3;
    ASSERT_EQ(client->CommitPass(commit), absl::OkStatus());
    if (commit.durable) {
      ASSERT_EQ(RecordedDigests(*client), DigestsOf(*client)) << round;
    }
  }
  EXPECT_EQ(DigestsOf(*client), Expected(24));
}

TEST_P(TieredCommit, PullsReadCommittedRowsWhereverTheyAre) {
  RestartableFleet fleet(1, Base());
  EmbeddedFleet in_memory(1, [] {
    ServerOptions options;
    options.shard_num = 8;
    return options;
  }());
  auto client = Writer(fleet.Links()), expected = Writer(in_memory.Links());
  for (uint64_t round = 1; round <= 6; ++round) {
    ASSERT_EQ(Round(*client, round), absl::OkStatus());
    ASSERT_EQ(Round(*expected, round), absl::OkStatus());
    if (round == 4) {
      ASSERT_EQ(fleet.Restart(0), absl::OkStatus());
    }
    for (const bool absent_is_zero : {false, true}) {
      for (const TableId table : {kCtr, kDeep}) {
        std::vector<Key> keys;
        for (Key key = 1; key < 500; ++key) keys.push_back((key * 7 % 499) * 977);
        std::vector<float> values(keys.size() * client->layout(table).full_floats()),
            others(values);
        std::vector<uint8_t> has_embedx(keys.size()), other_flags(keys.size());
        ASSERT_EQ(client->Pull(table, keys, absent_is_zero, values.data(), has_embedx.data()),
                  absl::OkStatus());
        ASSERT_EQ(expected->Pull(table, keys, absent_is_zero, others.data(), other_flags.data()),
                  absl::OkStatus());
        ASSERT_EQ(values, others);
        ASSERT_EQ(has_embedx, other_flags);
      }
    }
  }
}

TEST_P(TieredCommit, RowsStayWithinTheLimit) {
  if (GetParam() == 0) GTEST_SKIP() << "no limit";
  constexpr uint64_t kLimit = uint64_t{3} << 20;
  ServerOptions options = Base();
  if (GetParam() > 1) options.memory_limit_bytes = kLimit;
  RestartableFleet fleet(1, options);
  auto client = Writer(fleet.Links());
  const uint32_t stride = client->layout(kDeep).full_floats();
  std::mt19937_64 random(5);
  for (uint64_t round = 1; round <= 12; ++round) {
    // Half of a pass are rows of every pass, the others are new.
    std::vector<Key> keys;
    for (Key key = 1; key <= 4000; ++key) keys.push_back(key);
    for (Key key = 1; key <= 4000; ++key) keys.push_back(round * 100000 + key);
    std::vector<float> values(keys.size() * stride, static_cast<float>(round));
    const std::vector<uint8_t> has_embedx(keys.size(), 1);
    ASSERT_EQ(client->BeginPass(), absl::OkStatus());
    ASSERT_EQ(client->Push(kDeep, keys, values.data(), has_embedx.data()), absl::OkStatus());
    if (round == 1) {
      ASSERT_EQ(client->PushDense(kMlp, std::vector<float>(3000, 1).data()), absl::OkStatus());
    }
    ASSERT_EQ(client->CommitPass({}), absl::OkStatus());
    const v1::StatsReply stats = StatsOf(*client);
    EXPECT_EQ(stats.memory_limit_bytes(), options.memory_limit_bytes);
    uint64_t hot = 0, rows = 0, memory = 0;
    for (const v1::TableStats& table : stats.tables()) {
      hot += table.hot_rows();
      rows += table.rows();
      memory += table.memory_bytes();
    }
    EXPECT_EQ(rows, 4000 * (round + 1));
    if (options.memory_limit_bytes == 1) {
      EXPECT_EQ(hot, 0u);
      continue;
    }
    // An arena counts whole pages, and 16 shards of two tables have one that is not full.
    EXPECT_LE(memory, kLimit + (uint64_t{1} << 20)) << "round " << round;
    if (round > 3) {
      EXPECT_GE(hot, 4000u);  // the rows of every pass
    }
  }
  if (options.memory_limit_bytes == 1) return;
  EXPECT_LT(StatsOf(*client).tables(kDeep).hot_rows(), 40000u);
}

class CommitOfPassCaches : public TieredCommit {};  // without a limit in bytes

// HugeCTR's Cached-PS for one table, against its rules as sets of keys: rows stay until two passes
// are full, one exchange follows, and then memory is frozen. The other table stays whole.
TEST_P(CommitOfPassCaches, KeepsRowsByHugectrsRules) {
  constexpr uint64_t kRows = 2000;  // of a pass
  ServerOptions options = Base();
  options.pass_caches = {{"deep", /*num_blocks=*/2, /*target_hit_rate=*/.5, /*max_num_evict=*/1}};
  RestartableFleet fleet(1, options);
  auto client = Writer(fleet.Links());
  ASSERT_EQ(client->schema().tables(kDeep).name(), "deep");
  // The first key of each pass: passes share three quarters of their rows with the one before.
  const std::vector<Key> begins = {1, 501, 1001, 1501, 2001, 10001, 10501, 20001};
  //      found in memory, of 2000: 0  1500  1500  1500  1500      0  some      0
  // room for 4000 rows:            2000 2500 3000 3500 4000  exchange  frozen
  std::set<Key> seen;
  uint64_t frozen_hot = 0;
  for (size_t pass = 0; pass < begins.size(); ++pass) {
    std::vector<Key> keys(kRows);
    std::iota(keys.begin(), keys.end(), begins[pass]);
    seen.insert(keys.begin(), keys.end());
    ASSERT_EQ(client->BeginPass(), absl::OkStatus());
    for (const TableId table : {kCtr, kDeep}) {
      const std::vector<float> values(kRows * client->layout(table).full_floats(),
                                      static_cast<float>(pass));
      const std::vector<uint8_t> has_embedx(kRows, 1);
      ASSERT_EQ(client->Push(table, keys, values.data(), has_embedx.data()), absl::OkStatus());
    }
    if (pass == 0) {
      ASSERT_EQ(client->PushDense(kMlp, std::vector<float>(3000, 1).data()), absl::OkStatus());
    }
    ASSERT_EQ(client->CommitPass({}), absl::OkStatus());
    EXPECT_EQ(DigestsOf(*client), RecordedDigests(*client)) << pass;
    const v1::StatsReply stats = StatsOf(*client);
    const uint64_t hot = stats.tables(kDeep).hot_rows();
    EXPECT_EQ(stats.tables(kCtr).hot_rows(), seen.size()) << pass;
    EXPECT_EQ(stats.tables(kDeep).rows(), seen.size()) << pass;
    if (pass < 5) {
      EXPECT_EQ(hot, seen.size()) << pass;
    } else if (pass == 5) {
      EXPECT_LE(hot, 2 * kRows);
      EXPECT_GT(hot, 2 * kRows * 9 / 10);
      frozen_hot = hot;
    } else {
      EXPECT_EQ(hot, frozen_hot) << pass;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CommitOfPassCaches, testing::Values(uint64_t{0}));

CISTERN_WITH_AND_WITHOUT_MEMORY(TieredCommit);

}  // namespace
}  // namespace cistern::server
