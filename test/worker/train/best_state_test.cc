// The best epoch's state on disk: complete or absent, next to the previous one until its removal.
#include "worker/train/best_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/memory_file_system.h"
#include "test/worker/client/embedded_fleet.h"
#include "worker/train/jobs.h"

namespace cistern {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class BestStateTest : public testing::Test {
 protected:
  BestStateTest() : fleet_(1, SmallServer()), client_(Writer(fleet_.Links())) {}

  static server::ServerOptions SmallServer() {
    server::ServerOptions options;
    options.shard_num = 4;
    return options;
  }
  // Commits rows that encode the pass, and saves them as the best state.
  void CommitAndSave(PassId pass) {
    const std::vector<Key> keys = TestKeys(10, pass * 100000000);
    const std::vector<float> values = ValuesOf(keys, client_->layout(kDeep).full_floats());
    const std::vector<uint8_t> has_embedx(keys.size(), 1);
    const std::vector<float> dense(3000, static_cast<float>(pass));
    ASSERT_EQ(client_->BeginPass(), absl::OkStatus());
    ASSERT_EQ(client_->Push(kDeep, keys, values.data(), has_embedx.data()), absl::OkStatus());
    ASSERT_EQ(client_->PushDense(kMlp, dense.data()), absl::OkStatus());
    ASSERT_EQ(client_->CommitPass(), absl::OkStatus());
    Position position;
    position.iterations = pass * 100;
    ASSERT_EQ(best_.Save(*client_, position), absl::OkStatus());
  }
  uint64_t Rows() {
    uint64_t rows = 0;
    EXPECT_EQ(client_->Scan(kDeep,
                            [&](uint32_t, Key, const float*, bool) {
                              ++rows;
                              return absl::OkStatus();
                            }),
              absl::OkStatus());
    return rows;
  }

  MemoryFileSystem disk_;
  EmbeddedFleet fleet_;
  std::unique_ptr<ParameterClient> client_;
  BestState best_{disk_, "/out"};
};

TEST_F(BestStateTest, RestoresTheRowsAndThePositionOfItsPass) {
  CommitAndSave(1);
  const uint64_t rows = Rows();
  CommitAndSave(2);
  ASSERT_GT(Rows(), rows);
  EXPECT_EQ(best_.PositionOf(1)->iterations, 100u);
  EXPECT_EQ(best_.PositionOf(2)->iterations, 200u);
  ASSERT_EQ(best_.Restore(*client_, 1, *best_.PositionOf(1), {}), absl::OkStatus());
  EXPECT_EQ(Rows(), rows);
  EXPECT_EQ(client_->committed_pass(), 1u);
}

TEST_F(BestStateTest, OlderStatesStayUntilKeepOnlyRemovesThem) {
  CommitAndSave(1);
  CommitAndSave(2);
  EXPECT_THAT(disk_.List("/out/best").value(), ElementsAre("pass-1", "pass-2"));
  best_.KeepOnly(2);
  EXPECT_THAT(disk_.List("/out/best").value(), ElementsAre("pass-2"));
  best_.RemoveAll();
  EXPECT_FALSE(disk_.Exists("/out/best").value());
}

TEST_F(BestStateTest, ADurableCommitKeepsTheStateThatWasSavedLast) {
  CommitAndSave(1);
  CommitAndSave(2);
  best_.KeepNewest();
  EXPECT_THAT(disk_.List("/out/best").value(), ElementsAre("pass-2"));
  ASSERT_EQ(disk_.MakeFolders("/out/best/pass-3"), absl::OkStatus());
  best_.KeepNewest();  // nothing was saved since
  EXPECT_THAT(disk_.List("/out/best").value(), ElementsAre("pass-2", "pass-3"));
}

TEST_F(BestStateTest, AMissingStateIsNamedWithTheFix) {
  CommitAndSave(1);
  const absl::Status status = best_.PositionOf(7).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/out/best/pass-7"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("cistern.keep_best=false"));
}

TEST_F(BestStateTest, AModelIsCopiedWithoutTouchingTheServers) {
  disk_.Put("/out/model/old", "of an earlier run");
  CommitAndSave(1);
  const uint64_t rows = Rows();
  CommitAndSave(2);
  const uint64_t later = Rows();
  ASSERT_EQ(best_.CopyTo(1, "/out/model"), absl::OkStatus());
  EXPECT_EQ(Rows(), later);
  EXPECT_FALSE(disk_.Exists("/out/model/old").value());
  ASSERT_EQ(RestoreModel(disk_, *client_, "/out/model", {}), absl::OkStatus());
  EXPECT_EQ(Rows(), rows);
}

// After a loss of power during Save, the state is either absent or complete.
TEST_F(BestStateTest, IsCompleteOrAbsentAfterALossOfPower) {
  CommitAndSave(1);
  for (size_t prefix = 0; prefix <= disk_.operation_num(); ++prefix) {
    for (uint64_t seed = 0; seed < 6; ++seed) {
      const auto disk = disk_.Crash(prefix, MemoryFileSystem::Loss::kWeak, seed);
      BestState found(*disk, "/out");
      const auto position = found.PositionOf(1);
      if (!position.ok()) {
        EXPECT_EQ(position.status().code(), absl::StatusCode::kFailedPrecondition) << prefix;
        EXPECT_LT(prefix, disk_.operation_num());
        continue;
      }
      EXPECT_EQ(found.Restore(*client_, 1, *position, {}), absl::OkStatus()) << prefix;
    }
  }
}

}  // namespace
}  // namespace cistern
