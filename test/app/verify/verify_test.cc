// Every byte of commits and saved models, checked.
#include "app/verify/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "test/app/state/saved_states.h"

namespace cistern::app {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class VerifySaved : public SavedStates {
 protected:
  static VerifyResult ResultOf(const std::string& path) {
    absl::StatusOr<VerifyResult> result = Verify({path}, {});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *std::move(result) : VerifyResult();
  }
  static void ExpectBad(const VerifyResult& result, const std::string& words) {
    EXPECT_EQ(result.outcome().code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(KindOf(result.outcome()), ErrorKind::kBadCheckpoint);
    EXPECT_THAT(std::string(result.outcome().message()), HasSubstr(words));
    EXPECT_THAT(FixOf(result.outcome()), HasSubstr("do not load"));
  }
};

TEST_F(VerifySaved, ReadsEveryCommit) {
  server::MakeSmallState(Disk(), folder_.path(), 2, 5);
  VerifyOptions options{folder_.path()};
  options.all = true;
  const absl::StatusOr<VerifyResult> result = Verify(options, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outcome(), absl::OkStatus());
  EXPECT_EQ(result->commits.size(), 3u);
  EXPECT_EQ(JsonOf(*result)["commits"][2]["commit"], 5);
  options.commit = 1;
  EXPECT_EQ(OptionsOf(Verify(options, {}).status()), (std::vector<std::string>{"all", "commit"}));
  options.all = false;  // commit 4 has removed commit 1
  const absl::Status none = Verify(options, {}).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FixOf(none), "existing commits: 3, 4, 5");
}

TEST_F(VerifySaved, NamesTheFileWithAFlippedByte) {
  server::MakeSmallState(Disk(), folder_.path(), 2, 2);
  const std::string path = AFile();
  FlipAByte(path);
  const VerifyResult result = ResultOf(folder_ / "state");
  ExpectBad(result, std::filesystem::path(path).filename().string());
  ExpectBad(result, "block");
  EXPECT_FALSE(result.commits[0].good);
}

TEST_F(VerifySaved, FindsTablesThatDoNotMatchTheManifest) {
  server::MakeSmallState(Disk(), folder_.path(), 2, 2);
  // A valid manifest with a wrong digest.
  const auto state = server::StateFolder::OpenToRead(Disk(), folder_ / "state").value();
  v1::Manifest manifest = state->ReadManifest(2)->manifest;
  manifest.mutable_tables(1)->set_digest(7);
  manifest.mutable_dense_tables(0)->set_rows(999);
  ASSERT_EQ(Disk().Remove(absl::StrCat(folder_ / "state/manifest/", server::NumberName(2))),
            absl::OkStatus());
  ASSERT_TRUE(state->WriteManifest(manifest).ok());
  const VerifyResult result = ResultOf(folder_.path());
  ExpectBad(result, "(and 1 more)");
  ASSERT_EQ(result.faults.size(), 2u);
  EXPECT_THAT(std::string(result.faults[0].message()), HasSubstr("'deep'"));
  EXPECT_THAT(std::string(result.faults[1].message()), HasSubstr("'mlp'"));
}

TEST_F(VerifySaved, ReadsASavedModel) {
  RestartableFleet fleet = Fleet(2);
  auto client = Writer(fleet.Links());
  ASSERT_EQ(server::CommitRound(*client, 1), absl::OkStatus());
  Save(*client, "monday");
  const VerifyResult good = ResultOf(folder_ / "monday");
  EXPECT_EQ(good.outcome(), absl::OkStatus());
  const std::vector<uint64_t> digests = DigestsOf(*client);
  ASSERT_EQ(good.models.size(), 1u);
  ASSERT_EQ(good.models[0].tables.size(), 3u);
  for (size_t t = 0; t < 3; ++t) EXPECT_EQ(good.models[0].tables[t].digest, digests[t]);
  FlipAByte(folder_ / "monday/deep/part-001-00003");
  const VerifyResult bad = ResultOf(folder_ / "monday");
  ExpectBad(bad, "part-001-00003");
  EXPECT_EQ(bad.faults.size(), 1u);
  EXPECT_EQ(JsonOf(bad)["good"], false);
}

// A check reads the model as several servers would; none of them exists.
TEST_F(VerifySaved, AFaultOfASavedModelNamesNoServer) {
  RestartableFleet fleet = Fleet(2);
  auto client = Writer(fleet.Links());
  ASSERT_EQ(server::CommitRound(*client, 1), absl::OkStatus());
  Save(*client, "monday");
  FlipAByte(folder_ / "monday/deep/part-001-00003");
  const VerifyResult bad = ResultOf(folder_ / "monday");
  ASSERT_EQ(bad.faults.size(), 1u);
  EXPECT_THAT(std::string(bad.faults[0].message()), StartsWith(folder_ / "monday/deep"));
  EXPECT_THAT(std::string(bad.faults[0].message()), Not(HasSubstr("server")));
}

TEST_F(VerifySaved, EndsWhenItIsAsked) {
  server::MakeSmallState(Disk(), folder_.path(), 1, 1);
  const std::atomic<bool> stop{true};
  JobCalls calls;
  calls.stop = &stop;
  EXPECT_EQ(Verify({folder_.path()}, calls).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(VerifySaved, RefusesAPlaceWithoutCommitsAndModels) {
  WriteBytes(folder_ / "file", "");
  for (const std::string& path : {std::string(), folder_ / "file", folder_.path()}) {
    const absl::Status status = Verify({path}, {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << path;
    EXPECT_THAT(FixOf(status), HasSubstr("name a ")) << path;
  }
}

}  // namespace
}  // namespace cistern::app
