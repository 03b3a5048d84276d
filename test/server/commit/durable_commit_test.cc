// Durable commits of complete servers and a client: committed state survives, and everything else
// leaves no trace.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/server/commit/durable_fixture.h"

namespace cistern::server {
namespace {

using testing::HasSubstr;

TEST_P(DurableCommit, EveryServerRestartsWithTheNewestCommit) {
  for (uint32_t server_num : {1u, 3u}) {
    TempFolder folder;
    ServerOptions base = Base();
    base.data_dir = folder.path();
    RestartableFleet fleet(server_num, base);
    auto client = Writer(fleet.Links());
    EXPECT_TRUE(client->durable());
    for (uint64_t round = 1; round <= 5; ++round) {
      ASSERT_EQ(Round(*client, round), absl::OkStatus());
      for (size_t rank = 0; rank < server_num; ++rank) {
        ASSERT_EQ(fleet.Restart(rank), absl::OkStatus());
      }
      ASSERT_EQ(DigestsOf(*client), Expected(round)) << "round " << round;
    }
    EXPECT_EQ(client->manifest().commit(), 5u);
    auto next = Connected(fleet.Links());
    ASSERT_EQ(next->ClaimTerm(), absl::OkStatus());
    EXPECT_EQ(next->committed_pass(), 5u);
    EXPECT_EQ(next->manifest().worker(), "{\"round\": 5}");
  }
}

TEST_P(DurableCommit, TheManifestHasTheDigestsOfTheTables) {
  RestartableFleet fleet(2, Base());
  auto client = Writer(fleet.Links());
  for (uint64_t round = 1; round <= 4; ++round) {
    ASSERT_EQ(Round(*client, round), absl::OkStatus());
    std::vector<uint64_t> recorded;
    for (const auto& table : client->manifest().tables()) recorded.push_back(table.digest());
    for (const auto& table : client->manifest().dense_tables()) recorded.push_back(table.digest());
    EXPECT_EQ(recorded, DigestsOf(*client));
  }
}

TEST_P(DurableCommit, AnyNumberOfServersRecoversTheSameState) {
  if (local_state()) GTEST_SKIP() << "other servers need copies of the files (pull_state_test)";
  uint64_t round = 0;
  for (uint32_t server_num : {2u, 3u, 1u, 5u, 2u}) {
    RestartableFleet fleet(server_num, Base());
    auto client = Writer(fleet.Links());
    EXPECT_EQ(client->committed_pass(), round);
    if (round > 0) {
      EXPECT_EQ(DigestsOf(*client), Expected(round)) << server_num << " servers";
    }
    for (int i = 0; i < 2; ++i) ASSERT_EQ(Round(*client, ++round), absl::OkStatus());
    EXPECT_EQ(DigestsOf(*client), Expected(round));
  }
}

class PreparedPass : public DurableCommit {
 protected:
  // Round 1 is committed; round 2 is prepared on every server but not decided.
  static void CommitOneAndPrepareTheNext(RestartableFleet& fleet) {
    auto client = Writer(fleet.Links(), Impatient());
    ASSERT_EQ(Round(*client, 1), absl::OkStatus());
    fleet.address(0).before = [](const char* method) {
      return absl::string_view(method) == "Decide" ? absl::UnavailableError("cut")
                                                   : absl::OkStatus();
    };
    ASSERT_EQ(Round(*client, 2).code(), absl::StatusCode::kUnavailable);
    fleet.address(0).before = nullptr;
  }
};

TEST_P(PreparedPass, LeavesNoTraceIfNotDecided) {
  RestartableFleet fleet(2, Base());
  CommitOneAndPrepareTheNext(fleet);
  for (size_t rank : {0, 1}) ASSERT_EQ(fleet.Restart(rank), absl::OkStatus());
  auto next = Writer(fleet.Links());
  EXPECT_EQ(next->committed_pass(), 1u);
  EXPECT_EQ(DigestsOf(*next), Expected(1));
  ASSERT_EQ(Round(*next, 2), absl::OkStatus());
  EXPECT_EQ(DigestsOf(*next), Expected(2));
}

TEST_P(PreparedPass, LeavesNothingForTheNextPassIfDropped) {
  RestartableFleet fleet(2, Base());
  CommitOneAndPrepareTheNext(fleet);
  // The servers keep running, and the new rows of round 2 are in their tables, unseen.
  auto next = Writer(fleet.Links());
  EXPECT_EQ(DigestsOf(*next), Expected(1));
  ASSERT_EQ(Round(*next, 3), absl::OkStatus());
  EmbeddedFleet other(1, [] {
    ServerOptions options;
    options.shard_num = 8;
    return options;
  }());
  auto plain = Writer(other.Links());
  for (const uint64_t round : {1, 3}) ASSERT_EQ(Round(*plain, round), absl::OkStatus());
  EXPECT_EQ(DigestsOf(*next), DigestsOf(*plain));
}

TEST_P(DurableCommit, ADecidedPassIsFinishedWhicheverServersHeardOfIt) {
  RestartableFleet fleet(3, Base());
  auto client = Writer(fleet.Links(), Impatient());
  ASSERT_EQ(Round(*client, 1), absl::OkStatus());
  for (size_t untold : {0, 1, 2}) {
    fleet.address(untold).before = [](const char* method) {
      return absl::string_view(method) == "CommitPass" ? absl::UnavailableError("cut")
                                                       : absl::OkStatus();
    };
  }
  ASSERT_EQ(Round(*client, 2).code(), absl::StatusCode::kUnavailable);
  for (size_t rank : {0, 1, 2}) fleet.address(rank).before = nullptr;
  ASSERT_EQ(fleet.Restart(1), absl::OkStatus());
  auto next = Writer(fleet.Links());
  EXPECT_EQ(next->committed_pass(), 2u);
  EXPECT_EQ(DigestsOf(*next), Expected(2));
}

TEST_P(DurableCommit, ALostAnswerOfAnyCallIsRequestedAgain) {
  RestartableFleet fleet(2, Base());
  auto client = Writer(fleet.Links());
  uint64_t round = 0;
  for (const char* verb : {"BeginPass", "SealPass", "PreparePass", "Decide", "CommitPass"}) {
    bool lost = false;
    fleet.address(0).after = [&lost, verb](const char* method) {
      if (lost || absl::string_view(method) != verb) return absl::OkStatus();
      lost = true;
      return absl::UnavailableError("the answer was lost");
    };
    ASSERT_EQ(Round(*client, ++round), absl::OkStatus()) << verb;
    EXPECT_TRUE(lost) << verb;
    EXPECT_EQ(DigestsOf(*client), Expected(round)) << verb;
  }
}

TEST_P(DurableCommit, ARestartBetweenPrepareAndDecideAbortsOnlyOnServer0) {
  RestartableFleet fleet(2, Base());
  auto client = Writer(fleet.Links());
  ASSERT_EQ(Round(*client, 1), absl::OkStatus());
  for (size_t victim : {0, 1}) {
    fleet.address(0).before = [&, done = false](const char* method) mutable {
      if (done || absl::string_view(method) != "Decide") return absl::OkStatus();
      done = true;
      EXPECT_EQ(fleet.Restart(victim), absl::OkStatus());
      return absl::OkStatus();
    };
    const absl::Status round = Round(*client, 2 + victim);
    fleet.address(0).before = nullptr;
    if (victim == 1) {
      ASSERT_EQ(round, absl::OkStatus());
      continue;
    }
    // Server 0 decides only what it knows to be prepared, and after the restart it knows of
    // nothing.
    ASSERT_EQ(round.code(), absl::StatusCode::kAborted) << round;
    ASSERT_EQ(client->ClaimTerm(), absl::OkStatus());
    ASSERT_EQ(Round(*client, 2), absl::OkStatus());
  }
  EXPECT_EQ(DigestsOf(*client), Expected(3));
}

TEST_P(DurableCommit, AServerThatLostItsStagingAbortsThePass) {
  RestartableFleet fleet(2, Base());
  auto client = Writer(fleet.Links());
  ASSERT_EQ(Round(*client, 1), absl::OkStatus());
  ASSERT_EQ(client->BeginPass(), absl::OkStatus());
  ASSERT_EQ(PushRound(*client, 7), absl::OkStatus());
  ASSERT_EQ(fleet.Restart(1), absl::OkStatus());
  EXPECT_EQ(client->CommitPass().code(), absl::StatusCode::kAborted);
  ASSERT_EQ(client->ClaimTerm(), absl::OkStatus());
  EXPECT_EQ(client->committed_pass(), 1u);
  ASSERT_EQ(Round(*client, 2), absl::OkStatus());
  EXPECT_EQ(DigestsOf(*client), Expected(2));
}

TEST_P(DurableCommit, ARestartBeforeTheFirstCommitAbortsToo) {
  RestartableFleet fleet(2, Base());
  auto client = Writer(fleet.Links());
  ASSERT_EQ(client->BeginPass(), absl::OkStatus());
  ASSERT_EQ(fleet.Restart(1), absl::OkStatus());
  EXPECT_EQ(PushRound(*client, 1).code(), absl::StatusCode::kAborted);
}

// Found by test/simulation/simulation_test.cc, seed 165.
TEST_P(DurableCommit, AClaimThatMissedAServerDoesNotBarTheNextWorker) {
  RestartableFleet fleet(2, Base());
  fleet.address(1).before = [](const char* method) {
    return absl::string_view(method) == "ClaimEpoch" ? absl::UnavailableError("cut")
                                                     : absl::OkStatus();
  };
  EXPECT_EQ(Connected(fleet.Links(), Impatient())->ClaimTerm().code(),
            absl::StatusCode::kUnavailable);
  fleet.address(1).before = nullptr;
  auto next = Writer(fleet.Links());
  ASSERT_EQ(Round(*next, 1), absl::OkStatus());
  EXPECT_EQ(DigestsOf(*next), Expected(1));
}

// Found by test/simulation/protocol_model_test.cc.
TEST_P(DurableCommit, ALateBeginAfterARestartDoesNotPrepareAPassThatWasLost) {
  RestartableFleet fleet(2, Base());
  auto client = Writer(fleet.Links());
  ASSERT_EQ(Round(*client, 1), absl::OkStatus());
  v1::PassRequest late;
  *late.mutable_identity() = client->identity();
  late.set_pass(2);
  fleet.address(1).before = [&, done = false](const char* method) mutable {
    if (done || absl::string_view(method) != "PreparePass") return absl::OkStatus();
    done = true;
    EXPECT_EQ(fleet.Restart(1), absl::OkStatus());
    v1::PassReply reply;
    EXPECT_EQ(fleet.node(1).control().BeginPass(late, &reply), absl::OkStatus());
    return absl::OkStatus();
  };
  EXPECT_EQ(Round(*client, 2).code(), absl::StatusCode::kAborted);
  fleet.address(1).before = nullptr;
  ASSERT_EQ(client->ClaimTerm(), absl::OkStatus());
  EXPECT_EQ(client->committed_pass(), 1u);
  ASSERT_EQ(Round(*client, 2), absl::OkStatus());
  EXPECT_EQ(DigestsOf(*client), Expected(2));
}

TEST_P(DurableCommit, ADurableCommitIncludesEarlierPassesCommittedInMemory) {
  RestartableFleet fleet(2, Base());
  auto client = Writer(fleet.Links());
  for (uint64_t round = 1; round <= 9; ++round) {
    ASSERT_EQ(Round(*client, round, /*durable=*/round % 3 == 0), absl::OkStatus());
    EXPECT_EQ(DigestsOf(*client), Expected(round));
  }
  EXPECT_EQ(client->manifest().commit(), 3u);
  EXPECT_EQ(client->manifest().pass(), 9u);
  for (size_t rank : {0, 1}) ASSERT_EQ(fleet.Restart(rank), absl::OkStatus());
  EXPECT_EQ(DigestsOf(*client), Expected(9));
}

TEST_P(DurableCommit, AClaimRollsBackPassesCommittedInMemory) {
  RestartableFleet fleet(2, Base());
  auto client = Writer(fleet.Links());
  ASSERT_EQ(Round(*client, 1), absl::OkStatus());
  ASSERT_EQ(Round(*client, 2, false), absl::OkStatus());
  ASSERT_EQ(fleet.Restart(0), absl::OkStatus());  // it restarts with pass 1
  auto next = Writer(fleet.Links());
  EXPECT_EQ(next->committed_pass(), 1u);
  EXPECT_EQ(DigestsOf(*next), Expected(1));
  ASSERT_EQ(Round(*next, 2), absl::OkStatus());
  EXPECT_EQ(DigestsOf(*next), Expected(2));
}

TEST_P(DurableCommit, AnOldWriterCannotDecide) {
  RestartableFleet fleet(2, Base());
  auto zombie = Writer(fleet.Links());
  ASSERT_EQ(Round(*zombie, 1), absl::OkStatus());
  std::unique_ptr<ParameterClient> heir;
  fleet.address(0).before = [&](const char* method) {
    if (heir != nullptr || absl::string_view(method) != "Decide") return absl::OkStatus();
    heir = Connected(fleet.Links());
    EXPECT_EQ(heir->ClaimTerm(), absl::OkStatus());
    EXPECT_EQ(Round(*heir, 3), absl::OkStatus());
    return absl::OkStatus();
  };
  const absl::Status refused = Round(*zombie, 2);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("fenced"));
  EXPECT_EQ(heir->manifest().commit(), 2u);
  EXPECT_EQ(heir->manifest().worker(), "{\"round\": 3}");
}

TEST_P(DurableCommit, FilesAreMergedIntoBasesAndOldOnesAreRemoved) {
  RestartableFleet fleet(2, [&] {
    ServerOptions options = Base();
    options.compact_min_bytes = 1;
    return options;
  }());
  auto client = Writer(fleet.Links());
  for (uint64_t round = 1; round <= 12; ++round) {
    ASSERT_EQ(Round(*client, round), absl::OkStatus());
    for (size_t rank : {0, 1}) fleet.node(rank).AwaitCompaction();
  }
  const std::vector<uint64_t> expected = Expected(12);
  EXPECT_EQ(DigestsOf(*client), expected);
  for (size_t rank : {0, 1}) ASSERT_EQ(fleet.Restart(rank), absl::OkStatus());
  EXPECT_EQ(DigestsOf(*client), expected);
  EXPECT_LT(client->manifest().files_size(), 8);
  LocalFileSystem files;
  // 3 commits are kept, each with a base and a few deltas of two servers.
  EXPECT_LT(files.List(StateFolderOf(folder_.path()) + "/data").value().size(), 24u);
  EXPECT_EQ(files.List(StateFolderOf(folder_.path()) + "/manifest").value().size(), 3u);
}

TEST_P(DurableCommit, ARestartedServerMergesAgainUnderAnotherName) {
  ServerOptions options = Base();
  options.compact_min_bytes = 1;
  RestartableFleet fleet(1, options);
  auto client = Writer(fleet.Links());
  for (uint64_t round : {1, 2}) {
    ASSERT_EQ(Round(*client, round), absl::OkStatus());
    fleet.node(0).AwaitCompaction();
  }
  for (int restart = 0; restart < 2; ++restart) {
    ASSERT_EQ(fleet.Restart(0), absl::OkStatus());
    fleet.node(0).AwaitCompaction();
  }
  ASSERT_EQ(Round(*client, 3), absl::OkStatus());
  const std::string base = client->manifest().files(0).name();
  EXPECT_TRUE(client->manifest().files(0).base()) << base;
  EXPECT_EQ(base.substr(base.find('.')), ".1003");
  EXPECT_EQ(client->manifest().files_size(), 2);
  EXPECT_EQ(DigestsOf(*client), Expected(3));
}

TEST_P(DurableCommit, TwoProcessesCannotBeTheSameServer) {
  RestartableFleet fleet(1, Base());
  ServerOptions options = Base();
  options.durable = true;
  const auto second = ServerNode::Create(options);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("another process is server 0"));
}

TEST_P(DurableCommit, RefusesTheStateOfAnotherClusterOrShardNum) {
  {
    RestartableFleet fleet(1, Base());
    auto client = Writer(fleet.Links());
    ASSERT_EQ(Round(*client, 1), absl::OkStatus());
  }
  ServerOptions options = Base();
  options.durable = true;
  options.cluster = "other";
  EXPECT_THAT(std::string(ServerNode::Create(options).status().message()),
              HasSubstr("is the state of cluster 'cistern', not of 'other'"));
  options = Base();
  options.durable = true;
  options.shard_num = 16;
  EXPECT_THAT(std::string(ServerNode::Create(options).status().message()),
              HasSubstr("shard_num=8"));
}

TEST_P(DurableCommit, ServersThatDoNotShareAFolderGetAnErrorThatSaysSo) {
  if (local_state()) GTEST_SKIP() << "they need not share one";
  TempFolder other;
  std::vector<std::unique_ptr<ServerNode>> nodes;
  std::vector<ServerLink> links;
  for (uint32_t rank : {0u, 1u}) {
    ServerOptions options = Base();
    options.durable = true;
    options.rank = rank;
    options.server_num = 2;
    if (rank == 1) options.data_dir = other.path();
    nodes.push_back(ServerNode::Create(options).value());
    links.push_back(nodes.back()->link(absl::StrCat("embedded-", rank)));
  }
  auto client = Connected(links, Impatient());
  ASSERT_EQ(client->CreateTables(TestSchema()), absl::OkStatus());
  const absl::Status refused = client->ClaimTerm();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("must share one data_dir"));
}

TEST_P(DurableCommit, ScrubFindsAChangedByteOnDisk) {
  RestartableFleet fleet(1, Base());
  auto client = Writer(fleet.Links());
  ASSERT_EQ(Round(*client, 1), absl::OkStatus());
  v1::ScrubRequest request;
  *request.mutable_identity() = client->identity();
  request.set_files(true);
  v1::ScrubReply reply;
  EXPECT_EQ(fleet.address(0).Scrub(request, &reply), absl::OkStatus());
  EXPECT_EQ(reply.files(), 1u);
  const std::string name = client->manifest().files(0).name();
  const std::string path = StateFolderOf(folder_.path()) + "/data/" + name;
  std::string bytes = ReadBytes(path);
  bytes[bytes.size() / 2] ^= 1;
  WriteBytes(path, bytes);
  const absl::Status bad = fleet.address(0).Scrub(request, &reply);
  EXPECT_EQ(bad.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(bad.message()), HasSubstr(name));
  // A server does not start from it either.
  fleet.Kill(0);
  EXPECT_EQ(fleet.Start(0).code(), absl::StatusCode::kDataLoss);
}

CISTERN_WITH_EVERY_STATE(DurableCommit);
CISTERN_WITH_EVERY_STATE(PreparedPass);

}  // namespace
}  // namespace cistern::server
