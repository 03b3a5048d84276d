// Fleets without a shared folder: each server has its commits in a folder of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "test/server/commit/durable_fixture.h"
#include "test/support/memory_file_system.h"

namespace cistern::server {
namespace {

using testing::HasSubstr;

class LocalState : public DurableCommit {
 protected:
  static std::string ManifestOf(const RestartableFleet& fleet, size_t rank, uint64_t commit) {
    return absl::StrCat(StateFolderOf(fleet.data_dir(rank)), "/manifest/", NumberName(commit));
  }
  static std::vector<std::string> FilesOf(const RestartableFleet& fleet, size_t rank) {
    return LocalFileSystem().List(StateFolderOf(fleet.data_dir(rank)) + "/data").value();
  }
  static void CopyState(const std::string& from, const std::string& to) {
    std::filesystem::remove_all(StateFolderOf(to));
    std::filesystem::copy(StateFolderOf(from), StateFolderOf(to),
                          std::filesystem::copy_options::recursive);
  }
  // The error of whoever connects and writes.
  static absl::Status Refusal(RestartableFleet& fleet) {
    auto client = ParameterClient::Connect(fleet.Links(), Impatient());
    return client.ok() ? (*client)->ClaimTerm() : client.status();
  }
};

TEST_P(LocalState, EveryReportedCommitIsInEveryFolder) {
  ServerOptions options = Base();
  options.compact_min_bytes = 1;
  for (const uint32_t server_num : {1u, 2u, 4u}) {
    TempFolder folder;
    options.data_dir = folder.path();
    RestartableFleet fleet(server_num, options);
    auto client = Writer(fleet.Links());
    EXPECT_TRUE(client->local_state());
    for (uint64_t round = 1; round <= 8; ++round) {
      ASSERT_EQ(Round(*client, round), absl::OkStatus());
      ASSERT_EQ(DigestsOf(*client), Expected(round)) << round;
      const std::string manifest = ReadBytes(ManifestOf(fleet, 0, round));
      for (size_t rank = 0; rank < server_num; ++rank) {
        fleet.node(rank).AwaitCompaction();
        EXPECT_EQ(ReadBytes(ManifestOf(fleet, rank, round)), manifest);
        for (const std::string& name : FilesOf(fleet, rank)) {
          EXPECT_EQ(ParseRowFileName(name)->server, rank) << name;
        }
        const std::string state = StateFolderOf(fleet.data_dir(rank));
        EXPECT_EQ(LocalFileSystem().List(state + "/manifest")->size(),
                  std::min(round, uint64_t{3}));
        EXPECT_EQ(LocalFileSystem().List(state + "/epoch")->size(), 1u);
      }
    }
    for (size_t rank = 0; rank < server_num; ++rank) {
      // 3 commits are kept, each with a base and a few deltas.
      EXPECT_LT(FilesOf(fleet, rank).size(), 12u);
      ASSERT_EQ(fleet.Restart(rank), absl::OkStatus());
    }
    EXPECT_EQ(DigestsOf(*client), Expected(8));
  }
}

// Servers are killed, and the writer ends, before and after every call of a commit. The next writer
// finds the pass committed on all servers or on none.
TEST_P(LocalState, AnyServersAndTheWriterMayDieAtAnyCallOfACommit) {
  const std::vector<std::vector<uint64_t>> expected = {{}, Expected(1), Expected(2), Expected(3)};
  int committed = 0, dropped = 0;
  for (const char* verb : {"PreparePass", "Decide", "StoreManifest", "CommitPass"}) {
    for (const bool after : {false, true}) {
      for (const size_t caller : {0, 1, 2}) {
        for (const std::vector<size_t>& victims :
             std::vector<std::vector<size_t>>{{}, {0}, {1}, {0, 1}, {1, 2}, {0, 1, 2}}) {
          if ((absl::string_view(verb) == "Decide") != (caller == 0) &&
              absl::string_view(verb) != "PreparePass" && absl::string_view(verb) != "CommitPass") {
            continue;  // server 0 alone decides, and the others alone store
          }
          const std::string where =
              absl::StrCat(after ? "after " : "before ", verb, " of server ", caller, ", ",
                           victims.size(), " killed, the first ", victims.empty() ? 9 : victims[0]);
          MemoryFileSystem disk;
          ServerOptions options = Base();
          options.data_dir = "/cluster";
          options.files = &disk;
          RestartableFleet fleet(3, options);
          auto client = Writer(fleet.Links(), Impatient());
          ASSERT_EQ(Round(*client, 1), absl::OkStatus());
          bool cut = false;
          auto& hook = after ? fleet.address(caller).after : fleet.address(caller).before;
          hook = [&](const char* method) {
            cut |= absl::string_view(method) == verb;
            return cut ? absl::UnavailableError("cut") : absl::OkStatus();
          };
          EXPECT_FALSE(Round(*client, 2).ok()) << where;
          EXPECT_TRUE(cut) << where;
          hook = nullptr;
          client.reset();
          for (const size_t rank : victims)
            ASSERT_EQ(fleet.Restart(rank), absl::OkStatus()) << where;
          // A reader of servers that were all restarted sees one commit.
          if (victims.size() == 3) {
            auto reader = Connected(fleet.Links());
            const std::vector<uint64_t> digests = DigestsOf(*reader);
            EXPECT_TRUE(digests == expected[1] || digests == expected[2]) << where;
          }
          auto next = Writer(fleet.Links());
          const uint64_t found = next->manifest().commit();
          ASSERT_TRUE(found == 1 || found == 2) << where;
          (found == 2 ? committed : dropped) += 1;
          EXPECT_EQ(DigestsOf(*next), expected[found]) << where;
          EXPECT_TRUE(found == 2 || absl::string_view(verb) == "PreparePass" ||
                      (absl::string_view(verb) == "Decide" && !after))
              << where;
          ASSERT_EQ(Round(*next, found + 1), absl::OkStatus()) << where;
          for (const size_t rank : {0, 1, 2}) ASSERT_EQ(fleet.Restart(rank), absl::OkStatus());
          EXPECT_EQ(DigestsOf(*next), expected[found + 1]) << where;
        }
      }
    }
  }
  EXPECT_GT(committed, 20);
  EXPECT_GT(dropped, 20);
}

TEST_P(LocalState, AnEmptiedFolderIsRefusedWithTheFilesThatItLacks) {
  RestartableFleet fleet(3, Base());
  auto client = Writer(fleet.Links(), Impatient());
  for (const uint64_t round : {1, 2}) ASSERT_EQ(Round(*client, round), absl::OkStatus());
  TempFolder copy;
  CopyState(fleet.data_dir(1), copy.path());
  fleet.Kill(1);
  std::filesystem::remove_all(StateFolderOf(fleet.data_dir(1)));
  ASSERT_EQ(fleet.Start(1), absl::OkStatus());
  const absl::Status refused = Refusal(fleet);
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("server 1"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("base-1-1-1"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("cistern ckpt pull"));
  fleet.Kill(1);
  CopyState(copy.path(), fleet.data_dir(1));
  ASSERT_EQ(fleet.Start(1), absl::OkStatus());
  auto next = Writer(fleet.Links());
  EXPECT_EQ(DigestsOf(*next), Expected(2));
}

TEST_P(LocalState, AnOlderFolderIsRefused) {
  RestartableFleet fleet(3, Base());
  auto client = Writer(fleet.Links(), Impatient());
  ASSERT_EQ(Round(*client, 1), absl::OkStatus());
  TempFolder older[3], newer[3];
  for (size_t rank = 0; rank < 3; ++rank) CopyState(fleet.data_dir(rank), older[rank].path());
  for (const uint64_t round : {2, 3}) ASSERT_EQ(Round(*client, round), absl::OkStatus());
  for (size_t rank = 0; rank < 3; ++rank) CopyState(fleet.data_dir(rank), newer[rank].path());
  for (size_t rank = 0; rank < 3; ++rank) {
    fleet.Kill(rank);
    CopyState(older[rank].path(), fleet.data_dir(rank));
    ASSERT_EQ(fleet.Start(rank), absl::OkStatus());
    const absl::Status refused = Refusal(fleet);
    EXPECT_FALSE(refused.ok()) << rank;
    if (rank == 0) {
      EXPECT_THAT(std::string(refused.message()), HasSubstr("has commit 3"));
      EXPECT_THAT(std::string(refused.message()), HasSubstr("server 0 (server-0) is 1"));
      EXPECT_THAT(std::string(refused.message()), HasSubstr("adopt-manifest"));
    } else {
      EXPECT_THAT(std::string(refused.message()), HasSubstr(absl::StrCat("of server ", rank)));
      EXPECT_THAT(std::string(refused.message()), HasSubstr("delta-3-"));
    }
    fleet.Kill(rank);
    CopyState(newer[rank].path(), fleet.data_dir(rank));
    ASSERT_EQ(fleet.Start(rank), absl::OkStatus());
  }
  EXPECT_EQ(DigestsOf(*Writer(fleet.Links())), Expected(3));
}

TEST_P(LocalState, TheFolderOfAnotherServerIsRefused) {
  RestartableFleet fleet(3, Base());
  {
    auto client = Writer(fleet.Links(), Impatient());
    for (const uint64_t round : {1, 2}) ASSERT_EQ(Round(*client, round), absl::OkStatus());
  }
  TempFolder first, second;
  CopyState(fleet.data_dir(1), first.path());
  CopyState(fleet.data_dir(2), second.path());
  fleet.Kill(1);
  CopyState(second.path(), fleet.data_dir(1));
  absl::Status refused = fleet.Start(1);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("is the state of server 2, not of server 1"));
  // Its files tell it, too.
  std::filesystem::remove(StateFolderOf(fleet.data_dir(1)) + "/local-server");
  refused = fleet.Start(1);
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("this folder is that of server 2"));
  CopyState(first.path(), fleet.data_dir(1));
  ASSERT_EQ(fleet.Start(1), absl::OkStatus());
  EXPECT_EQ(DigestsOf(*Writer(fleet.Links())), Expected(2));
}

TEST_P(LocalState, TwoServersCannotUseOneFolder) {
  for (const uint32_t rank : {0u, 1u}) {
    for (const bool local : {false, true}) {
      TempFolder folder;
      ServerOptions options = Base();
      options.data_dir = folder.path();
      options.durable = true;
      options.server_num = 2;
      options.rank = rank;
      const auto first = ServerNode::Create(options);
      ASSERT_EQ(first.status(), absl::OkStatus());
      options.rank = 1 - rank;
      options.local_state = local;
      const absl::Status refused = ServerNode::Create(options).status();
      EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << rank << local;
    }
  }
}

TEST_P(LocalState, AllServersKeepTheSameKindOfState) {
  std::vector<std::unique_ptr<ServerNode>> nodes;
  std::vector<ServerLink> links;
  for (const uint32_t rank : {0u, 1u}) {
    ServerOptions options = Base();
    options.durable = true;
    options.rank = rank;
    options.server_num = 2;
    options.data_dir = absl::StrCat(folder_.path(), "/", rank);
    options.local_state = rank == 1;
    nodes.push_back(ServerNode::Create(options).value());
    links.push_back(nodes.back()->link(absl::StrCat("embedded-", rank)));
  }
  const absl::Status refused = ParameterClient::Connect(links, Impatient()).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("unlike server 0"));
}

// What a caller says of a manifest is checked before anything is written.
TEST_P(LocalState, AManifestThatServer0HasNotDecidedIsNotStored) {
  RestartableFleet fleet(2, Base());
  auto client = Writer(fleet.Links(), Impatient());
  for (const uint64_t round : {1, 2}) ASSERT_EQ(Round(*client, round), absl::OkStatus());
  const auto store = [&](size_t rank, const v1::Manifest& manifest, uint64_t self_xxh3) {
    v1::StoreManifestRequest request;
    *request.mutable_identity() = client->identity();
    *request.mutable_manifest() = manifest;
    request.set_self_xxh3(self_xxh3);
    v1::StoreManifestReply reply;
    return fleet.address(rank).StoreManifest(request, &reply);
  };
  const uint64_t hash = client->manifest_xxh3();
  const v1::Manifest good = client->manifest();
  EXPECT_EQ(store(1, good, hash), absl::OkStatus()) << "a repeated call";
  EXPECT_EQ(store(1, good, hash + 1).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(store(1, {}, 0).code(), absl::StatusCode::kInvalidArgument);
  const std::vector<std::function<void(v1::Manifest&)>> lies = {
      [](v1::Manifest& m) { m.set_commit(3); },
      [](v1::Manifest& m) { m.set_commit(1); },
      [](v1::Manifest& m) { m.set_commit(4); },
      [](v1::Manifest& m) { m.set_commit(UINT64_MAX); },
      [&](v1::Manifest& m) { m.set_commit(3), m.set_previous(hash); },
      [&](v1::Manifest& m) { m.set_commit(3), m.set_previous(hash), m.clear_files(); },
      [&](v1::Manifest& m) {
        m.set_commit(3), m.set_previous(hash), m.mutable_files(1)->set_root(7);
      },
      [](v1::Manifest& m) { m.set_cluster("other"); },
      [&](v1::Manifest& m) { m.set_commit(3), m.set_previous(hash), m.set_server_num(3); },
      [](v1::Manifest& m) { m.clear_schema(); },
      [](v1::Manifest& m) { m.mutable_files(0)->set_name("../../x"); }};
  EXPECT_EQ(store(0, good, hash).code(), absl::StatusCode::kFailedPrecondition);
  for (size_t i = 0; i < lies.size(); ++i) {
    v1::Manifest lie = good;
    lies[i](lie);
    const absl::Status refused = store(1, lie, hash);
    EXPECT_FALSE(refused.ok()) << "lie " << i;
  }
  ASSERT_EQ(fleet.Restart(1), absl::OkStatus());
  EXPECT_EQ(DigestsOf(*client), Expected(2));
  auto next = Writer(fleet.Links());
  ASSERT_EQ(Round(*next, 3), absl::OkStatus());
  EXPECT_EQ(DigestsOf(*next), Expected(3));
}

TEST_P(LocalState, AServerThatSharesItsFolderStoresNoManifest) {
  ServerOptions options = Base();
  options.local_state = false;
  RestartableFleet fleet(2, options);
  auto client = Writer(fleet.Links(), Impatient());
  ASSERT_EQ(Round(*client, 1), absl::OkStatus());
  v1::StoreManifestRequest request;
  *request.mutable_identity() = client->identity();
  *request.mutable_manifest() = client->manifest();
  request.set_self_xxh3(client->manifest_xxh3());
  v1::StoreManifestReply reply;
  EXPECT_EQ(fleet.address(1).StoreManifest(request, &reply).code(),
            absl::StatusCode::kFailedPrecondition);
}

// A writer that does not know of local states leaves no server without the manifest: it cannot
// commit there.
TEST_P(LocalState, ACommitThatWasNotStoredIsNotAdopted) {
  RestartableFleet fleet(2, Base());
  auto client = Writer(fleet.Links(), Impatient());
  ASSERT_EQ(Round(*client, 1), absl::OkStatus());
  fleet.address(1).before = [](const char* method) {
    return absl::string_view(method) == "StoreManifest" ? absl::UnavailableError("cut")
                                                        : absl::OkStatus();
  };
  EXPECT_FALSE(Round(*client, 2).ok());
  v1::CommitPassRequest request;
  *request.mutable_identity() = client->identity();
  request.set_pass(2);
  request.set_commit(2);
  v1::PassReply reply;
  EXPECT_EQ(fleet.node(1).control().CommitPass(request, &reply).code(),
            absl::StatusCode::kFailedPrecondition);
  fleet.address(1).before = nullptr;
  EXPECT_EQ(DigestsOf(*Writer(fleet.Links())), Expected(2));
}

// Server 0's folder was restored from a copy in which it has seen fewer claims than the others.
TEST_P(LocalState, AClaimMayBeAboveTheNewestThatServer0Remembers) {
  RestartableFleet fleet(2, Base());
  auto client = Writer(fleet.Links(), Impatient());
  ASSERT_EQ(Round(*client, 1), absl::OkStatus());
  TempFolder copy;
  CopyState(fleet.data_dir(0), copy.path());
  for (int i = 0; i < 5; ++i) ASSERT_EQ(client->ClaimTerm(), absl::OkStatus());
  const Term newest = client->identity().epoch();
  fleet.Kill(0);
  CopyState(copy.path(), fleet.data_dir(0));
  ASSERT_EQ(fleet.Start(0), absl::OkStatus());
  auto next = Writer(fleet.Links());
  EXPECT_EQ(next->identity().epoch(), newest + 1);
  ASSERT_EQ(Round(*next, 2), absl::OkStatus());
  EXPECT_EQ(DigestsOf(*next), Expected(2));
}

INSTANTIATE_TEST_SUITE_P(, LocalState, testing::Values(kLocalState, kLocalState | 1),
                         MemoryLimitName);

}  // namespace
}  // namespace cistern::server
