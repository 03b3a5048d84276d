// Saving, loading, shrinking and scrubbing fleets behind real sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "app/admin/load_fleet.h"
#include "app/admin/save_fleet.h"
#include "app/admin/scrub_fleet.h"
#include "app/admin/shrink_fleet.h"
#include "common/rpc/server_host.h"
#include "test/server/checkpoint/small_state.h"
#include "test/support/temp_folder.h"

namespace cistern::app {
namespace {

using testing::HasSubstr;

// Durable servers that share one data_dir.
class HostedFleet {
 public:
  HostedFleet(uint32_t count, const std::string& data_dir) {
    for (uint32_t rank = 0; rank < count; ++rank) {
      server::ServerOptions options;
      options.rank = rank;
      options.server_num = count;
      options.shard_num = 8;
      options.data_dir = data_dir;
      options.durable = true;
      nodes_.push_back(*server::ServerNode::Create(options));
      hosts_.push_back(
          *ServerHost::Start("127.0.0.1", 0, &nodes_.back()->control(), &nodes_.back()->data()));
      absl::StrAppend(&fleet_.servers, rank > 0 ? "," : "", "127.0.0.1:", hosts_.back()->port());
    }
  }

  const FleetOptions& options() const { return fleet_; }
  std::unique_ptr<FleetSession> Open() const { return *FleetSession::Open(fleet_); }

 private:
  FleetOptions fleet_;
  std::vector<std::unique_ptr<server::ServerNode>> nodes_;
  std::vector<std::unique_ptr<ServerHost>> hosts_;
};

class AdminTest : public testing::Test {
 protected:
  AdminTest() : fleet_(2, folder_ / "a") {
    const std::unique_ptr<FleetSession> session = fleet_.Open();
    EXPECT_EQ(session->client().CreateTables(TestSchema()), absl::OkStatus());
    EXPECT_EQ(session->client().ClaimTerm(), absl::OkStatus());
    EXPECT_EQ(server::CommitRound(session->client(), 1), absl::OkStatus());
    rows_ = *RowsOn(session->client()) + kDenseRows;
  }
  SaveFleetOptions SaveAs(const std::string& name) const {
    SaveFleetOptions options;
    options.fleet = fleet_.options();
    options.name = name;
    return options;
  }

  TempFolder folder_;
  HostedFleet fleet_;
  static constexpr uint64_t kDenseRows = 1000;  // of TestSchema
  uint64_t rows_ = 0;                           // as saves count them
};

TEST_F(AdminTest, ASavedFleetLoadsOntoAnotherNumberOfServers) {
  int amounts = 0;
  JobCalls calls;
  calls.amount = [&](const Amount& amount) {
    ++amounts;
    EXPECT_EQ(amount.what, "saving");
  };
  const absl::StatusOr<SavedFleet> saved = SaveFleet(SaveAs("monday"), calls);
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->parts.size(), 2u);
  EXPECT_EQ(saved->rows(), rows_);
  EXPECT_GT(amounts, 0);

  std::filesystem::create_directories(folder_ / "b");
  std::filesystem::copy(folder_ / "a/monday", folder_ / "b/monday",
                        std::filesystem::copy_options::recursive);
  const HostedFleet other(3, folder_ / "b");
  LoadFleetOptions load;
  load.fleet = other.options();
  load.name = "monday";
  absl::StatusOr<LoadedFleet> loaded = LoadFleet(load, {});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_FALSE(loaded->already_there);
  EXPECT_EQ(loaded->rows, rows_);
  loaded = LoadFleet(load, {});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_TRUE(loaded->already_there);
}

TEST_F(AdminTest, AFleetWithOtherRowsIsReplacedOnlyOnRequest) {
  ASSERT_TRUE(SaveFleet(SaveAs("monday"), {}).ok());
  {
    const std::unique_ptr<FleetSession> session = fleet_.Open();
    ASSERT_EQ(session->client().CreateTables(TestSchema()), absl::OkStatus());
    ASSERT_EQ(session->client().ClaimTerm(), absl::OkStatus());
    ASSERT_EQ(server::CommitRound(session->client(), 2), absl::OkStatus());
  }
  LoadFleetOptions load;
  load.fleet = fleet_.options();
  load.name = "monday";
  const absl::Status refused = LoadFleet(load, {}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(OptionsOf(refused), testing::ElementsAre("replace"));
  load.replace = true;
  load.name = "no-such-model";
  const absl::Status missing = LoadFleet(load, {}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(missing)) << missing;
  EXPECT_THAT(OptionsOf(missing), testing::ElementsAre("name"));
  load.name = "monday";
  const absl::StatusOr<LoadedFleet> loaded = LoadFleet(load, {});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->rows, rows_);
}

TEST_F(AdminTest, ATakenNameIsRefused) {
  ASSERT_TRUE(SaveFleet(SaveAs("monday"), {}).ok());
  const absl::Status taken = SaveFleet(SaveAs("monday"), {}).status();
  EXPECT_TRUE(absl::IsAlreadyExists(taken)) << taken;
  EXPECT_THAT(FixOf(taken), HasSubstr("another name"));
  PassId pass = 0;
  const absl::StatusOr<SavedPart> here = SaveFleetHere(fleet_.options(), folder_ / "here", &pass);
  ASSERT_TRUE(here.ok()) << here.status();
  EXPECT_EQ(here->rows, rows_);
  EXPECT_GT(pass, 0u);
  EXPECT_TRUE(
      absl::IsAlreadyExists(SaveFleetHere(fleet_.options(), folder_ / "here", &pass).status()));
}

TEST_F(AdminTest, FindsTheCommitWhoseFilesItSees) {
  EXPECT_EQ(CommitOfFleet(fleet_.options())->state, folder_ / "a@1");
}

TEST_F(AdminTest, ADryShrinkChangesNothingAndAScrubFindsDamage) {
  ShrinkFleetOptions shrink;
  shrink.fleet = fleet_.options();
  shrink.dry_run = true;
  const absl::StatusOr<std::vector<ShrunkServer>> shrunk = ShrinkFleet(shrink, {});
  ASSERT_TRUE(shrunk.ok()) << shrunk.status();
  EXPECT_EQ(shrunk->size(), 2u);
  shrink.expected.pass = "99";
  EXPECT_TRUE(absl::IsFailedPrecondition(ShrinkFleet(shrink, {}).status()));
  const std::unique_ptr<FleetSession> session = fleet_.Open();
  EXPECT_EQ(*RowsOn(session->client()) + kDenseRows, rows_);
  EXPECT_TRUE(ScrubServers(session->client(), true, {})->outcome().ok());
  const std::string file = folder_ / "a/state/data/base-1-1-1";
  std::string bytes = ReadBytes(file);
  bytes[bytes.size() / 2] ^= 0x10;
  WriteBytes(file, bytes);
  const ScrubResult bad = *ScrubServers(session->client(), true, {});
  EXPECT_TRUE(bad.servers[0].state.ok());
  EXPECT_EQ(KindOf(bad.outcome()), ErrorKind::kBadCheckpoint);
}

}  // namespace
}  // namespace cistern::app
