#include "app/run/launcher_rank.h"

#include <gtest/gtest.h>

#include <map>

namespace cistern::app {
namespace {

absl::StatusOr<WorkerRank> RankIn(const std::map<std::string, std::string>& environment) {
  return RankFromEnvironment([&environment](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(LauncherRank, IsASingleWorkerWithoutALauncher) {
  const auto worker = RankIn({});
  ASSERT_TRUE(worker.ok());
  EXPECT_EQ(worker->rank, 0u);
  EXPECT_EQ(worker->world_size, 1u);
}

TEST(LauncherRank, ReadsEachLauncher) {
  const std::pair<const char*, const char*> launchers[] = {
      {"RANK", "WORLD_SIZE"},
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"SLURM_PROCID", "SLURM_NTASKS"},
      {"PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"},
      {"JOB_COMPLETION_INDEX", "JOB_COMPLETIONS"}};
  for (const auto& [rank, world_size] : launchers) {
    const auto worker = RankIn({{rank, "3"}, {world_size, "8"}});
    ASSERT_TRUE(worker.ok()) << rank;
    EXPECT_EQ(worker->rank, 3u) << rank;
    EXPECT_EQ(worker->world_size, 8u) << rank;
    EXPECT_EQ(worker->source, rank);
  }
}

TEST(LauncherRank, WritesTheAddressOfWorkerZero) {
  const auto peers = [](const char* host) {
    const auto worker = RankIn({{"MASTER_ADDR", host}, {"MASTER_PORT", "7790"}});
    return worker.ok() ? worker->peers : "";
  };
  EXPECT_EQ(peers("10.0.0.1"), "10.0.0.1:7790");
  EXPECT_EQ(peers("fd00::1"), "[fd00::1]:7790");
  EXPECT_EQ(peers("[fd00::1]"), "[fd00::1]:7790");
}

TEST(LauncherRank, ChoosesTheGpu) {
  EXPECT_EQ(*GpuOf(0, 4), 0);
  EXPECT_EQ(*GpuOf(3, 4), 3);
  EXPECT_EQ(*GpuOf(3, 1), 0);  // the only visible GPU
  const absl::Status many = GpuOf(4, 4).status();
  EXPECT_EQ(many.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(many.message().find("the driver shows 4 GPUs"), absl::string_view::npos) << many;
}

TEST(LauncherRank, NeedsBothVariablesOfAPair) {
  const auto worker = RankIn({{"SLURM_PROCID", "3"}});
  ASSERT_TRUE(worker.ok());
  EXPECT_EQ(worker->source, "none");
}

TEST(LauncherRank, RefusesInvalidValues) {
  EXPECT_EQ(RankIn({{"RANK", "one"}, {"WORLD_SIZE", "2"}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RankIn({{"RANK", "2"}, {"WORLD_SIZE", "2"}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RankIn({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace cistern::app
