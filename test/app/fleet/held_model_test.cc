// Tests of repeated loads and of preconditions that no longer hold.
#include "app/fleet/held_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "app/fleet/precondition.h"
#include "common/saved_model/model_folder.h"
#include "test/server/checkpoint/small_state.h"
#include "test/support/temp_folder.h"

namespace cistern::app {
namespace {

using testing::HasSubstr;

class HeldModelTest : public testing::Test {
 protected:
  HeldModelTest() : fleet_(2, Base()), client_(Writer(fleet_.Links())) {
    EXPECT_EQ(server::CommitRound(*client_, 1), absl::OkStatus());
  }
  server::ServerOptions Base() const {
    server::ServerOptions options;
    options.data_dir = folder_.path();
    options.shard_num = 8;
    return options;
  }
  void Save(const std::string& name, const v1::SaveFormat& format = {}) {
    EXPECT_EQ(client_->ForEachServer([&](size_t, ControlPlane& server) {
      v1::SaveRequest request;
      *request.mutable_identity() = client_->identity();
      request.set_name(name);
      *request.mutable_format() = format;
      v1::SaveReply reply;
      return server.Save(request, &reply);
    }),
              absl::OkStatus());
  }

  TempFolder folder_;
  RestartableFleet fleet_;
  const std::unique_ptr<ParameterClient> client_;
};

TEST_F(HeldModelTest, ComparesDigests) {
  v1::SaveFormat binary;
  binary.set_kind(v1::SaveFormat::BINARY);
  binary.set_gzip(true);
  Save("text");
  Save("binary", binary);
  for (const char* name : {"text", "binary"}) {
    EXPECT_TRUE(HoldsSavedModel(Disk(), *client_, name).value()) << name;
    EXPECT_TRUE(HoldsModel(Disk(), *client_, folder_ / name).value()) << name;
  }
  ASSERT_EQ(CommitKeys(*client_, std::vector<Key>{5}), absl::OkStatus());
  EXPECT_FALSE(HoldsSavedModel(Disk(), *client_, "text").value());
  EXPECT_FALSE(HoldsModel(Disk(), *client_, folder_ / "binary").value());
}

TEST_F(HeldModelTest, ARoundedSaveRecordsNoDigests) {
  v1::SaveFormat rounded;
  rounded.set_six_digits(true);
  Save("rounded", rounded);
  const std::vector<ModelPart> parts = ReadParts(Disk(), folder_ / "rounded").value();
  EXPECT_FALSE(TableStatesOf(parts).has_value());
  EXPECT_FALSE(HoldsSavedModel(Disk(), *client_, "rounded").value());
}

TEST_F(HeldModelTest, ASaveRecordsTheDigestsOfTheTables) {
  Save("monday");
  const auto tables = TableStatesOf(ReadParts(Disk(), folder_ / "monday").value()).value();
  const std::vector<uint64_t> digests = DigestsOf(*client_);
  ASSERT_EQ(tables.size(), digests.size());
  for (size_t t = 0; t < digests.size(); ++t) EXPECT_EQ(tables[t].digest(), digests[t]);
}

TEST_F(HeldModelTest, AnotherFolderWithTheSamePathIsNotTheServersFolder) {
  Save("monday");
  ASSERT_TRUE(HoldsSavedModel(Disk(), *client_, "monday").value());
  // A machine without the servers' disk sees no commits, or those of another fleet.
  std::filesystem::rename(folder_ / "state", folder_ / "elsewhere");
  EXPECT_FALSE(HoldsSavedModel(Disk(), *client_, "monday").value());
  TempFolder other;
  server::MakeSmallState(Disk(), other.path(), 3, 1);
  std::filesystem::rename(other / "state", folder_ / "state");
  EXPECT_FALSE(HoldsSavedModel(Disk(), *client_, "monday").value());
  std::filesystem::remove_all(folder_ / "state");
  std::filesystem::rename(folder_ / "elsewhere", folder_ / "state");
  EXPECT_TRUE(HoldsSavedModel(Disk(), *client_, "monday").value());
  EXPECT_FALSE(HoldsSavedModel(Disk(), *client_, "../monday").value());
  EXPECT_FALSE(HoldsSavedModel(Disk(), *client_, "tuesday").value());
}

TEST_F(HeldModelTest, PreconditionsCheckPassAndCommit) {
  EXPECT_EQ(CheckExpected(*client_, {}), absl::OkStatus());
  EXPECT_EQ(CheckExpected(*client_, {"1", "1"}), absl::OkStatus());
  EXPECT_EQ(CheckExpectedPass(*client_, {"2", ""}).code(), absl::StatusCode::kFailedPrecondition);
  const absl::Status moved = CheckExpected(*client_, {"", "0"});
  EXPECT_TRUE(absl::IsFailedPrecondition(moved));
  EXPECT_THAT(std::string(moved.message()), HasSubstr("at commit 1, not at 0"));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckExpected(*client_, {"one", ""})));
}

}  // namespace
}  // namespace cistern::app
