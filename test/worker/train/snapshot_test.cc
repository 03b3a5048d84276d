#include "worker/train/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/memory_file_system.h"
#include "test/worker/client/embedded_fleet.h"

namespace cistern {
namespace {

using testing::ElementsAre;

TEST(Snapshot, IsDueAfterEveryNthIteration) {
  model::SolverConfig solver;
  solver.snapshot = 20;
  EXPECT_TRUE(IsSnapshotDue(solver, 40));
  EXPECT_FALSE(IsSnapshotDue(solver, 41));
  solver.snapshot = 0;
  EXPECT_FALSE(IsSnapshotDue(solver, 40));
}

TEST(Snapshot, AWorkerThatRepeatsItsWorkKeepsTheFolder) {
  EmbeddedFleet fleet(1);
  const auto client = Writer(fleet.Links());
  ASSERT_EQ(client->BeginPass(), absl::OkStatus());
  ASSERT_EQ(client->PushDense(kMlp, std::vector<float>(3000, 1).data()), absl::OkStatus());
  ASSERT_EQ(client->CommitPass(), absl::OkStatus());
  MemoryFileSystem disk;
  disk.Put("/out/snapshot-20/mark", "of an earlier process");
  const model::ModelConfig config;  // trains by epochs: no files of HugeCTR
  ASSERT_EQ(SaveSnapshot(disk, config, *client, "/out", 20, /*again=*/true), absl::OkStatus());
  EXPECT_THAT(disk.List("/out/snapshot-20").value(), ElementsAre("mark"));
  ASSERT_EQ(SaveSnapshot(disk, config, *client, "/out", 20, /*again=*/false), absl::OkStatus());
  EXPECT_FALSE(disk.Exists("/out/snapshot-20/mark").value());
  EXPECT_THAT(disk.List("/out").value(), ElementsAre("snapshot-20"));
}

}  // namespace
}  // namespace cistern
