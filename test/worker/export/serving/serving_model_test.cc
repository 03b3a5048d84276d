// Versions for serving: changes read as if the version had been written as a whole, and whatever
// fails leaves the folder at a whole version.
#include "worker/export/serving/serving_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <random>

#include "common/base/hash.h"
#include "serve/predictor/served_state.h"
#include "test/support/fault_file_system.h"
#include "test/support/temp_folder.h"
#include "test/worker/export/memory_model.h"
#include "test/worker/model/config/config_parsing.h"

namespace cistern {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ServingModel : public testing::Test {
 protected:
  ServingModel() : config_(model::ParseOrDie()), model_(config_) {
    options_.root = root_;
    for (Key key = 0; key < 100; ++key) Set(key, static_cast<float>(key));
  }

  void Set(Key key, float x) { model_.Set(0, key, {x, -x, x + 1, 0.5f}); }
  absl::StatusOr<ServingWritten> Whole(FileSystem& files) {
    return WriteServingModel(files, config_, text_, model_, options_);
  }
  absl::StatusOr<ServingWritten> Changes(const ServingVersion& previous, bool complete) {
    model_.set_only_changed(!complete);
    auto written =
        WriteServingChanges(files_, config_, text_, model_, {previous, complete}, options_);
    model_.set_only_changed(false);
    return written;
  }
  std::shared_ptr<const serve::ServedState> Open(const serve::ServedState* previous = nullptr) {
    const ServingHead head = ReadHead(files_, root_).value();
    auto state = serve::ServedState::Open(root_, head, previous, /*verify=*/true);
    EXPECT_TRUE(state.ok()) << state.status();
    return state.ok() ? *state : nullptr;
  }
  std::vector<float> Row(const serve::ServedState& state, Key key) {
    std::vector<float> row(4, -1.0f);
    state.tables()[0]->Lookup(absl::MakeConstSpan(&key, 1), row.data(), 4);
    return row;
  }

  const model::ModelConfig config_;
  MemoryModel model_;
  const ModelText text_ = {"runs/small.json", model::SmallModelText(), {}};
  LocalFileSystem files_;
  const TempFolder folder_;
  const std::string root_ = folder_ / "serving";
  ServingOptions options_;
};

TEST_F(ServingModel, HoldsTheWeightsOfEveryRow) {
  const ServingWritten written = Whole(files_).value();
  EXPECT_EQ(written.rows, 100u);
  EXPECT_EQ(written.version.name, "small");
  const auto state = Open();
  EXPECT_THAT(Row(*state, 42), ElementsAre(42, -42, 43, 0.5f));
  EXPECT_THAT(Row(*state, 100), ElementsAre(0, 0, 0, 0));
  const std::vector<float>& dense = state->dense()[0];
  for (size_t i = 0; i < dense.size(); ++i) EXPECT_EQ(dense[i], model_.dense(0)[i * 3]) << i;
}

// The reference is a version that is written as a whole in another folder.
TEST_F(ServingModel, ChangesReadAsAWholeVersion) {
  ServingVersion previous = Whole(files_)->version;
  std::shared_ptr<const serve::ServedState> followed = Open();
  std::mt19937_64 random(11);
  for (int commit = 0; commit < 40; ++commit) {
    model_.Commit();
    const bool complete = commit % 3 == 0;
    for (int i = 0; i < 5; ++i) Set(random() % 150, static_cast<float>(commit));
    model_.Remove(0, random() % 150);  // some were never there
    model_.dense(0)[0] = static_cast<float>(commit);
    previous = Changes(previous, complete)->version;

    const std::string other = root_ + "-whole";
    const ServingOptions whole = {other, RowPrecision::kFloat32, 1};
    const ServingVersion expected =
        WriteServingModel(files_, config_, text_, model_, whole)->version;
    std::filesystem::remove_all(other);
    EXPECT_EQ(previous.tables[0].digest, expected.tables[0].digest);
    EXPECT_EQ(previous.tables[0].rows, expected.tables[0].rows);
    EXPECT_EQ(previous.tables[0].rows, model_.rows(0));
    EXPECT_EQ(previous.dense.xxh3, expected.dense.xxh3);
    followed = Open(followed.get());  // checks the digest
    ASSERT_NE(followed, nullptr);
    const auto fresh = Open();
    for (Key key = 0; key < 160; ++key) EXPECT_EQ(Row(*followed, key), Row(*fresh, key));
  }
  EXPECT_GT(previous.tables[0].layers.size(), 0u);
}

TEST_F(ServingModel, UnchangedTablesAreNotWrittenAgain) {
  const ServingVersion first = Whole(files_)->version;
  model_.Commit();
  const ServingVersion second = Changes(first, /*complete=*/true)->version;
  EXPECT_EQ(second.tables[0].layers, first.tables[0].layers);
  Set(7, 1000);
  model_.Commit();
  const ServingVersion third = Changes(second, /*complete=*/true)->version;
  EXPECT_EQ(third.tables[0].layers.size(), 2u);
}

TEST_F(ServingModel, ManyChangesMakeAWholeTable) {
  const ServingVersion first = Whole(files_)->version;
  model_.Commit();
  for (Key key = 0; key < 60; ++key) Set(key, 5000.0f + static_cast<float>(key));
  EXPECT_EQ(Changes(first, /*complete=*/false)->version.tables[0].layers.size(), 1u);
  EXPECT_THAT(Row(*Open(), 59), ElementsAre(5059, -5059, 5060, 0.5f));
}

TEST_F(ServingModel, NothingBuildsOnDamagedChanges) {
  const ServingVersion first = Whole(files_)->version;
  model_.Commit();
  Set(7, 1000);
  const ServingVersion second = Changes(first, /*complete=*/false)->version;
  const std::string path = absl::StrCat(root_, "/", second.tables[0].layers[1].path);
  std::string bytes = ReadWhole(files_, path, 1 << 20).value();
  bytes[70] = static_cast<char>(bytes[70] ^ 1);
  std::filesystem::remove(path);
  const auto file = files_.Create(path).value();
  ASSERT_TRUE(file->Append(bytes).ok() && file->Close().ok());
  model_.Commit();
  Set(8, 1000);
  EXPECT_TRUE(absl::IsDataLoss(Changes(second, /*complete=*/false).status()));
}

TEST_F(ServingModel, KeepsTheFilesThatKeptVersionsUse) {
  options_.keep = 1;
  ServingVersion version = Whole(files_)->version;
  const std::string base = version.folder;
  for (int i = 0; i < 3; ++i) {
    model_.Commit();
    Set(3, 100.0f + static_cast<float>(i));
    version = Changes(version, /*complete=*/false)->version;
  }
  // The base and all its changes are in use; a whole version frees them.
  EXPECT_EQ(VersionsIn(files_, root_)->size(), 4u);
  model_.Commit();
  version = Whole(files_)->version;
  EXPECT_THAT(*VersionsIn(files_, root_), ElementsAre(version.folder));
  EXPECT_FALSE(std::filesystem::exists(root_ + "/" + base));
}

TEST_F(ServingModel, AnyFailedCallLeavesAWholeVersion) {
  const ServingVersion first = Whole(files_)->version;
  model_.Commit();
  Set(1, 999);
  uint64_t failures = 0;
  const std::string fresh = root_ + "-fresh";
  std::filesystem::copy(root_, fresh, std::filesystem::copy_options::recursive);
  for (uint64_t n = 1;; ++n) {
    std::filesystem::remove_all(root_);
    std::filesystem::copy(fresh, root_, std::filesystem::copy_options::recursive);
    FaultFileSystem files(&files_);
    files.FailCall(n, Fault::kNoSpace);
    const bool written = Whole(files).ok();
    const auto state = Open();
    ASSERT_NE(state, nullptr);
    const float expected = state->version().commit == first.commit ? 1.0f : 999.0f;
    EXPECT_EQ(Row(*state, 1)[0], expected);
    if (written) {
      EXPECT_NE(state->version().commit, first.commit) << n;
    }
    if (files.hits().empty()) break;
    failures += written ? 0 : 1;
  }
  EXPECT_GT(failures, 20u);
  std::filesystem::remove_all(fresh);
}

TEST_F(ServingModel, ASecondWriterIsRefused) {
  Whole(files_).value();
  const auto other = files_.Lock(root_ + "/LOCK").value();
  const absl::Status status = Whole(files_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("another process writes"));
}

TEST_F(ServingModel, AWeightThatIsNotFiniteIsRefused) {
  model_.Set(0, 5, {0, std::numeric_limits<float>::quiet_NaN(), 0, 0});
  const absl::Status status = Whole(files_).status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("table 'deep': key 5"));
  EXPECT_TRUE(absl::IsNotFound(ReadHead(files_, root_).status()));
}

TEST_F(ServingModel, AStateThatChangedMeanwhileIsNotServed) {
  model_.recheck = absl::AbortedError("changed");
  EXPECT_TRUE(absl::IsAborted(Whole(files_).status()));
  EXPECT_TRUE(absl::IsNotFound(ReadHead(files_, root_).status()));
}

TEST_F(ServingModel, AFlippedBitInAnyFileIsNoticed) {
  ServingVersion version = Whole(files_)->version;
  model_.Commit();
  Set(3, 7777);
  Changes(version, /*complete=*/false).value();
  const ServingHead head = ReadHead(files_, root_).value();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root_)) {
    // The older version's description and dense parameters are not read.
    const std::string path = entry.path();
    const std::string name = entry.path().filename();
    if (!entry.is_regular_file() || name == "HEAD") continue;
    const bool is_used = path.find(head.folder) != std::string::npos || name == "rows-000.rows";
    if (!is_used) continue;
    const std::string good = ReadWhole(files_, path, 1 << 20).value();
    for (size_t at = 0; at < good.size(); at += 1 + good.size() / 50) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 16);
      std::filesystem::remove(path);
      auto file = files_.Create(path).value();
      ASSERT_TRUE(file->Append(bad).ok() && file->Close().ok());
      EXPECT_FALSE(serve::ServedState::Open(root_, head, nullptr, /*verify=*/true).ok())
          << path << at;
    }
    std::filesystem::remove(path);
    auto file = files_.Create(path).value();
    ASSERT_TRUE(file->Append(good).ok() && file->Close().ok());
  }
  EXPECT_TRUE(serve::ServedState::Open(root_, head, nullptr, /*verify=*/true).ok());
}

TEST_F(ServingModel, AFolderKeepsItsNameUntilAnotherOneIsAskedFor) {
  const auto name_of = [&](const ModelText& text, const std::string& asked) {
    ServingOptions options = options_;
    options.name = asked;
    const auto written = WriteServingModel(files_, config_, text, model_, options);
    EXPECT_TRUE(written.ok()) << written.status();
    return written.ok() ? *written : ServingWritten();
  };
  ModelText text = text_;
  text.name = "day1";
  ServingWritten written = name_of(text, "");
  EXPECT_EQ(written.version.name, "day1");
  EXPECT_EQ(written.name_before, "");
  text.name = "day2";
  written = name_of(text, "");
  EXPECT_EQ(written.version.name, "day1");
  EXPECT_EQ(written.own_name, "day2");
  EXPECT_EQ(written.name_before, "day1");
  // Changes of an older version keep it, too.
  const absl::StatusOr<ServingWritten> changes = WriteServingChanges(
      files_, config_, text, model_, {written.version, /*complete=*/true}, options_);
  ASSERT_TRUE(changes.ok()) << changes.status();
  EXPECT_EQ(changes->version.name, "day1");
  written = name_of(text, "ctr");
  EXPECT_EQ(written.version.name, "ctr");
  EXPECT_EQ(written.name_before, "day1");
  EXPECT_EQ(name_of(text, "").version.name, "ctr");
  std::filesystem::remove(root_ + "/HEAD");  // the newest version still says it
  EXPECT_EQ(name_of(text, "").version.name, "ctr");
}

}  // namespace
}  // namespace cistern
