// Bases that are merged beside further versions: every version reads as if it had been written as a
// whole, and whatever happens to a merge leaves whole versions.
#include "worker/export/serving/version_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "absl/strings/str_format.h"
#include "serve/predictor/served_state.h"
#include "test/support/fault_file_system.h"
#include "test/support/temp_folder.h"
#include "test/worker/export/memory_model.h"
#include "test/worker/model/config/config_parsing.h"

namespace cistern {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr Key kRows = 200;

class SeriesTest : public testing::Test {
 protected:
  SeriesTest() : config_(model::ParseOrDie()), model_(config_) {
    options_.root = root_;
    for (Key key = 0; key < kRows; ++key) Set(key, static_cast<float>(key));
    version_ = WriteServingModel(files_, config_, text_, model_, options_)->version;
  }

  void Set(Key key, float x) {
    model_.Set(0, key, {x, -x, x + 1, 0.5f});
    expected_[key] = x;
  }
  // Changes some rows, commits, and returns what writing the version returned.
  absl::Status Commit(VersionSeries& series) {
    model_.Commit();
    for (int i = 0; i < 10; ++i) Set(random_() % (kRows + 20), static_cast<float>(random_() % 999));
    return Publish(series);
  }
  absl::Status Publish(VersionSeries& series) {
    model_.set_only_changed(true);
    const auto written = series.WriteChanges(config_, text_, model_,
                                             {version_, /*complete=*/false, share_}, options_);
    model_.set_only_changed(false);
    if (written.ok()) version_ = written->version;
    return written.status();
  }
  // Commits until the newest version names a base that was not there before.
  void CommitUntilANewBase(VersionSeries& series) {
    const ServingFile base = version_.tables[0].layers[0];
    for (int i = 0; i < 200 && version_.tables[0].layers[0] == base; ++i) {
      ASSERT_TRUE(Commit(series).ok());
    }
    ASSERT_FALSE(version_.tables[0].layers[0] == base);
  }
  // The current version, every byte of which was checked; null if it is damaged.
  std::shared_ptr<const serve::ServedState> Open() {
    const ServingHead head = ReadHead(files_, root_).value();
    auto state = serve::ServedState::Open(root_, head, nullptr, /*verify=*/true);
    EXPECT_TRUE(state.ok()) << state.status();
    return state.ok() ? *state : nullptr;
  }
  void ExpectReadsAsTheModel() {
    const auto state = Open();
    ASSERT_NE(state, nullptr);
    EXPECT_EQ(state->version().tables[0].rows, expected_.size());
    for (const auto& [key, x] : expected_) {
      float row[4];
      ASSERT_EQ(state->tables()[0]->Lookup(absl::MakeConstSpan(&key, 1), row, 4), 0u) << key;
      ASSERT_THAT(row, ElementsAre(x, -x, x + 1, 0.5f)) << key;
    }
  }
  std::string Path(const ServingFile& file) const { return absl::StrCat(root_, "/", file.path); }
  // Flips a bit in the middle of a file, in place.
  void Damage(const ServingFile& file) {
    std::fstream bytes(Path(file), std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekg(static_cast<std::streamoff>(file.bytes / 2));
    const char old = static_cast<char>(bytes.get());
    bytes.seekp(static_cast<std::streamoff>(file.bytes / 2));
    bytes.put(static_cast<char>(old ^ 1));
  }

  const model::ModelConfig config_;
  MemoryModel model_;
  const ModelText text_ = {"runs/small.json", model::SmallModelText(), {}};
  LocalFileSystem files_;
  const TempFolder folder_;
  const std::string root_ = folder_ / "serving";
  ServingOptions options_;
  ServingVersion version_;
  double share_ = 0.2;
  std::map<Key, float> expected_;
  std::mt19937_64 random_{5};
};

TEST_F(SeriesTest, EveryVersionReadsAsAWholeOne) {
  VersionSeries series(&files_, root_);
  std::set<std::string> bases;
  for (int commit = 0; commit < 30; ++commit) {
    ASSERT_TRUE(Commit(series).ok());
    ExpectReadsAsTheModel();
    bases.insert(version_.tables[0].layers[0].path);
    if (commit % 3 == 0) series.AwaitBases();
  }
  EXPECT_GE(bases.size(), 3u);
}

TEST_F(SeriesTest, OneOfTwoPublishersMerges) {
  VersionSeries series(&files_, root_);
  ASSERT_TRUE(Commit(series).ok());
  {
    const auto other = files_.Lock(root_ + "/BASE_LOCK").value();
    const ServingFile base = version_.tables[0].layers[0];
    for (int i = 0; i < 30; ++i) {
      ASSERT_TRUE(Commit(series).ok());
      series.AwaitBases();
    }
    EXPECT_TRUE(version_.tables[0].layers[0] == base);
    ExpectReadsAsTheModel();
  }
  CommitUntilANewBase(series);
  ExpectReadsAsTheModel();
}

TEST_F(SeriesTest, FilesThatNoVersionNamesAreRemoved) {
  {
    VersionSeries series(&files_, root_);
    for (int commit = 0; commit < 25; ++commit) {
      ASSERT_TRUE(Commit(series).ok());
      series.AwaitBases();
    }
  }
  std::set<std::string> used = {"HEAD", "LOCK", "BASE_LOCK"};
  const std::vector<std::string> names = *VersionsIn(files_, root_);
  for (const std::string& name : names) {
    used.insert(name);
    const ServingVersion version = *ReadVersion(files_, root_, name, 0);
    std::set<std::string> checked;
    EXPECT_TRUE(CheckAllFiles(files_, root_, version, &checked).ok()) << name;
    for (const ServingFile& layer : version.tables[0].layers) {
      used.insert(layer.path.substr(0, layer.path.find('/')));
    }
  }
  for (const auto& entry : std::filesystem::directory_iterator(root_)) {
    EXPECT_EQ(used.count(entry.path().filename()), 1u) << entry.path();
  }
  EXPECT_LT(used.size(), 20u);
}

// An old version is gone, but later ones use a base in its folder.
TEST_F(SeriesTest, AFolderWithABaseInUseIsNotWrittenAgain) {
  VersionSeries series(&files_, root_);
  options_.keep = 1;
  CommitUntilANewBase(series);
  ASSERT_TRUE(Commit(series).ok());
  const std::string base = version_.tables[0].layers[0].path;
  const std::string folder = base.substr(0, base.find('/'));
  ASSERT_FALSE(std::filesystem::exists(absl::StrCat(root_, "/", folder, "/serving.json")));
  MemoryModel again(config_);  // the same commit number
  while (absl::StrFormat("%010d", again.version().commit) != folder) again.Commit();
  const auto written = WriteServingModel(files_, config_, text_, again, options_);
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(written->version.folder, folder + "-002");
}

// The series is destroyed, as by the end of the process, at every moment of a merge.
TEST_F(SeriesTest, AnInterruptedMergeLeavesWholeVersions) {
  for (int round = 0; round < 6; ++round) {
    VersionSeries series(&files_, root_);
    for (int commit = 0; commit < 4; ++commit) ASSERT_TRUE(Commit(series).ok());
    ExpectReadsAsTheModel();
  }
  VersionSeries series(&files_, root_);
  CommitUntilANewBase(series);
  ExpectReadsAsTheModel();
}

TEST_F(SeriesTest, ABaseIsNotNamedAboveAnOlderVersion) {
  VersionSeries series(&files_, root_);
  options_.keep = 10;
  share_ = 100;
  ASSERT_TRUE(Commit(series).ok());
  const ServingVersion older = version_;
  ASSERT_TRUE(Commit(series).ok());
  share_ = 0;  // a merge of the layers of the next version begins
  ASSERT_TRUE(Commit(series).ok());
  series.AwaitBases();
  version_ = older;  // a rollback
  ASSERT_TRUE(WriteHead(files_, root_, *HeadOf(files_, root_, older.folder)).ok());
  for (Key key = 0; key < kRows / 3; ++key) Set(key, 1);
  for (const auto& [key, x] : std::map(expected_)) {
    if (key >= kRows / 3) model_.Set(0, key, {x, -x, x + 1, 0.5f});
  }
  share_ = 100;
  ASSERT_TRUE(Publish(series).ok());
  EXPECT_EQ(version_.tables[0].layers[0], older.tables[0].layers[0]);
  ExpectReadsAsTheModel();
  share_ = 0;
  CommitUntilANewBase(series);
  ExpectReadsAsTheModel();
}

TEST_F(SeriesTest, DamagedLayersMakeNoBase) {
  VersionSeries series(&files_, root_);
  Damage(version_.tables[0].layers[0]);
  absl::Status status;
  for (int commit = 0; commit < 40 && status.ok(); ++commit) {
    status = Commit(series);
    series.AwaitBases();
  }
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("table 'deep'"));
}

TEST_F(SeriesTest, ChangesThatAreDamagedAfterTheyWereReadAreNoticed) {
  VersionSeries series(&files_, root_);
  for (int commit = 0; commit < 3; ++commit) ASSERT_TRUE(Commit(series).ok());
  ASSERT_THAT(version_.tables[0].layers, SizeIs(4));
  Damage(version_.tables[0].layers[1]);
  EXPECT_TRUE(absl::IsDataLoss(Commit(series)));
}

TEST_F(SeriesTest, ADamagedBaseIsNotServed) {
  VersionSeries series(&files_, root_);
  CommitUntilANewBase(series);
  Damage(version_.tables[0].layers[0]);
  const ServingHead head = *ReadHead(files_, root_);
  EXPECT_FALSE(serve::ServedState::Open(root_, head, nullptr, /*verify=*/true).ok());
}

// Some calls fail, in the merge or in a version: what is current is always whole, and the series
// goes on afterwards.
TEST_F(SeriesTest, FailedCallsLeaveWholeVersions) {
  FaultFileSystem files(&files_);
  VersionSeries series(&files, root_);
  int failures = 0, bases = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    files.FailSome(seed, /*one_in=*/40, Fault::kNoSpace);
    const std::string base = version_.tables[0].layers[0].path;
    failures += Commit(series).ok() ? 0 : 1;
    series.AwaitBases();
    files.FailNothing();
    // The rows of a commit that failed are changed in the model, but not in the folder.
    if (seed % 8 == 0) {
      for (Key key = 0; key < kRows + 20; ++key) Set(key, static_cast<float>(seed));
      ASSERT_TRUE(Publish(series).ok() || Publish(series).ok());
      ExpectReadsAsTheModel();
    }
    ASSERT_NE(Open(), nullptr);
    bases += version_.tables[0].layers[0].path == base ? 0 : 1;
  }
  EXPECT_GT(failures, 5);
  EXPECT_GT(bases, 1);
}

}  // namespace
}  // namespace cistern
