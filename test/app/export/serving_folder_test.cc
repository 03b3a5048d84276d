#include "app/export/serving_folder.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "app/export/export_serving.h"
#include "test/app/train/run_fixture.h"

namespace cistern::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ServingFolders : public RunFixture {
 protected:
  // Two versions, after one epoch and after two.
  void SetUp() override {
    RunFixture::SetUp();
    root_ = folder_ + "/serving";
    for (const bool resume : {false, true}) {
      TrainRunOptions train =
          RunOptions("run", {resume ? "solver.num_epochs=2" : "solver.num_epochs=1"});
      train.resume = resume;
      ASSERT_TRUE(RunOf(train).ok());
      ServingExport options;
      options.source.model.config = folder_ + "/run";
      options.version.out = root_;
      const auto exported = ExportServing(options, {});
      ASSERT_TRUE(exported.ok()) << exported.status();
      versions_.push_back(exported->written.version.folder);
    }
  }
  void Damage(const std::string& version) const {
    for (const auto& entry : std::filesystem::directory_iterator(root_ + "/" + version)) {
      if (!entry.is_regular_file() || entry.path().filename() == "serving.json") continue;
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      const char byte = static_cast<char>(~file.get());
      file.seekp(0);
      file.put(byte);
    }
  }

  std::string root_;
  std::vector<std::string> versions_;
};

TEST_F(ServingFolders, AreListedVerifiedAndRolledBack) {
  const absl::StatusOr<ServingListing> listing = ListServing(root_);
  ASSERT_TRUE(listing.ok()) << listing.status();
  const nlohmann::ordered_json json = JsonOf(*listing);
  EXPECT_EQ(json["current"], versions_[1]);
  ASSERT_EQ(json["versions"].size(), 2u);
  EXPECT_EQ(json["versions"][0]["version"], versions_[0]);
  EXPECT_LT(json["versions"][0]["commit"], json["versions"][1]["commit"]);
  EXPECT_GT(json["versions"][1]["rows"], 0);
  EXPECT_EQ(json["damaged"].size(), 0u);
  EXPECT_EQ(VerifyServing(root_)->served()->folder, versions_[1]);

  const absl::StatusOr<ServingRollback> back = RollBackServing(root_, "");
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->version.folder, versions_[0]);
  EXPECT_EQ(back->from, versions_[1]);
  EXPECT_EQ(back->from_name, back->version.name);
  EXPECT_EQ(ListServing(root_)->served()->folder, versions_[0]);
  const absl::Status first = RollBackServing(root_, "").status();
  EXPECT_TRUE(absl::IsInvalidArgument(first));
  EXPECT_THAT(FixOf(first), HasSubstr(versions_[1]));
  EXPECT_TRUE(RollBackServing(root_, versions_[1]).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(RollBackServing(root_, "nope").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ListServing(folder_ + "/run").status()));
}

TEST_F(ServingFolders, ReportDamageWithAWayOut) {
  Damage(versions_[0]);
  const absl::Status other = VerifyServing(root_).status();
  EXPECT_EQ(KindOf(other), ErrorKind::kBadCheckpoint);
  EXPECT_THAT(std::string(other.message()), HasSubstr("is intact, but another one is damaged"));
  EXPECT_THAT(OptionsOf(other), ElementsAre());
  Damage(versions_[1]);
  const absl::Status served = VerifyServing(root_).status();
  EXPECT_EQ(KindOf(served), ErrorKind::kBadCheckpoint);
  EXPECT_THAT(OptionsOf(served), ElementsAre("publish.once", "serving.rollback.to"));
  std::filesystem::remove(root_ + "/HEAD");
  EXPECT_EQ(ListServing(root_)->served(), nullptr);
  const absl::Status none = RollBackServing(root_, "").status();
  EXPECT_THAT(OptionsOf(none), ElementsAre("to=" + versions_[1]));
}

}  // namespace
}  // namespace cistern::app
