#include "app/fleet/fleet_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

namespace cistern::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ServerState Ready(const std::string& address, uint32_t rank, uint64_t rows, uint64_t digest) {
  ServerState server;
  server.address = address;
  server.hello.set_server_num(2);
  server.stats.set_rank(rank);
  server.stats.set_committed_pass(4);
  server.stats.set_resident_bytes(3 << 20);
  server.stats.set_uptime_seconds(75);
  v1::TableStats* table = server.stats.add_tables();
  table->set_name("deep");
  table->set_rows(rows);
  table->set_digest(digest);
  return server;
}

ServerState Down(const std::string& address) {
  ServerState server;
  server.address = address;
  server.reached = absl::UnavailableError("connection refused");
  return server;
}

TEST(FleetStatus, ShowsTheCommitOfADurableServer) {
  ServerState server = Ready("a:1", 0, 30, 0);
  server.hello.set_durable(true);
  server.stats.set_commit(17);
  server.stats.set_state_bytes(5 << 20);
  const FleetStatus status = StatusOf({server, Ready("b:2", 1, 12, 0)}, false);
  EXPECT_THAT(std::string(status.outcome().message()), HasSubstr("durable: yes on a:1; no on b:2"));
  EXPECT_EQ(JsonOf(status)["servers"][0]["durable"], true);
  EXPECT_EQ(JsonOf(status)["servers"][0]["commit"], 17);
  EXPECT_EQ(JsonOf(status)["servers"][0]["state_bytes"], 5 << 20);
  EXPECT_EQ(JsonOf(status)["servers"][1]["durable"], false);
  EXPECT_FALSE(JsonOf(status)["servers"][1].contains("commit"));
}

// The message for two servers after `change` is applied to the second; empty if they agree.
std::string DifferenceAfter(const std::function<void(ServerState&)>& change) {
  std::vector<ServerState> servers = {Ready("a:1", 0, 30, 0), Ready("b:2", 1, 12, 0)};
  change(servers[1]);
  const FleetStatus status = StatusOf(servers, false);
  EXPECT_EQ(JsonOf(status)["differences"].empty(), status.outcome().ok());
  if (status.outcome().ok()) return "";
  EXPECT_EQ(status.outcome().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(FixOf(status.outcome()), "");
  return std::string(status.outcome().message());
}

TEST(FleetStatus, FailsForServersOfDifferentFleets) {
  using Change = std::function<void(ServerState&)>;
  const std::vector<std::pair<std::string, Change>> cases = {
      {"cluster: '' on a:1; 'ads' on b:2", [](ServerState& s) { s.hello.set_cluster("ads"); }},
      {"servers of the fleet: 2 on a:1; 3 on b:2",
       [](ServerState& s) { s.hello.set_server_num(3); }},
      {"shards: 0 on a:1; 48 on b:2", [](ServerState& s) { s.hello.set_shard_num(48); }},
      {"rank: both a:1 and b:2 are server 0", [](ServerState& s) { s.stats.set_rank(0); }},
      {"tables: none on a:1; schema 00000000000000ff on b:2",
       [](ServerState& s) { s.hello.mutable_identity()->set_schema_hash(255); }},
      {"epoch: 0 on a:1; 7 on b:2",
       [](ServerState& s) { s.hello.mutable_identity()->set_epoch(7); }},
      {"pass: 4 on a:1; 3 on b:2", [](ServerState& s) { s.stats.set_committed_pass(3); }},
      {"pass: 4 on a:1; 9 on b:2", [](ServerState& s) { s.stats.set_committed_pass(9); }},
      {"commit: 0 on a:1; 5 on b:2", [](ServerState& s) { s.stats.set_commit(5); }}};
  for (const auto& [message, change] : cases) {
    EXPECT_EQ(DifferenceAfter(change), "the servers differ in " + message);
  }
}

// The first server has committed the pass, the last one has not.
TEST(FleetStatus, IgnoresAPassThatIsBeingCommitted) {
  EXPECT_EQ(DifferenceAfter([](ServerState& s) {
              s.stats.set_committed_pass(3);
              s.stats.set_open_pass(4);
              s.stats.set_commit(3);
            }),
            "");
}

// As after the pull of a copy, which does not know the newest claims.
TEST(FleetStatus, TermsOfServersWithStatesOfTheirOwnMayDiffer) {
  std::vector<ServerState> servers = {Ready("a:1", 0, 30, 0), Ready("b:2", 1, 12, 0)};
  servers[0].hello.mutable_identity()->set_epoch(7);
  EXPECT_THAT(StatusOf(servers, false).differences, ElementsAre("epoch: 7 on a:1; 0 on b:2"));
  servers[0].hello.set_local_state(true);
  EXPECT_EQ(StatusOf(servers, false).differences.size(), 1u) << "one server has a shared folder";
  servers[1].hello.set_local_state(true);
  EXPECT_TRUE(StatusOf(servers, false).differences.empty());
  servers[1].stats.set_commit(3);
  EXPECT_THAT(StatusOf(servers, false).differences,
              ElementsAre("commit: 0 on a:1; 3 on b:2", "epoch: 7 on a:1; 0 on b:2"));
}

TEST(FleetStatus, AddsDigestsModulo2To64) {
  const FleetStatus status = StatusOf({Ready("a:1", 0, 1, ~0ull), Ready("b:2", 1, 1, 3)}, true);
  EXPECT_EQ(JsonOf(status)["tables"][0]["digest"], "0000000000000002");
}

TEST(FleetStatus, ShowsAServerThatIsDownAndFailsAsUnreachable) {
  const FleetStatus status = StatusOf({Ready("a:1", 0, 1, 0), Down("b:2")}, false);
  EXPECT_EQ(status.outcome().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.outcome().message()),
              HasSubstr("1 of 2 servers cannot be reached"));
  EXPECT_EQ(JsonOf(status)["servers"][1]["state"], "down");
  EXPECT_EQ(JsonOf(status)["servers"][1]["error"], "connection refused");
}

}  // namespace
}  // namespace cistern::app
