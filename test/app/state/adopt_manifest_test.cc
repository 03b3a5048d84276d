#include "app/state/adopt_manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "test/app/state/copied_states.h"

namespace cistern::app {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class AdoptManifestTest : public CopiedStates {
 protected:
  // Two servers, of which server 0 has lost the manifests of the last of three commits, as a disk
  // has that was restored from a copy.
  AdoptManifestTest() : fleet_(LocalFleet(2)), client_(Writer(fleet_.Links())) {
    for (uint64_t commit = 1; commit <= 3; ++commit) {
      EXPECT_EQ(server::CommitRound(*client_, commit), absl::OkStatus());
    }
    digests_ = DigestsOf(*client_);
    for (size_t rank = 0; rank < 2; ++rank) fleet_.Kill(rank);
    EXPECT_TRUE(fs::remove(State(0) + "/manifest/00000000000000000003"));
  }
  std::string State(size_t rank) const { return server::StateFolderOf(fleet_.data_dir(rank)); }
  absl::StatusOr<PulledState> Adopt(const std::string& from) const {
    return AdoptManifest({.from = from, .to = fleet_.data_dir(0), .server = 0});
  }

  RestartableFleet fleet_;
  std::unique_ptr<ParameterClient> client_;
  std::vector<uint64_t> digests_;
};

TEST_F(AdoptManifestTest, GivesAServerTheCommitThatAnotherOneHas) {
  for (int i = 0; i < 2; ++i) {
    const auto adopted = Adopt(fleet_.data_dir(1));
    ASSERT_TRUE(adopted.ok()) << adopted.status();
    EXPECT_EQ(adopted->commit, 3u);
  }
  for (size_t rank = 0; rank < 2; ++rank) ASSERT_EQ(fleet_.Start(rank), absl::OkStatus());
  auto next = Writer(fleet_.Links());
  EXPECT_EQ(next->manifest().commit(), 3u);
  EXPECT_EQ(DigestsOf(*next), digests_);
}

TEST_F(AdoptManifestTest, AFileOfTheCommitThatIsMissingIsNamed) {
  const std::string data = State(0) + "/data";
  const std::vector<std::string> names = files_.List(data).value();
  for (const std::string& name : names) ASSERT_TRUE(fs::remove(data + "/" + name));
  const absl::Status refused = Adopt(State(1) + "/manifest/00000000000000000003").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("lacks files of server 0 of commit 3"));
  EXPECT_FALSE(fs::exists(State(0) + "/manifest/00000000000000000003"));
}

TEST_F(AdoptManifestTest, AnOlderManifestChangesNothing) {
  EXPECT_EQ(fs::exists(State(0) + "/manifest/00000000000000000002"), true);
  ASSERT_TRUE(Adopt(fleet_.data_dir(1)).ok());
  fs::remove(State(1) + "/manifest/00000000000000000003");
  EXPECT_EQ(Adopt(fleet_.data_dir(1)).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(fs::exists(State(0) + "/manifest/00000000000000000003"));
}

}  // namespace
}  // namespace cistern::app
