// Tests of the commands that inspect commits and saved models on disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/command/scrub_command.h"
#include "cli/terminal/exit_code.h"
#include "test/app/state/saved_states.h"

namespace cistern::cli {
namespace {

using testing::HasSubstr;

using CkptTest = app::SavedStates;

TEST_F(CkptTest, ScrubReportsEveryServer) {
  RestartableFleet fleet = Fleet(2);
  auto client = Writer(fleet.Links());
  ASSERT_EQ(server::CommitRound(*client, 1), absl::OkStatus());
  const auto scrub = [&](bool files) {
    return ScrubReport(*app::ScrubServers(*client, files, {}));
  };
  const Report good = scrub(true);
  EXPECT_EQ(good.outcome, absl::OkStatus());
  EXPECT_EQ(good.json["servers"][1]["files"], 1);
  FlipAByte(folder_ / "state/data/base-1-1-1");
  EXPECT_EQ(scrub(false).outcome, absl::OkStatus());
  const Report bad = scrub(true);
  EXPECT_EQ(ExitCodeOf(bad.outcome), ExitCode::kBadCheckpoint);
  EXPECT_EQ(bad.json["servers"][0]["good"], true);
  EXPECT_EQ(bad.json["servers"][1]["good"], false);
  EXPECT_THAT(std::string(bad.outcome.message()), HasSubstr("base-1-1-1"));
}

}  // namespace
}  // namespace cistern::cli
