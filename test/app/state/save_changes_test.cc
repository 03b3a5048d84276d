// Increments: whatever a fleet did between two states, the earlier one and the increments are the
// later one, bit by bit.
#include "app/state/save_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "app/fleet/held_model.h"
#include "app/fleet/load_increments.h"
#include "app/state/apply_changes.h"
#include "app/state/state_diff.h"
#include "common/saved_model/increment.h"
#include "test/app/state/saved_states.h"

namespace cistern::app {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class SaveChangesTest : public SavedStates {
 protected:
  std::string At(const std::string& name) const { return folder_ / name; }
  std::string NewFolder() { return At(absl::StrCat("increment-", ++folders_)); }

  // Loads a saved model into an empty fleet.
  static void Load(ParameterClient& client, const std::string& name) {
    v1::LoadRequest request;
    request.set_name(name);
    v1::LoadReply reply;
    ASSERT_EQ(client.Load(request, &reply), absl::OkStatus());
  }
  void ExpectSame(const std::string& a, const std::string& b) {
    const absl::StatusOr<DiffResult> diff = Diff({a, b}, {});
    ASSERT_TRUE(diff.ok()) << diff.status();
    EXPECT_TRUE(diff->same()) << a << " and " << b;
  }
  // Commits keys 1, 2, 3 of table deep; saves them as "base"; changes the row of 2 and adds 9.
  void MakeTwoCommits(ParameterClient& client) {
    ASSERT_EQ(CommitKeys(client, std::vector<Key>{1, 2, 3}), absl::OkStatus());
    Save(client, "base");
    ASSERT_EQ(client.BeginPass(), absl::OkStatus());
    const std::vector<Key> keys = {2, 9};
    std::vector<float> values = ValuesOf(keys, client.layout(kDeep).full_floats());
    values[0] += 1;
    const std::vector<uint8_t> has_embedx = {1, 1};
    ASSERT_EQ(client.Push(kDeep, keys, values.data(), has_embedx.data()), absl::OkStatus());
    ASSERT_EQ(client.CommitPass(), absl::OkStatus());
  }

  int folders_ = 0;
  uint64_t compared_ = 0, removed_ = 0, removed_by_bounds_ = 0;
};

TEST_F(SaveChangesTest, HoldTheRowsThatChanged) {
  RestartableFleet fleet = Fleet(2);
  auto client = Writer(fleet.Links());
  MakeTwoCommits(*client);
  LocalFileSystem files;
  for (const std::vector<std::string>& since :
       {std::vector<std::string>{"1"}, std::vector<std::string>{At("base")}}) {
    const std::string out = NewFolder();
    const auto saved = SaveChanges({folder_.path(), since, out, {}}, {});
    ASSERT_TRUE(saved.ok()) << saved.status();
    EXPECT_EQ(saved->rows, 2);
    EXPECT_EQ(saved->removed, 0);
    EXPECT_FALSE(saved->compared);
    EXPECT_EQ(saved->increment.from().commit(), 1);
    EXPECT_EQ(saved->increment.to().commit(), 2);
    std::vector<Key> keys;
    ASSERT_EQ(ReadIncrementRows(files, out, ReadIncrement(files, out).value(), kDeep,
                                [&](Key key, const float*, bool) {
                                  keys.push_back(key);
                                  return absl::OkStatus();
                                }),
              absl::OkStatus());
    EXPECT_THAT(keys, ::testing::UnorderedElementsAre(2, 9));
  }
}

TEST_F(SaveChangesTest, AreAppliedOnceAndInOrder) {
  RestartableFleet fleet = Fleet(1);
  auto client = Writer(fleet.Links());
  MakeTwoCommits(*client);
  const std::string first = NewFolder(), second = NewFolder();
  ASSERT_TRUE(SaveChanges({folder_.path(), {"1"}, first, {}}, {}).ok());
  ASSERT_EQ(CommitKeys(*client, std::vector<Key>{3, 20}), absl::OkStatus());
  ASSERT_TRUE(SaveChanges({folder_.path(), {first}, second, {}}, {}).ok());
  const auto apply = [&](const std::string& base, const std::vector<std::string>& increments) {
    return ApplyChanges({base, increments, NewFolder()}, {});
  };
  EXPECT_EQ(apply(At("base"), {first, second})->applied, 2);
  EXPECT_EQ(apply(folder_.path() + "@2", {first, second})->applied, 1);
  EXPECT_EQ(apply(folder_.path() + "@3", {first, second})->applied, 0);
  // A gap, and a wrong order.
  const absl::Status gap = apply(At("base"), {second}).status();
  EXPECT_EQ(gap.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(gap.message(), HasSubstr("changes the rows of commit 2"));
  const absl::Status order = apply(At("base"), {second, first}).status();
  EXPECT_EQ(order.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(order.message(), HasSubstr("does not continue"));
  EXPECT_NE(FixOf(order), "");
}

TEST_F(SaveChangesTest, ACorruptFileIsNoticedAndLeavesNothing) {
  RestartableFleet fleet = Fleet(1);
  auto client = Writer(fleet.Links());
  MakeTwoCommits(*client);
  const std::string changes = NewFolder();
  ASSERT_TRUE(SaveChanges({folder_.path(), {"1"}, changes, {}}, {}).ok());
  for (const fs::path& file :
       {fs::path(changes) / "deep/rows", fs::path(changes) / kIncrementName}) {
    const std::string whole = ReadBytes(file);
    FlipAByte(file);
    const std::string out = NewFolder();
    const absl::Status applied = ApplyChanges({At("base"), {changes}, out}, {}).status();
    EXPECT_EQ(KindOf(applied), ErrorKind::kBadCheckpoint) << applied;
    EXPECT_THAT(applied.message(), HasSubstr(file.filename().string()));
    EXPECT_FALSE(fs::exists(out));
    WriteBytes(file, whole);
  }
}

TEST_F(SaveChangesTest, AreRefusedForAnotherTraining) {
  RestartableFleet fleet = Fleet(1);
  auto client = Writer(fleet.Links());
  MakeTwoCommits(*client);
  // The same commit numbers and other rows: the files of these commits must not be believed.
  const TempFolder other;
  server::ServerOptions options;
  options.data_dir = other.path();
  options.shard_num = 8;
  RestartableFleet strangers(1, options);
  auto stranger = Writer(strangers.Links());
  ASSERT_EQ(CommitKeys(*stranger, std::vector<Key>{5}), absl::OkStatus());
  Save(*stranger, "theirs");
  const std::string out = NewFolder();
  const auto saved = SaveChanges({folder_.path(), {other / "theirs"}, out, {}}, {});
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_TRUE(saved->compared);
  EXPECT_EQ(saved->removed, 1);
  ASSERT_TRUE(ApplyChanges({other / "theirs", {out}, At("joined")}, {}).ok());
  ExpectSame(At("joined"), folder_.path());
}

TEST_F(SaveChangesTest, WhatIsNotKnownAnyMoreIsRefused) {
  RestartableFleet fleet = Fleet(1);
  auto client = Writer(fleet.Links());
  ASSERT_EQ(server::CommitRound(*client, 1), absl::OkStatus());
  const std::string first = NewFolder();
  ASSERT_EQ(server::CommitRound(*client, 2), absl::OkStatus());
  ASSERT_TRUE(SaveChanges({folder_.path(), {"1"}, first, {}}, {}).ok());
  ASSERT_EQ(Shrink(*client), absl::OkStatus());  // the next commit writes all rows
  ASSERT_EQ(server::CommitRound(*client, 3), absl::OkStatus());
  const std::string out = NewFolder();
  const absl::Status saved = SaveChanges({folder_.path(), {first}, out, {}}, {}).status();
  EXPECT_EQ(saved.code(), absl::StatusCode::kFailedPrecondition) << saved;
  EXPECT_THAT(FixOf(saved), HasSubstr("whole saved model and all increments"));
  EXPECT_FALSE(fs::exists(out));
}

// A writer of tables that keep the rows of two passes or three days, or 90 rows.
std::unique_ptr<ParameterClient> BoundedWriter(std::vector<ServerLink> links, bool by_day,
                                               const uint32_t* clock) {
  v1::Schema schema = TestSchema();
  v1::TableBounds* const ctr = schema.mutable_tables(kCtr)->mutable_bounds();
  by_day ? ctr->set_expire_days(3) : ctr->set_expire_passes(2);
  schema.mutable_tables(kDeep)->mutable_bounds()->set_max_rows(90);
  ClientOptions options;
  options.today = [clock] { return *clock; };
  auto client = Connected(std::move(links), options);
  EXPECT_EQ(client->CreateTables(schema), absl::OkStatus());
  EXPECT_EQ(client->ClaimTerm(), absl::OkStatus());
  return client;
}

// Random histories of fleets of 1 to 4 servers, with merges of files, shrinks and cleared tables,
// with and without bounds; increments from commits, from saved models with increments, and from
// increments alone. They are applied on disk and on the servers of another fleet, which then goes
// on as the first one does.
TEST_F(SaveChangesTest, ABaseAndItsIncrementsAreTheWholeState) {
  // Even seeds also shrink and clear, those above 8 have bounds, every fourth has rows in files.
  for (const uint64_t seed : {1, 2, 3, 4, 8, 9, 10, 12, 15, 16}) {
    const bool is_bounded = seed > 8, by_day = seed % 3 == 0;
    uint32_t clock = 20000;
    SCOPED_TRACE(seed);
    std::mt19937_64 draw(seed);
    const TempFolder folder;
    server::ServerOptions options;
    options.data_dir = folder.path();
    options.shard_num = 8;
    options.compact_min_bytes = draw() % 2 == 0 ? 1 : uint64_t{1} << 30;
    options.memory_limit_bytes = seed % 4 == 0 ? 1 : 0;  // rows in files
    const uint32_t server_num = 1 + seed % 4;
    RestartableFleet fleet(server_num, options);
    auto client = is_bounded ? BoundedWriter(fleet.Links(), by_day, &clock) : Writer(fleet.Links());
    ASSERT_EQ(server::CommitRound(*client, 1), absl::OkStatus());
    Save(*client, "base");
    std::vector<std::string> chain = {folder / "base"};
    uint64_t saved_at = client->manifest().commit(), compared = 0, removed = 0;
    for (uint64_t round = 2; round < 14; ++round) {
      const uint64_t what = seed % 2 == 0 ? draw() % 8 : 7;  // of odd seeds, only bounds remove
      absl::Status changed;
      if (what == 0) changed = Shrink(*client);
      if (what == 1) changed = client->Clear(client->committed_pass());
      ASSERT_EQ(changed, absl::OkStatus());
      clock += draw() % 3;
      ASSERT_EQ(server::CommitRound(*client, 1 + draw() % 9), absl::OkStatus());
      if (draw() % 3 == 0) continue;
      v1::SaveFormat format;
      format.set_kind(draw() % 2 == 0 ? v1::SaveFormat::TEXT : v1::SaveFormat::BINARY);
      format.set_gzip(draw() % 2 == 0);
      const std::string out = folder / absl::StrCat("changes-", round);
      std::vector<std::string> since = chain;
      if (draw() % 3 == 0) since = {chain.back()};
      if (draw() % 3 == 0) since = {absl::StrCat(saved_at)};
      absl::StatusOr<SavedChanges> saved = SaveChanges({folder.path(), since, out, format}, {});
      if (!saved.ok()) {  // too long ago: only the comparison is left
        EXPECT_NE(FixOf(saved.status()), "") << saved.status();
        EXPECT_FALSE(fs::exists(out));
        saved = SaveChanges({folder.path(), chain, out, format}, {});
      }
      ASSERT_TRUE(saved.ok()) << saved.status();
      compared += saved->compared ? 1 : 0;
      removed += saved->removed;
      chain.push_back(out);
      saved_at = client->manifest().commit();
    }
    EXPECT_GT(chain.size(), 3u);
    compared_ += compared;
    removed_ += removed;
    const std::string latest = absl::StrCat(folder.path(), "@", saved_at);
    const std::vector<std::string> increments(chain.begin() + 1, chain.end());
    const auto applied = ApplyChanges({chain[0], increments, folder / "joined"}, {});
    ASSERT_TRUE(applied.ok()) << applied.status();
    Save(*client, "whole");
    const auto last = SaveChanges({folder.path(), {folder / "joined"}, folder / "last", {}}, {});
    ASSERT_TRUE(last.ok()) << last.status();
    ASSERT_TRUE(ApplyChanges({folder / "joined", {folder / "last"}, folder / "end"}, {}).ok());
    ExpectSame(folder / "end", folder / "whole");

    // Another fleet, with another number of servers, some of whose rows may be in files.
    options.memory_limit_bytes = seed % 4 == 1 ? 1 : 0;
    const TempFolder elsewhere;
    fs::copy(folder / "base", elsewhere / "base", fs::copy_options::recursive);
    options.data_dir = elsewhere.path();
    RestartableFleet standby(1 + (seed + 1) % 4, options);
    auto follower =
        is_bounded ? BoundedWriter(standby.Links(), by_day, &clock) : Writer(standby.Links());
    clock += 7;
    Load(*follower, "base");
    LocalFileSystem files;
    const auto loaded = LoadIncrements(files, *follower, increments, {});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_TRUE(SameRows(StateOn(*follower).value(), applied->state));
    Save(*follower, "followed");
    ExpectSame(elsewhere / "followed", folder / "joined");
    // Once more: there is nothing to do.
    EXPECT_EQ(LoadIncrements(files, *follower, increments, {})->applied, 0);
    ASSERT_TRUE(LoadIncrements(files, *follower, {folder / "last"}, {}).ok());
    // Servers that restart recover what they hold now.
    for (size_t rank = 0; rank < standby.size(); ++rank) {
      ASSERT_EQ(standby.Restart(rank), absl::OkStatus());
    }
    ASSERT_EQ(follower->ClaimTerm(), absl::OkStatus());
    for (uint64_t round = 14; round < 20; ++round) {
      EXPECT_TRUE(SameRows(StateOn(*follower).value(), StateOn(*client).value())) << round;
      EXPECT_EQ(follower->committed_pass(), client->committed_pass());
      clock += round % 2;
      for (ParameterClient* const either : {client.get(), follower.get()}) {
        ASSERT_EQ(server::CommitRound(*either, 1 + (seed + round) % 9), absl::OkStatus());
      }
    }
    if (is_bounded) {
      EXPECT_GT(removed, 0u);
      removed_by_bounds_ += compared == 0 ? removed : 0;
    }
  }
  // All kinds of history occurred.
  EXPECT_GT(compared_, 0u);
  EXPECT_GT(removed_, 0u);
  EXPECT_GT(removed_by_bounds_, 0u);  // as the row files tell it
}

}  // namespace
}  // namespace cistern::app
