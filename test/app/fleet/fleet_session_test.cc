#include "app/fleet/fleet_session.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "app/model/model_source.h"

namespace cistern::app {
namespace {

TEST(FleetSession, StartsEmptyEmbeddedServers) {
  FleetOptions flags;
  flags.embedded_servers = 3;
  const auto fleet = FleetSession::Open(flags);
  ASSERT_TRUE(fleet.ok()) << fleet.status();
  EXPECT_EQ((*fleet)->client().servers().size(), 3u);
  EXPECT_EQ((*fleet)->client().committed_pass(), 0u);
  EXPECT_EQ(*RowsOn((*fleet)->client()), 0u);
}

TEST(FleetSession, RefusesInvalidNumbers) {
  for (uint64_t number : {uint64_t{0}, uint64_t{65}, ~uint64_t{0}}) {
    FleetOptions flags;
    flags.embedded_servers = number;
    EXPECT_EQ(FleetSession::Open(flags).status().code(), absl::StatusCode::kInvalidArgument);
  }
  FleetOptions flags;
  flags.connect_timeout = 0;
  EXPECT_EQ(FleetSession::Open(flags).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(FleetFix, IsOnlyAddedForUnreachableServers) {
  FleetOptions flags;
  flags.servers = "127.0.0.1:1";
  const absl::Status down = WithFleetFix(absl::UnavailableError("x"), flags);
  EXPECT_EQ(FixOf(down).find("see which server is down"), 0u);
  EXPECT_EQ(OptionsOf(down), std::vector<std::string>{"status.servers=127.0.0.1:1"});
  EXPECT_EQ(FixOf(WithFleetFix(absl::DataLossError("x"), flags)), "");
  EXPECT_EQ(FixOf(WithFleetFix(WithFix(absl::UnavailableError("x"), "mine"), flags)), "mine");
}

TEST(FleetFix, NamesAHostThatNobodyKnows) {
  FleetOptions flags;
  flags.servers = "127.0.0.1:1,no.such.host.invalid:7700";
  EXPECT_EQ(FixOf(WithFleetFix(absl::UnavailableError("x"), flags))
                .find("the host name 'no.such.host.invalid' cannot be resolved"),
            0u);
  EXPECT_EQ(UnknownHostFix("127.0.0.1:1,[::1]:2"), "");
}

TEST(FindModelFolder, AcceptsARunOrTheModelInIt) {
  const std::string run = testing::TempDir() + "/find_model_folder";
  std::filesystem::create_directories(run + "/model");
  EXPECT_EQ(FindModelFolder(run).status().code(), absl::StatusCode::kInvalidArgument);
  std::ofstream(run + "/model/part-000-of-001.json") << "{}";
  EXPECT_EQ(*FindModelFolder(run), run + "/model");
  EXPECT_EQ(*FindModelFolder(run + "/model"), run + "/model");
  std::filesystem::remove_all(run);
}

}  // namespace
}  // namespace cistern::app
