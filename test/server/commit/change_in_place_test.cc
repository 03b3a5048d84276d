// Changes in place (clear, shrink, the reset after a save) are committed on all servers or on none,
// whichever server restarts at whatever moment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/server/commit/durable_fixture.h"

namespace cistern::server {
namespace {

class ChangeInPlace : public DurableCommit {
 protected:
  static absl::Status EndDay(ParameterClient& client) {
    return client.ChangeInPlace([&](size_t, ControlPlane& server, uint64_t changes) {
      v1::UpdateAfterSaveRequest request;
      *request.mutable_identity() = client.identity();
      request.set_mode(v1::BATCH);
      request.set_changes(changes);
      v1::PassReply reply;
      return server.UpdateAfterSave(request, &reply);
    });
  }
  // The digests after two rounds and `change`, on one server without files.
  static std::vector<uint64_t> ExpectedAfter(absl::Status (*change)(ParameterClient&)) {
    ServerOptions options;
    options.shard_num = 8;
    EmbeddedFleet fleet(1, options);
    auto client = Writer(fleet.Links());
    for (uint64_t round : {1, 2}) EXPECT_EQ(Round(*client, round), absl::OkStatus());
    EXPECT_EQ(change(*client), absl::OkStatus());
    EXPECT_NE(DigestsOf(*client), Expected(2));
    return DigestsOf(*client);
  }
  // Restarts `victim` once, when `verb` reaches server 0: before the call, or after its answer.
  static void RestartAt(RestartableFleet& fleet, const char* verb, size_t victim, bool before) {
    auto act = [&fleet, verb, victim, done = false](const char* method) mutable {
      if (done || absl::string_view(method) != verb) return absl::OkStatus();
      done = true;
      EXPECT_EQ(fleet.Restart(victim), absl::OkStatus());
      return absl::OkStatus();
    };
    (before ? fleet.address(0).before : fleet.address(0).after) = act;
  }
};

TEST_P(ChangeInPlace, ARestartAtAnyMomentLeavesTheChangeOnEveryServer) {
  struct Case {
    absl::Status (*change)(ParameterClient&);
    const char* verb;
  };
  for (const Case& one : {Case{Shrink, "Shrink"}, Case{EndDay, "UpdateAfterSave"}}) {
    const std::vector<uint64_t> expected = ExpectedAfter(one.change);
    for (const char* verb :
         {one.verb, "BeginPass", "SealPass", "PreparePass", "Decide", "CommitPass"}) {
      for (size_t victim : {0, 1}) {
        for (bool before : {true, false}) {
          SCOPED_TRACE(
              absl::StrCat(one.verb, ": server ", victim, before ? " before " : " after ", verb));
          TempFolder folder;
          ServerOptions base = Base();
          base.data_dir = folder.path();
          RestartableFleet fleet(2, base);
          auto client = Writer(fleet.Links());
          for (uint64_t round : {1, 2}) ASSERT_EQ(Round(*client, round), absl::OkStatus());
          RestartAt(fleet, verb, victim, before);
          ASSERT_EQ(one.change(*client), absl::OkStatus());
          EXPECT_EQ(DigestsOf(*client), expected);
          for (size_t rank : {0, 1}) ASSERT_EQ(fleet.Restart(rank), absl::OkStatus());
          EXPECT_EQ(DigestsOf(*client), expected);
          EXPECT_EQ(client->manifest().worker(), "{\"round\": 2}");
        }
      }
    }
  }
}

TEST_P(ChangeInPlace, AServerThatKeepsRestartingEndsTheRetries) {
  RestartableFleet fleet(2, Base());
  auto client = Writer(fleet.Links());
  for (uint64_t round : {1, 2}) ASSERT_EQ(Round(*client, round), absl::OkStatus());
  fleet.address(0).before = [&](const char* method) {
    return absl::string_view(method) == "BeginPass" ? fleet.Restart(1) : absl::OkStatus();
  };
  const absl::Status lost = Shrink(*client);
  EXPECT_EQ(lost.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(lost.message()), testing::HasSubstr("it was restarted"));
  fleet.address(0).before = nullptr;
  ASSERT_EQ(client->ClaimTerm(), absl::OkStatus());
  EXPECT_EQ(DigestsOf(*client), Expected(2));
}

TEST_P(ChangeInPlace, IsNotAppliedOnTopOfAnotherWritersCommit) {
  RestartableFleet fleet(2, Base());
  auto client = Writer(fleet.Links());
  for (uint64_t round : {1, 2}) ASSERT_EQ(Round(*client, round), absl::OkStatus());
  fleet.address(0).before = [&, done = false](const char* method) mutable {
    if (done || absl::string_view(method) != "BeginPass") return absl::OkStatus();
    done = true;
    auto other = Writer(fleet.Links());
    EXPECT_EQ(Round(*other, 3), absl::OkStatus());
    return absl::OkStatus();
  };
  EXPECT_EQ(Shrink(*client).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(DigestsOf(*client), Expected(3));
}

TEST_P(ChangeInPlace, APassIsAbortedIfAServerLostTheClearBeforeIt) {
  // The cleared fleet is at an earlier pass than the restarted server, at the same one, and at a
  // later one.
  for (const PassId pass : {0, 2, 7}) {
    for (const char* moment : {"cleared", "open", "pushed", "sealed"}) {
      SCOPED_TRACE(absl::StrCat("pass ", pass, ", ", moment));
      TempFolder folder;
      ServerOptions base = Base();
      base.data_dir = folder.path();
      RestartableFleet fleet(2, base);
      auto client = Writer(fleet.Links());
      for (uint64_t round : {1, 2}) ASSERT_EQ(Round(*client, round), absl::OkStatus());
      const auto restart_at = [&](absl::string_view now) {
        if (now == moment) {
          ASSERT_EQ(fleet.Restart(1), absl::OkStatus());
        }
      };
      ASSERT_EQ(client->Clear(pass), absl::OkStatus());
      restart_at("cleared");
      if (absl::string_view(moment) == "sealed") RestartAt(fleet, "SealPass", 1, true);
      const absl::Status lost = [&]() -> absl::Status {
        CISTERN_RETURN_IF_ERROR(client->BeginPass());
        restart_at("open");
        CISTERN_RETURN_IF_ERROR(PushRound(*client, 9));
        restart_at("pushed");
        return client->CommitPass();
      }();
      EXPECT_EQ(lost.code(), absl::StatusCode::kAborted) << lost;
      fleet.address(0).before = nullptr;
      ASSERT_EQ(client->ClaimTerm(), absl::OkStatus());
      EXPECT_EQ(DigestsOf(*client), Expected(2));
    }
  }
}

TEST_P(ChangeInPlace, TheNextClaimRestoresTheRowsOfAnUncommittedClear) {
  RestartableFleet fleet(2, Base());
  auto client = Writer(fleet.Links(), Impatient());
  ASSERT_EQ(Round(*client, 1), absl::OkStatus());
  ASSERT_EQ(client->Clear(0), absl::OkStatus());
  EXPECT_EQ(PullKeys(*client, kDeep, TestKeys(10)).status.code(), absl::StatusCode::kUnavailable);
  ASSERT_EQ(client->ClaimTerm(), absl::OkStatus());
  EXPECT_EQ(client->committed_pass(), 1u);
  EXPECT_EQ(DigestsOf(*client), Expected(1));
  ASSERT_EQ(client->Clear(0), absl::OkStatus());
  ASSERT_EQ(client->CommitChange(), absl::OkStatus());
  for (size_t rank : {0, 1}) ASSERT_EQ(fleet.Restart(rank), absl::OkStatus());
  ASSERT_EQ(client->ClaimTerm(), absl::OkStatus());
  EXPECT_EQ(DigestsOf(*client), (std::vector<uint64_t>{0, 0, 0}));
  EXPECT_EQ(client->committed_pass(), 1u);
  EXPECT_EQ(client->manifest().commit(), 2u);
}

CISTERN_WITH_AND_WITHOUT_MEMORY(ChangeInPlace);

}  // namespace
}  // namespace cistern::server
