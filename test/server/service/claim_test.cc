// Claims of a term by callers that lie about the number, about their identity, or about their turn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>

#include "test/support/temp_folder.h"
#include "test/worker/client/embedded_fleet.h"
#include "test/worker/client/restartable_fleet.h"

namespace cistern::server {
namespace {

using testing::HasSubstr;
using Code = absl::StatusCode;

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();

// The connection of a writer to a server in this process.
class Connection {
 public:
  Connection(ServerNode& node, const v1::Identity& writer) : control_(node.control()) {
    *request_.mutable_identity() = writer;
    EXPECT_EQ(control_.BeginHold(request_), absl::OkStatus());
  }
  ~Connection() { control_.EndHold(request_); }

 private:
  ControlPlane& control_;
  v1::HoldTermRequest request_;
};

absl::Status Claim(ControlPlane& server, uint64_t epoch, uint64_t secret = 0,
                   bool take_over = false) {
  v1::HelloReply hello;
  CISTERN_RETURN_IF_ERROR(server.Hello({}, &hello));
  v1::ClaimEpochRequest request;
  *request.mutable_identity() = hello.identity();
  request.mutable_identity()->set_epoch(epoch);
  request.mutable_identity()->set_secret(secret);
  request.set_take_over(take_over);
  v1::PassReply reply;
  return server.ClaimEpoch(request, &reply);
}

uint64_t TermOf(ControlPlane& server) {
  v1::HelloReply hello;
  EXPECT_EQ(server.Hello({}, &hello), absl::OkStatus());
  return hello.identity().epoch();
}

TEST(Claim, OnAFleetOfOneServerMustBeTheNextNumber) {
  EmbeddedFleet fleet(1);
  ControlPlane& server = fleet.node(0).control();
  for (const uint64_t epoch : {uint64_t{2}, uint64_t{1} << 32, kMost}) {
    EXPECT_EQ(Claim(server, epoch).code(), Code::kFailedPrecondition) << epoch;
  }
  EXPECT_EQ(Claim(server, 1), absl::OkStatus());
  EXPECT_EQ(Claim(server, 1).code(), Code::kFailedPrecondition);
  EXPECT_EQ(TermOf(server), 1u);
}

TEST(Claim, OnAFleetOfSeveralServersSkipsAtMostTheNumbersOfLostClaims) {
  EmbeddedFleet fleet(2);
  ControlPlane& server = fleet.node(1).control();
  EXPECT_EQ(Claim(server, kMost).code(), Code::kFailedPrecondition);
  EXPECT_EQ(Claim(server, IdentityGuard::kMaxClaimStep + 1).code(), Code::kFailedPrecondition);
  EXPECT_EQ(Claim(server, 5), absl::OkStatus());
}

class DurableClaim : public testing::Test {
 protected:
  DurableClaim() : fleet_(2, Base()) {}
  ServerOptions Base() const {
    ServerOptions options;
    options.data_dir = folder_.path();
    options.shard_num = 4;
    return options;
  }
  TempFolder folder_;
  RestartableFleet fleet_;
};

TEST_F(DurableClaim, OfTheHighestNumberDoesNotBlockTheFleet) {
  auto client = Writer(fleet_.Links());
  for (size_t rank : {0, 1}) {
    EXPECT_FALSE(Claim(fleet_.address(rank), kMost, 1, true).ok());
    EXPECT_FALSE(Claim(fleet_.address(rank), 3, 1, true).ok());
  }
  EXPECT_EQ(CommitKeys(*client, TestKeys(20)), absl::OkStatus());
  ASSERT_EQ(fleet_.Restart(0), absl::OkStatus());
  ASSERT_EQ(fleet_.Restart(1), absl::OkStatus());
  EXPECT_EQ(client->ClaimTerm(), absl::OkStatus());
}

TEST_F(DurableClaim, IsAcceptedByOtherServersOnlyIfServer0GrantedIt) {
  EXPECT_EQ(Claim(fleet_.address(1), 1, 7).code(), Code::kUnavailable);
  ASSERT_EQ(Claim(fleet_.address(0), 1, 7), absl::OkStatus());
  EXPECT_EQ(Claim(fleet_.address(1), 1, 8, true).code(), Code::kFailedPrecondition);
  EXPECT_EQ(Claim(fleet_.address(1), 1, 7), absl::OkStatus());
  EXPECT_EQ(Claim(fleet_.address(1), 1, 7), absl::OkStatus());  // the answer was lost
}

TEST_F(DurableClaim, SurvivesARestartOfAServerBetweenPasses) {
  auto client = Writer(fleet_.Links());
  ASSERT_EQ(CommitKeys(*client, TestKeys(20)), absl::OkStatus());
  ASSERT_EQ(fleet_.Restart(1), absl::OkStatus());
  ASSERT_EQ(fleet_.Restart(0), absl::OkStatus());
  EXPECT_EQ(CommitKeys(*client, TestKeys(30)), absl::OkStatus());
  EXPECT_THAT(client->TakeRestarted(),
              testing::ElementsAre("server 0 (server-0) was restarted since the last pass",
                                   "server 1 (server-1) was restarted since the last pass"));
  EXPECT_EQ(CommitKeys(*client, TestKeys(40)), absl::OkStatus());
  EXPECT_THAT(client->TakeRestarted(), testing::IsEmpty());
  // The claim file in epoch/ names the writer; only its owner may read the secret in it.
  v1::PassRequest begin;
  *begin.mutable_identity() = client->identity();
  begin.mutable_identity()->set_secret(client->identity().secret() + 1);
  begin.set_pass(client->committed_pass() + 1);
  v1::PassReply reply;
  EXPECT_EQ(fleet_.address(1).BeginPass(begin, &reply).code(), Code::kFailedPrecondition);
}

TEST_F(DurableClaim, WaitsForAWriterAtWorkUnlessItTakesOver) {
  auto first = Writer(fleet_.Links());
  std::optional<Connection> connection;
  connection.emplace(fleet_.node(0), first->identity());
  ASSERT_EQ(CommitKeys(*first, TestKeys(20)), absl::OkStatus());
  auto second = Connected(fleet_.Links());
  const absl::Status refused = second->ClaimTerm();
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("take over"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("process"));
  EXPECT_EQ(CommitKeys(*first, TestKeys(30)), absl::OkStatus());  // it was not fenced
  EXPECT_EQ(first->ClaimTerm(), absl::OkStatus());                // it is the writer already
  connection.emplace(fleet_.node(0), first->identity());

  ClientOptions options;
  options.take_over = true;
  auto heir = Connected(fleet_.Links(), options);
  EXPECT_EQ(heir->ClaimTerm(), absl::OkStatus());
  EXPECT_THAT(std::string(CommitKeys(*first, TestKeys(40)).message()), HasSubstr("fenced"));
  EXPECT_EQ(CommitKeys(*heir, TestKeys(40)), absl::OkStatus());
}

// Two programs look at the fleet, and then both claim its next term.
TEST_F(DurableClaim, ThatLosesARaceNamesTheWriterThatWonIt) {
  auto first = Connected(fleet_.Links()), second = Connected(fleet_.Links());
  std::optional<Connection> connection;
  int claims = 0;
  fleet_.address(0).before = [&](const char* method) {
    if (std::string(method) == "ClaimEpoch" && ++claims == 1) {  // that of `second`
      EXPECT_EQ(first->ClaimTerm(), absl::OkStatus());
      connection.emplace(fleet_.node(0), first->identity());
    }
    return absl::OkStatus();
  };
  const absl::Status lost = second->ClaimTerm();
  EXPECT_EQ(lost.code(), Code::kFailedPrecondition);
  EXPECT_THAT(std::string(lost.message()),
              testing::StartsWith("another writer is at work on this fleet: "));
}

// Of writers that keep no connection, the later claim wins, as if it had come a moment
// later.
TEST(Claim, ThatLosesARaceTakesTheNextTerm) {
  TempFolder folder;
  ServerOptions options;
  options.data_dir = folder.path();
  options.shard_num = 4;
  RestartableFleet fleet(2, options);
  auto first = Connected(fleet.Links()), second = Connected(fleet.Links());
  int claims = 0;
  fleet.address(0).before = [&](const char* method) {
    if (std::string(method) == "ClaimEpoch" && ++claims == 1) {
      EXPECT_EQ(first->ClaimTerm(), absl::OkStatus());
    }
    return absl::OkStatus();
  };
  EXPECT_EQ(second->ClaimTerm(), absl::OkStatus());
  EXPECT_EQ(TermOf(fleet.address(0)), 2u);
}

TEST_F(DurableClaim, WithoutTheSecretAStrangerWritesNothing) {
  auto client = Writer(fleet_.Links());
  ASSERT_EQ(CommitKeys(*client, TestKeys(20)), absl::OkStatus());
  const std::vector<uint64_t> digests = DigestsOf(*client);
  ControlPlane& server = fleet_.address(0);
  v1::Identity stranger = client->identity();
  for (const uint64_t secret : {uint64_t{0}, uint64_t{1}, kMost}) {
    stranger.set_secret(secret);
    v1::PassRequest pass;
    *pass.mutable_identity() = stranger;
    pass.set_pass(2);
    v1::PassReply reply;
    EXPECT_EQ(server.BeginPass(pass, &reply).code(), Code::kFailedPrecondition);
    EXPECT_EQ(server.AbortPass(pass, &reply).code(), Code::kFailedPrecondition);
    v1::ClearRequest clear;
    *clear.mutable_identity() = stranger;
    EXPECT_EQ(server.Clear(clear, &reply).code(), Code::kFailedPrecondition);
    v1::ShrinkRequest shrink;
    *shrink.mutable_identity() = stranger;
    v1::ShrinkReply shrunk;
    EXPECT_EQ(server.Shrink(shrink, &shrunk).code(), Code::kFailedPrecondition);
    v1::UpdateAfterSaveRequest update;
    *update.mutable_identity() = stranger;
    EXPECT_EQ(server.UpdateAfterSave(update, &reply).code(), Code::kFailedPrecondition);
    v1::LoadRequest load;
    *load.mutable_identity() = stranger;
    load.set_name("model");
    v1::LoadReply loaded;
    EXPECT_EQ(server.Load(load, &loaded).code(), Code::kFailedPrecondition);
    v1::CommitPassRequest commit;
    *commit.mutable_identity() = stranger;
    commit.set_pass(2);
    EXPECT_EQ(server.CommitPass(commit, &reply).code(), Code::kFailedPrecondition);
  }
  EXPECT_EQ(DigestsOf(*client), digests);
}

}  // namespace
}  // namespace cistern::server
