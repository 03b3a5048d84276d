// Two states, compared row by row.
#include "app/state/state_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "test/app/state/saved_states.h"

namespace cistern::app {
namespace {

class StateDiff : public SavedStates {
 protected:
  // Commits keys 1, 2, 3 and saves them as "one"; then changes the row of 2 and adds 9.
  void MakeTwoCommits() {
    RestartableFleet fleet = Fleet(2);
    auto client = Writer(fleet.Links());
    ASSERT_EQ(CommitKeys(*client, std::vector<Key>{1, 2, 3}), absl::OkStatus());
    Save(*client, "one");
    ASSERT_EQ(client->BeginPass(), absl::OkStatus());
    const std::vector<Key> keys = {2, 9};
    std::vector<float> values = ValuesOf(keys, client->layout(kDeep).full_floats());
    values[0] += 1;
    const std::vector<uint8_t> has_embedx = {1, 1};
    ASSERT_EQ(client->Push(kDeep, keys, values.data(), has_embedx.data()), absl::OkStatus());
    ASSERT_EQ(client->CommitPass(), absl::OkStatus());
  }
};

TEST_F(StateDiff, ComparesRowsBitByBit) {
  MakeTwoCommits();
  for (const std::string& a : {folder_.path() + "@1", folder_ / "one"}) {
    const absl::StatusOr<DiffResult> result = Diff({a, folder_ / "state"}, {});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_FALSE(result->same());
    const DiffResult::Table& deep = result->tables[1];
    EXPECT_EQ(deep.name, "deep");
    EXPECT_EQ(deep.rows.rows_a, 3);
    EXPECT_EQ(deep.rows.rows_b, 4);
    EXPECT_EQ(deep.rows.added_keys, std::vector<Key>{9});
    EXPECT_EQ(deep.rows.changed_keys, std::vector<Key>{2});
    EXPECT_EQ(deep.rows.removed, 0);
    EXPECT_NE(deep.rows.digest_a, deep.rows.digest_b);
  }
  const absl::StatusOr<DiffResult> same = Diff({folder_.path() + "@1", folder_ / "one"}, {});
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_TRUE(same->same());
}

TEST_F(StateDiff, ListsAtMostTheKeysThatAreAskedFor) {
  MakeTwoCommits();
  const absl::StatusOr<DiffResult> result = Diff({folder_.path() + "@1", folder_.path(), 0}, {});
  ASSERT_TRUE(result.ok()) << result.status();
  const nlohmann::ordered_json json = JsonOf(*result);
  EXPECT_EQ(json["same"], false);
  EXPECT_EQ(json["tables"][1]["added"], 1);
  EXPECT_TRUE(json["tables"][1]["added_keys"].empty());
}

TEST_F(StateDiff, CountsItsPartsAndEndsWhenItIsAsked) {
  MakeTwoCommits();
  const DiffOptions options = {folder_.path() + "@1", folder_.path()};
  std::vector<Amount> amounts;
  std::atomic<bool> stop{false};
  JobCalls calls;
  calls.amount = [&](const Amount& amount) { amounts.push_back(amount); };
  calls.stop = &stop;
  ASSERT_TRUE(Diff(options, calls).ok());
  EXPECT_EQ(amounts.back().done, 8);  // one part a shard
  EXPECT_EQ(amounts.back().total, 8);
  calls.amount = [&](const Amount& amount) { stop = amount.done == 2; };
  EXPECT_EQ(Diff(options, calls).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(StateDiff, NamesAPlaceThatIsNone) {
  const absl::Status status = Diff({folder_.path(), folder_.path()}, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(FixOf(status), testing::HasSubstr("saved model"));
}

}  // namespace
}  // namespace cistern::app
