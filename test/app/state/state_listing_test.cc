#include "app/state/state_listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "test/app/state/saved_states.h"

namespace cistern::app {
namespace {

using testing::HasSubstr;

using StateListings = SavedStates;

TEST_F(StateListings, HoldCommitsAndSavedModels) {
  {
    RestartableFleet fleet = Fleet(2);
    auto client = Writer(fleet.Links());
    for (uint64_t round = 1; round <= 2; ++round) {
      ASSERT_EQ(server::CommitRound(*client, round), absl::OkStatus());
    }
    Save(*client, "monday");
  }
  for (const std::string& path : {folder_.path(), folder_ / "state", folder_.path() + "/"}) {
    const absl::StatusOr<StateListing> listing = ListState(path);
    ASSERT_TRUE(listing.ok()) << listing.status();
    EXPECT_EQ(listing->outcome(), absl::OkStatus());
    const nlohmann::ordered_json json = JsonOf(*listing);
    ASSERT_EQ(json["commits"].size(), 2u);
    const auto& commit = json["commits"][1];
    EXPECT_EQ(commit["commit"], 2);
    EXPECT_EQ(commit["pass"], 2);
    EXPECT_EQ(commit["server_num"], 2);
    EXPECT_EQ(commit["whole"], true);
    EXPECT_EQ(commit["tables"][1]["name"], "deep");
    EXPECT_EQ(commit["tables"][1]["rows"],
              200);  // 1 to 299 in steps of 2, and from 2 in steps of 3
    ASSERT_EQ(json["models"].size(), 1u);
    EXPECT_EQ(json["models"][0]["name"], "monday");
    EXPECT_EQ(json["models"][0]["whole"], true);
  }
}

TEST_F(StateListings, ReportCommitsThatAreNotWhole) {
  server::MakeSmallState(Disk(), folder_.path(), 2, 1);
  std::filesystem::resize_file(AFile(), 100);
  const absl::StatusOr<StateListing> listing = ListState(folder_.path());
  ASSERT_TRUE(listing.ok()) << listing.status();
  EXPECT_EQ(KindOf(listing->outcome()), ErrorKind::kBadCheckpoint);
  EXPECT_EQ(JsonOf(*listing)["commits"][0]["whole"], false);
  EXPECT_THAT(std::string(listing->outcome().message()), HasSubstr("100 bytes"));
}

TEST_F(StateListings, RefuseAFolderWithoutCommitsAndModels) {
  EXPECT_TRUE(absl::IsInvalidArgument(ListState(folder_.path()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ListState(folder_ / "none").status()));
}

}  // namespace
}  // namespace cistern::app
