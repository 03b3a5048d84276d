#include "server/service/control_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "common/value/accessor/ctr_accessor.h"
#include "test/worker/client/embedded_fleet.h"

namespace cistern::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

v1::StatsReply StatsOf(ParameterClient& client, bool digest) {
  v1::StatsRequest request;
  *request.mutable_identity() = client.identity();
  request.set_digest(digest);
  v1::StatsReply reply;
  EXPECT_EQ(client.servers()[0].control->Stats(request, &reply), absl::OkStatus());
  return reply;
}

TEST(Stats, CountsRowsAndCalls) {
  EmbeddedFleet fleet(1);
  auto client = Writer(fleet.Links());
  const std::vector<Key> keys = TestKeys(1000);
  ASSERT_EQ(CommitKeys(*client, keys), absl::OkStatus());
  ASSERT_TRUE(PullKeys(*client, kDeep, keys).status.ok());
  ASSERT_EQ(client->BeginPass(), absl::OkStatus());
  const v1::StatsReply stats = StatsOf(*client, false);
  EXPECT_EQ(stats.committed_pass(), 1u);
  EXPECT_EQ(stats.open_pass(), 2u);
  EXPECT_EQ(stats.pushed_keys(), 1000u);
  EXPECT_EQ(stats.pulled_keys(), 1000u);
  EXPECT_GT(stats.resident_bytes(), 1u << 20);
  ASSERT_EQ(stats.tables_size(), 2);
  EXPECT_EQ(stats.tables(kDeep).name(), "deep");
  EXPECT_EQ(stats.tables(kDeep).rows(), 1000u);
  EXPECT_EQ(stats.tables(kDeep).value_bytes(), 1000u * 18 * 4);
  EXPECT_EQ(stats.dense_tables(kMlp).rows(), 0u);  // never written
}

TEST(Stats, DigestsAddUpToTheSameOverAnyNumberOfServers) {
  uint64_t first = 0;
  for (uint32_t server_num : {1u, 2u, 3u}) {
    EmbeddedFleet fleet(server_num);
    auto client = Writer(fleet.Links());
    ASSERT_EQ(CommitKeys(*client, TestKeys(1000)), absl::OkStatus());
    uint64_t digest = 0;
    for (const ServerLink& server : client->servers()) {
      v1::StatsRequest request;
      *request.mutable_identity() = client->identity();
      request.set_digest(true);
      v1::StatsReply reply;
      ASSERT_EQ(server.control->Stats(request, &reply), absl::OkStatus());
      digest += reply.tables(kDeep).digest();
    }
    if (server_num == 1) first = digest;
    EXPECT_EQ(digest, first);
  }
  EXPECT_NE(first, 0u);
}

TEST(GetRow, ShowsFieldsAndText) {
  EmbeddedFleet fleet(1);
  auto client = Writer(fleet.Links());
  std::vector<float> value(client->layout(kCtr).full_floats(), 0.0f);
  StoreDouble(&value[CtrCells::kShow], 3);
  const Key key = 130;
  const uint8_t has_embedx = 0;
  ASSERT_EQ(client->BeginPass(), absl::OkStatus());
  ASSERT_EQ(client->Push(kCtr, {key}, value.data(), &has_embedx), absl::OkStatus());
  ASSERT_EQ(client->CommitPass(), absl::OkStatus());
  v1::GetRowRequest request;
  *request.mutable_identity() = client->identity();
  request.set_key(key);
  v1::GetRowReply row;
  ASSERT_EQ(client->servers()[0].control->GetRow(request, &row), absl::OkStatus());
  EXPECT_TRUE(row.found());
  EXPECT_EQ(row.shard(), 2u);
  EXPECT_THAT(row.field_names(), ElementsAre("unseen_days", "delta_score", "show", "click",
                                             "embed_w", "embed_state", "slot", "uid"));
  EXPECT_EQ(row.fields(2), 3);
  EXPECT_EQ(row.text(), "130 0 0 0 3 0 0 0 0\n");

  request.set_key(131);
  row.Clear();
  ASSERT_EQ(client->servers()[0].control->GetRow(request, &row), absl::OkStatus());
  EXPECT_FALSE(row.found());
}

TEST(Shrink, ADryRunCountsDuringAnOpenPass) {
  EmbeddedFleet fleet(1);
  auto client = Writer(fleet.Links());
  ASSERT_EQ(CommitKeys(*client, TestKeys(100)), absl::OkStatus());
  ASSERT_EQ(client->BeginPass(), absl::OkStatus());
  v1::ShrinkRequest shrink;
  *shrink.mutable_identity() = client->identity();
  v1::ShrinkReply reply;
  EXPECT_EQ(client->servers()[0].control->Shrink(shrink, &reply).code(),
            absl::StatusCode::kFailedPrecondition);
  shrink.set_dry_run(true);
  ASSERT_EQ(client->servers()[0].control->Shrink(shrink, &reply), absl::OkStatus());
  EXPECT_EQ(reply.rows(), 100u);
}

TEST(Hello, IsToldToRetryWhileTablesAreReplaced) {
  LocalFileSystem files;
  NodeState state(ShardMap::Create(8, 1).value(), 0, "cistern", 1, 1 << 20);
  ControlService control(&state, &files, "");
  v1::HelloReply reply;
  EXPECT_EQ(control.Hello({}, &reply), absl::OkStatus());
  {
    absl::MutexLock lock(&state.tables_mutex);
    state.replacing = true;
  }
  EXPECT_EQ(control.Hello({}, &reply).code(), absl::StatusCode::kUnavailable);
}

// An older writer keeps pushing as fast as it can while a newer one claims and commits. All its
// calls after the claim are refused, and none of its values is in the newer writer's pass.
TEST(ClaimEpoch, LeavesNothingOfAnOlderWriterBehind) {
  const std::vector<Key> zombie_keys = TestKeys(50, 2'000'000'000), keys = TestKeys(50);
  for (int round = 0; round < 20; ++round) {
    EmbeddedFleet fleet(1);
    auto zombie = Writer(fleet.Links());
    ASSERT_EQ(zombie->BeginPass(), absl::OkStatus());
    std::thread old([&] {
      const std::vector<float> values = ValuesOf(zombie_keys, 18);
      const std::vector<uint8_t> has_embedx(zombie_keys.size(), 1);
      absl::Status status;
      while (status.ok()) {
        status = zombie->Push(kDeep, zombie_keys, values.data(), has_embedx.data());
      }
      EXPECT_THAT(std::string(status.message()), HasSubstr("fenced"));
      EXPECT_THAT(std::string(zombie->CommitPass().message()), HasSubstr("fenced"));
    });
    auto writer = Writer(fleet.Links());
    EXPECT_EQ(CommitKeys(*writer, keys), absl::OkStatus());
    old.join();
    EXPECT_EQ(StatsOf(*writer, false).tables(kDeep).rows(), keys.size());
  }
}

// Readers read while passes commit: every read returns whole rows, and none fails.
TEST(Pull, RunsDuringCommits) {
  EmbeddedFleet fleet(2);
  auto client = Writer(fleet.Links());
  const std::vector<Key> keys = TestKeys(500);
  ASSERT_EQ(CommitKeys(*client, keys), absl::OkStatus());
  const std::vector<float> expected = ValuesOf(keys, 18);
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done) {
      const Pulled pulled = PullKeys(*client, kDeep, keys);
      EXPECT_TRUE(pulled.status.ok()) << pulled.status;
      EXPECT_EQ(pulled.values, expected);
    }
  });
  for (int pass = 0; pass < 20; ++pass) EXPECT_EQ(CommitKeys(*client, keys), absl::OkStatus());
  done = true;
  reader.join();
}

}  // namespace
}  // namespace cistern::server
