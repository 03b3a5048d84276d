// Tests of the contents of --out, and of what the flags do with them.
#include "app/run/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/io/file_system.h"
#include "test/support/temp_folder.h"

namespace cistern::app {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class RunFolderTest : public testing::Test {
 protected:
  RunFolderTest() { run_.out = folder_.path() + "/run"; }

  void Make(const std::string& name) { fs::create_directories(run_.out + "/" + name); }
  std::string Error() {
    const absl::Status status = PrepareRunFolder(run_);
    if (status.ok()) return "";
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_NE(FixOf(status), "");
    return std::string(status.message());
  }

  TempFolder folder_;
  RunFolder run_;
};

TEST_F(RunFolderTest, AcceptsAFolderThatDoesNotExist) {
  EXPECT_EQ(Error(), "");
  EXPECT_EQ(run_.state_root(), run_.out);
  run_.resume = true;
  EXPECT_EQ(Error(), "");
  run_.embedded = false;
  EXPECT_EQ(Error(), "");
  EXPECT_EQ(run_.state_root(), "");
}

TEST_F(RunFolderTest, IsFoundFromItsParts) {
  for (const char* part : {"model", "best", "state", "snapshot-100", "model/"}) {
    EXPECT_EQ(RunOf(run_.out + "/" + part), run_.out) << part;
  }
  for (const char* other : {"data", "models", "state2"}) {
    EXPECT_EQ(RunOf(run_.out + "/" + other), run_.out + "/" + other);
  }
}

TEST_F(RunFolderTest, RefusesAFile) {
  WriteBytes(run_.out, "x");
  EXPECT_THAT(Error(), HasSubstr("is it a file, or below one?"));
}

TEST_F(RunFolderTest, AStateNeedsResumeOrOverwrite) {
  Make("state/manifest/1");
  EXPECT_THAT(Error(), HasSubstr("holds the state of a run"));
  run_.resume = true;
  EXPECT_EQ(Error(), "");
  EXPECT_TRUE(fs::exists(run_.out + "/state/manifest"));
  run_.resume = false;
  run_.overwrite = true;
  EXPECT_EQ(Error(), "");
  EXPECT_FALSE(fs::exists(run_.out + "/state"));
}

TEST_F(RunFolderTest, RemovesAStateWithoutACommit) {
  Make("state/manifest");
  Make("state/data");
  EXPECT_EQ(Error(), "");
  EXPECT_FALSE(fs::exists(run_.out + "/state"));
  Make("state/manifest");
  Make("model");
  EXPECT_THAT(Error(), HasSubstr("holds the state of a run"));
}

TEST_F(RunFolderTest, AModelWithoutAStateCannotBeResumed) {
  Make("model");
  EXPECT_THAT(Error(), HasSubstr("already holds a trained model"));
  run_.resume = true;
  EXPECT_THAT(Error(), HasSubstr("no state to resume from"));
  run_.embedded = false;  // the servers hold the state
  EXPECT_EQ(Error(), "");
}

TEST_F(RunFolderTest, RefusesConflictingFlags) {
  run_.resume = run_.overwrite = true;
  EXPECT_THAT(Error(), HasSubstr("either resumed or overwritten"));
  run_.overwrite = false;
  run_.keep_state = false;
  EXPECT_THAT(Error(), HasSubstr("keeps no state"));
  run_.resume = run_.embedded = false;
  EXPECT_THAT(Error(), HasSubstr("a fleet decides"));
}

TEST_F(RunFolderTest, AStateInUseIsNotRemoved) {
  Make("state");
  LocalFileSystem files;
  const auto lock = files.Lock(run_.out + "/state/lock-0");
  ASSERT_TRUE(lock.ok()) << lock.status();
  run_.overwrite = true;
  const absl::Status status = PrepareRunFolder(run_);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_TRUE(fs::exists(run_.out + "/state"));
}

TEST(CheckNameForJson, RefusesBytesThatAreNotUtf8) {
  EXPECT_TRUE(CheckNameForJson("--out", "runs/caf\xc3\xa9").ok());
  const absl::Status refused = CheckNameForJson("--out", "runs/caf\xe9\n");
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_EQ(std::string(refused.message()).find("--out: 'runs/caf\\xe9\\n' is not UTF-8"), 0u)
      << refused;
  EXPECT_NE(FixOf(refused), "");
}

}  // namespace
}  // namespace cistern::app
