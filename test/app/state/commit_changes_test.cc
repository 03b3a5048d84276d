// The rows that commits have changed, read from their files: the same as by comparing whole states.
#include "app/state/commit_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <utility>

#include "app/state/saved_place.h"
#include "app/state/saved_rows.h"
#include "test/server/checkpoint/small_state.h"
#include "test/support/temp_folder.h"

namespace cistern::app {
namespace {

using Rows = std::map<std::pair<TableId, Key>, std::pair<std::vector<float>, bool>>;

Rows RowsOf(CommittedModel& model) {
  Rows rows;
  for (const TableId table : {kCtr, kDeep}) {
    const ValueLayout layout =
        ValueLayout::Create(model.schema().tables(static_cast<int>(table))).value();
    const absl::Status scanned =
        model.Scan(table, [&](uint32_t, Key key, const float* value, bool has_embedx) {
          const std::vector<float> cells(value, value + layout.floats(has_embedx));
          EXPECT_TRUE(rows.try_emplace({table, key}, cells, has_embedx).second) << key;
          return absl::OkStatus();
        });
    EXPECT_TRUE(scanned.ok()) << scanned;
  }
  return rows;
}

// Servers that merge their files after every commit.
class CommitChangesTest : public testing::Test {
 protected:
  static constexpr size_t kServerNum = 2;

  CommitChangesTest() : fleet_(kServerNum, Options()), client_(Writer(fleet_.Links())) {
    state_ = FindState(files_, folder_.path()).value();
  }
  server::ServerOptions Options() const {
    server::ServerOptions options;
    options.data_dir = folder_.path();
    options.shard_num = 8;
    options.compact_min_bytes = 1;
    return options;
  }
  // Commits and awaits the merge, so that the next commit names its base.
  void Commit(uint64_t round) {
    ASSERT_EQ(server::CommitRound(*client_, round), absl::OkStatus());
    for (size_t rank = 0; rank < kServerNum; ++rank) fleet_.node(rank).AwaitCompaction();
  }
  uint64_t newest() const { return client_->manifest().commit(); }
  absl::StatusOr<std::unique_ptr<CommittedModel>> ChangesSince(uint64_t since) {
    return ReadCommitChanges(*state_, state_->ReadManifest(newest()).value(), since);
  }
  std::unique_ptr<CommittedModel> WholeState() {
    ThreadPool pool(2);
    return ReadCommittedModel(*SavedRows::Open(files_, {folder_.path(), newest()}).value(), pool)
        .value();
  }
  bool HasBaseSince(uint64_t since) const {
    const auto& files = client_->manifest().files();
    return std::any_of(files.begin(), files.end(), [&](const v1::RowFile& file) {
      return file.base() && file.commit() > since;
    });
  }

  TempFolder folder_;
  LocalFileSystem files_;
  RestartableFleet fleet_;
  const std::unique_ptr<ParameterClient> client_;
  std::unique_ptr<server::StateFolder> state_;
};

// Three manifests are kept, so the changes of the last three commits are always known.
TEST_F(CommitChangesTest, AreThoseBetweenTwoStatesAlsoAcrossAMerge) {
  constexpr uint64_t kKept = 3;
  std::map<uint64_t, Rows> states;
  size_t across_a_merge = 0;
  for (uint64_t round = 1; round <= 12; ++round) {
    Commit(round);
    const std::unique_ptr<CommittedModel> whole = WholeState();
    const Rows now = states[newest()] = RowsOf(*whole);
    for (uint64_t since = newest() > kKept ? newest() - kKept : 1; since < newest(); ++since) {
      const auto changes = ChangesSince(since);
      ASSERT_TRUE(changes.ok()) << changes.status();
      ASSERT_NE(*changes, nullptr) << "commits " << since << " to " << newest();
      const Rows changed = RowsOf(**changes);
      for (const auto& [key, row] : changed) EXPECT_EQ(now.at(key), row);
      const Rows& before = states.at(since);
      for (const auto& [key, row] : now) {
        const auto old = before.find(key);
        const bool is_same = old != before.end() && old->second == row;
        EXPECT_TRUE(is_same || changed.count(key) == 1) << key.second;
      }
      EXPECT_LT(changed.size(), now.size());
      EXPECT_EQ((*changes)->PullDense(0).value(), whole->PullDense(0).value());
      EXPECT_EQ((*changes)->version().commit, newest());
      across_a_merge += HasBaseSince(since) ? 1 : 0;
    }
  }
  EXPECT_GT(across_a_merge, 5u);
}

TEST_F(CommitChangesTest, AreUnknownOnceTheMergedFilesAreGone) {
  for (uint64_t round = 1; round <= 8; ++round) Commit(round);
  ASSERT_TRUE(HasBaseSince(2));
  const auto changes = ChangesSince(2);
  ASSERT_TRUE(changes.ok()) << changes.status();
  EXPECT_EQ(*changes, nullptr);
}

TEST_F(CommitChangesTest, AreUnknownIfAllRowsWereReplaced) {
  for (uint64_t round = 1; round <= 3; ++round) Commit(round);
  ASSERT_EQ(client_->Clear(client_->committed_pass()), absl::OkStatus());
  Commit(4);  // with all rows of this state, of which there are none besides
  const auto changes = ChangesSince(3);
  ASSERT_TRUE(changes.ok()) << changes.status();
  EXPECT_EQ(*changes, nullptr);
  Commit(5);
  EXPECT_EQ(*ChangesSince(3), nullptr);
  EXPECT_NE(*ChangesSince(4), nullptr);
}

TEST_F(CommitChangesTest, AFileThatATrainingRemovesIsNoCorruptFile) {
  for (uint64_t round = 1; round <= 6; ++round) Commit(round);
  uint64_t since = newest() - 2;
  ASSERT_TRUE(HasBaseSince(since));
  const v1::Manifest older = state_->ReadManifest(newest() - 1)->manifest;
  std::string path;
  for (const v1::RowFile& file : older.files()) {
    if (file.commit() == newest() - 1) path = absl::StrCat(state_->data_path(), "/", file.name());
  }
  ASSERT_FALSE(path.empty());
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  EXPECT_EQ(KindOf(ChangesSince(since).status()), ErrorKind::kBadCheckpoint);
  std::filesystem::remove(path);
  const auto changes = ChangesSince(since);
  ASSERT_TRUE(changes.ok()) << changes.status();
  EXPECT_EQ(*changes, nullptr);
}

}  // namespace
}  // namespace cistern::app
