#include "app/state/repair_state.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "server/checkpoint/manifest.h"
#include "test/app/state/saved_states.h"

namespace cistern::app {
namespace {

using RepairStates = SavedStates;

TEST_F(RepairStates, LoseClaimsThatLockWritersOut) {
  server::MakeSmallState(Disk(), folder_ / "a", 2, 2);
  const absl::StatusOr<RepairedState> intact = RepairStateTerms(folder_ / "a");
  ASSERT_TRUE(intact.ok()) << intact.status();
  EXPECT_THAT(intact->removed, testing::IsEmpty());
  const uint64_t highest = UINT64_MAX;
  std::ofstream(folder_ / "a/state/epoch/" + server::NumberName(highest)) << "";
  const absl::StatusOr<RepairedState> repaired = RepairStateTerms(folder_ / "a/state");
  ASSERT_TRUE(repaired.ok()) << repaired.status();
  EXPECT_EQ(repaired->path, intact->path);
  EXPECT_THAT(repaired->removed, testing::ElementsAre(highest));
  EXPECT_EQ(repaired->newest, intact->newest + 1);
}

TEST_F(RepairStates, AreFound) {
  const absl::Status status = RepairStateTerms(folder_ / "nothing").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_NE(FixOf(status), "");
}

}  // namespace
}  // namespace cistern::app
