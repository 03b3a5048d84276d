// Tests of the commands that inspect commits and saved models on disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/command/ckpt_commands.h"
#include "cli/command/scrub_command.h"
#include "cli/command/table_commands.h"
#include "cli/terminal/exit_code.h"
#include "test/server/checkpoint/small_state.h"
#include "test/support/temp_folder.h"

namespace cistern {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class CkptTest : public testing::Test {
 protected:
  // The path of server 0's newest row file on disk.
  std::string AFile() const {
    std::string found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "state/data")) {
      found = std::max(found, entry.path().string());
    }
    return found;
  }
  static void FlipAByte(const std::string& path) {
    std::string bytes = ReadBytes(path);
    bytes[bytes.size() / 2] ^= 0x10;
    WriteBytes(path, bytes);
  }
  // Saves the rows of all servers.
  static void Save(ParameterClient& client, const std::string& name) {
    ASSERT_EQ(client.ForEachServer([&](size_t, ControlPlane& server) {
      v1::SaveRequest request;
      *request.mutable_identity() = client.identity();
      request.set_name(name);
      v1::SaveReply reply;
      return server.Save(request, &reply);
    }),
              absl::OkStatus());
  }
  RestartableFleet Fleet(uint32_t server_num) const {
    ServerOptions options;
    options.data_dir = folder_.path();
    options.shard_num = 8;
    return RestartableFleet(server_num, options);
  }
  absl::StatusOr<Report> Verify(const std::string& path) const {
    VerifyFlags flags;
    flags.path = path;
    return RunVerify(flags);
  }
  absl::StatusOr<Report> Diff(const std::string& a, const std::string& b) const {
    CkptDiffFlags flags;
    flags.a = a;
    flags.b = b;
    return RunCkptDiff(flags);
  }

  TempFolder folder_;
};

TEST_F(CkptTest, ListsCommitsAndSavedModels) {
  {
    RestartableFleet fleet = Fleet(2);
    auto client = Writer(fleet.Links());
    for (uint64_t round = 1; round <= 2; ++round) {
      ASSERT_EQ(CommitRound(*client, round), absl::OkStatus());
    }
    Save(*client, "monday");
  }
  for (const std::string& path : {folder_.path(), folder_ / "state", folder_.path() + "/"}) {
    const absl::StatusOr<Report> report = ListCheckpoints(path);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->outcome, absl::OkStatus());
    ASSERT_EQ(report->json["commits"].size(), 2u);
    const auto& commit = report->json["commits"][1];
    EXPECT_EQ(commit["commit"], 2);
    EXPECT_EQ(commit["pass"], 2);
    EXPECT_EQ(commit["server_num"], 2);
    EXPECT_EQ(commit["whole"], true);
    EXPECT_EQ(commit["tables"][1]["name"], "deep");
    EXPECT_EQ(commit["tables"][1]["rows"],
              200);  // 1 to 299 in steps of 2, and from 2 in steps of 3
    ASSERT_EQ(report->json["models"].size(), 1u);
    EXPECT_EQ(report->json["models"][0]["name"], "monday");
    EXPECT_EQ(report->json["models"][0]["whole"], true);
  }
}

TEST_F(CkptTest, ListReportsCommitsThatAreNotWhole) {
  MakeSmallState(Disk(), folder_.path(), 2, 1);
  std::filesystem::resize_file(AFile(), 100);
  const absl::StatusOr<Report> report = ListCheckpoints(folder_.path());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(ExitCodeOf(report->outcome), ExitCode::kBadCheckpoint);
  EXPECT_EQ(report->json["commits"][0]["whole"], false);
  EXPECT_THAT(std::string(report->outcome.message()), HasSubstr("100 bytes"));
}

TEST_F(CkptTest, ListRefusesAFolderWithoutCommitsAndModels) {
  EXPECT_EQ(ExitCodeOf(ListCheckpoints(folder_.path()).status()), ExitCode::kUsage);
  EXPECT_EQ(ExitCodeOf(ListCheckpoints(folder_ / "none").status()), ExitCode::kUsage);
}

TEST_F(CkptTest, VerifyReadsEveryCommit) {
  MakeSmallState(Disk(), folder_.path(), 2, 5);
  VerifyFlags flags;
  flags.path = folder_.path();
  flags.all = true;
  const absl::StatusOr<Report> report = RunVerify(flags);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->outcome, absl::OkStatus());
  EXPECT_EQ(report->json["commits"].size(), 3u);
  EXPECT_THAT(report->json["faults"], IsEmpty());
  flags.all = false;
  flags.commit = 1;  // commit 4 has removed it
  EXPECT_EQ(ExitCodeOf(RunVerify(flags).status()), ExitCode::kUsage);
}

TEST_F(CkptTest, VerifyNamesTheFileWithAFlippedByte) {
  MakeSmallState(Disk(), folder_.path(), 2, 2);
  const std::string path = AFile();
  FlipAByte(path);
  const absl::StatusOr<Report> report = Verify(folder_ / "state");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(ExitCodeOf(report->outcome), ExitCode::kBadCheckpoint);
  EXPECT_THAT(std::string(report->outcome.message()),
              HasSubstr(std::filesystem::path(path).filename().string()));
  EXPECT_THAT(std::string(report->outcome.message()), HasSubstr("block"));
}

TEST_F(CkptTest, VerifyFindsTablesThatDoNotMatchTheManifest) {
  MakeSmallState(Disk(), folder_.path(), 2, 2);
  // A valid manifest with a wrong digest.
  const auto state = StateFolder::OpenToRead(Disk(), folder_ / "state").value();
  v1::Manifest manifest = state->ReadManifest(2)->manifest;
  manifest.mutable_tables(1)->set_digest(7);
  manifest.mutable_dense_tables(0)->set_rows(999);
  ASSERT_EQ(Disk().Remove(absl::StrCat(folder_ / "state/manifest/", NumberName(2))),
            absl::OkStatus());
  ASSERT_TRUE(state->WriteManifest(manifest).ok());
  const absl::StatusOr<Report> report = Verify(folder_.path());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(ExitCodeOf(report->outcome), ExitCode::kBadCheckpoint);
  ASSERT_EQ(report->json["faults"].size(), 2u);
  EXPECT_THAT(report->json["faults"][0].get<std::string>(), HasSubstr("'deep'"));
  EXPECT_THAT(report->json["faults"][1].get<std::string>(), HasSubstr("'mlp'"));
}

TEST_F(CkptTest, VerifyReadsASavedModel) {
  RestartableFleet fleet = Fleet(2);
  auto client = Writer(fleet.Links());
  ASSERT_EQ(CommitRound(*client, 1), absl::OkStatus());
  Save(*client, "monday");
  const absl::StatusOr<Report> good = Verify(folder_ / "monday");
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ(good->outcome, absl::OkStatus());
  const auto& tables = good->json["tables"];
  const std::vector<uint64_t> digests = DigestsOf(*client);
  ASSERT_EQ(tables.size(), 3u);
  for (size_t t = 0; t < 3; ++t) {
    EXPECT_EQ(tables[t]["digest"], absl::StrCat(absl::Hex(digests[t], absl::kZeroPad16)));
  }
  FlipAByte(folder_ / "monday/deep/part-001-00003");
  const absl::StatusOr<Report> bad = Verify(folder_ / "monday");
  ASSERT_TRUE(bad.ok()) << bad.status();
  EXPECT_EQ(ExitCodeOf(bad->outcome), ExitCode::kBadCheckpoint);
  EXPECT_THAT(std::string(bad->outcome.message()), HasSubstr("part-001-00003"));
}

TEST_F(CkptTest, DiffComparesRowsBitByBit) {
  RestartableFleet fleet = Fleet(2);
  auto client = Writer(fleet.Links());
  ASSERT_EQ(CommitKeys(*client, std::vector<Key>{1, 2, 3}), absl::OkStatus());
  Save(*client, "one");
  // Changes the value of key 2 and adds key 9.
  ASSERT_EQ(client->BeginPass(), absl::OkStatus());
  const std::vector<Key> keys = {2, 9};
  std::vector<float> values = ValuesOf(keys, client->layout(kDeep).full_floats());
  values[0] += 1;
  const std::vector<uint8_t> has_embedx = {1, 1};
  ASSERT_EQ(client->Push(kDeep, keys, values.data(), has_embedx.data()), absl::OkStatus());
  ASSERT_EQ(client->CommitPass(), absl::OkStatus());

  for (const std::string& a : {folder_.path() + "@1", folder_ / "one"}) {
    const absl::StatusOr<Report> report = Diff(a, folder_ / "state");
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(ExitCodeOf(report->outcome), ExitCode::kFailed);
    EXPECT_EQ(report->json["same"], false);
    const auto& deep = report->json["tables"][1];
    EXPECT_EQ(deep["rows_a"], 3);
    EXPECT_EQ(deep["rows_b"], 4);
    EXPECT_EQ(deep["added_keys"], std::vector<Key>{9});
    EXPECT_EQ(deep["changed_keys"], std::vector<Key>{2});
    EXPECT_EQ(deep["removed"], 0);
    EXPECT_NE(deep["digest_a"], deep["digest_b"]);
  }
  const absl::StatusOr<Report> same = Diff(folder_.path() + "@1", folder_ / "one");
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ(same->outcome, absl::OkStatus());
  EXPECT_EQ(same->json["same"], true);
}

TEST_F(CkptTest, AReshardedStateHasTheSameRows) {
  MakeSmallState(Disk(), folder_ / "a", 2, 3);
  CkptReshardFlags flags;
  flags.state = folder_ / "a";
  flags.out = folder_ / "b";
  flags.server_num = 3;
  flags.shard_num = 6;
  const absl::StatusOr<Report> report = RunCkptReshard(flags);
  ASSERT_TRUE(report.ok()) << report.status();
  const absl::StatusOr<Report> diff = Diff(folder_ / "a", folder_ / "b");
  ASSERT_TRUE(diff.ok()) << diff.status();
  EXPECT_EQ(diff->outcome, absl::OkStatus());
  flags.shard_num = 4;
  EXPECT_EQ(ExitCodeOf(RunCkptReshard(flags).status()), ExitCode::kUsage);
  flags.out = flags.state + "/.";
  EXPECT_EQ(ExitCodeOf(RunCkptReshard(flags).status()), ExitCode::kUsage);
  flags.out = folder_ / "c";
  flags.server_num = 5;
  EXPECT_EQ(ExitCodeOf(RunCkptReshard(flags).status()), ExitCode::kUsage);  // 4 shards
}

TEST_F(CkptTest, ScrubReportsEveryServer) {
  RestartableFleet fleet = Fleet(2);
  auto client = Writer(fleet.Links());
  ASSERT_EQ(CommitRound(*client, 1), absl::OkStatus());
  const absl::StatusOr<Report> good = ScrubServers(*client, true);
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ(good->outcome, absl::OkStatus());
  EXPECT_EQ(good->json["servers"][1]["files"], 1);
  FlipAByte(folder_ / "state/data/base-1-1-1");
  EXPECT_EQ(ScrubServers(*client, false)->outcome, absl::OkStatus());
  const absl::StatusOr<Report> bad = ScrubServers(*client, true);
  ASSERT_TRUE(bad.ok()) << bad.status();
  EXPECT_EQ(ExitCodeOf(bad->outcome), ExitCode::kBadCheckpoint);
  EXPECT_EQ(bad->json["servers"][0]["good"], true);
  EXPECT_EQ(bad->json["servers"][1]["good"], false);
  EXPECT_THAT(std::string(bad->outcome.message()), HasSubstr("base-1-1-1"));
}

TEST_F(CkptTest, ATableHistogramCountsEveryRow) {
  RestartableFleet fleet = Fleet(2);
  auto client = Writer(fleet.Links());
  ASSERT_EQ(CommitKeys(*client, std::vector<Key>{1, 2, 3, 700}), absl::OkStatus());
  const absl::StatusOr<Report> report = TableHistogram(*client, "deep", "w[0]");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->json["rows"], 4);
  EXPECT_EQ(report->json["min"], 1);
  EXPECT_EQ(report->json["max"], 700);
  EXPECT_EQ(report->json["buckets"].size(), 3u);  // 1, 2 and 3, 700
  EXPECT_TRUE(TableHistogram(*client, "deep", "").ok());
  EXPECT_EQ(TableHistogram(*client, "deep", "")->json["field"], "norm");
  EXPECT_EQ(TableHistogram(*client, "ctr", "")->json["field"], "show");
  EXPECT_EQ(ExitCodeOf(TableHistogram(*client, "deep", "shows").status()), ExitCode::kUsage);
  EXPECT_EQ(ExitCodeOf(TableHistogram(*client, "dep", "").status()), ExitCode::kFailed);
}

}  // namespace
}  // namespace cistern
