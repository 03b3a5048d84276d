// The effect of each call about a pass in each state.

#include "test/server/commit/commit_state_fixture.h"

namespace cistern::server {
namespace {

using ::testing::HasSubstr;

TEST_F(CommitStateTest, CommitWritesTheStagedValues) {
  ASSERT_TRUE(stage_.Begin(1, 2).ok());
  ASSERT_TRUE(stage_.Push(1, 0, 0, SparsePush({2, 4, 8})).ok());
  ASSERT_TRUE(stage_.Push(1, 1, 0, SparsePush({6, 10})).ok());
  ASSERT_TRUE(stage_.Push(1, 1, 1, SparsePush({6}, 1, 1)).ok());  // the same key, another table
  ASSERT_TRUE(stage_.Push(1, 1, 2, DensePush(0, 6, 0.5f)).ok());
  EXPECT_TRUE(Row(2).empty());  // absent before the commit
  ASSERT_TRUE(stage_.Seal(1, 0, 1).ok());
  ASSERT_TRUE(stage_.Seal(1, 1, 3).ok());
  uint64_t rows = 0;
  ASSERT_TRUE(Prepare(1, &rows).ok());
  EXPECT_EQ(rows, 3u + 2 + 1 + 6);
  EXPECT_TRUE(Row(2).empty());
  EXPECT_GT(stage_.staged_bytes(), 0u);
  ASSERT_TRUE(Commit(1).ok());
  EXPECT_EQ(stage_.committed(), 1u);
  EXPECT_EQ(stage_.open(), 0u);
  EXPECT_EQ(stage_.staged_bytes(), 0u);
  for (Key key : {2, 4, 6, 8, 10}) EXPECT_EQ(Row(key), TestValue(table().layout(), key, 1, true));
  EXPECT_EQ(store_.sparse_tables()[1]->counts().rows, 1u);
  std::vector<float> dense(12);
  ASSERT_TRUE(store_.dense_tables()[0]->Read(0, 6, dense.data()).ok());
  EXPECT_EQ(dense, std::vector<float>(12, 0.5f));
}

TEST_F(CommitStateTest, ReadyStateRefusesAllCallsExceptBeginAndAbort) {
  CommitEmptyPasses(3);
  uint64_t rows = 0;
  for (PassId pass : {0, 1, 2, 3, 4, 5}) {
    // This server may have lost the staging of a pass that is still to come; its worker starts the
    // pass again.
    const Code refused = pass > 3 ? Code::kAborted : Code::kFailedPrecondition;
    EXPECT_CODE(stage_.Push(pass, 0, 0, SparsePush({2})), refused) << pass;
    EXPECT_CODE(stage_.Seal(pass, 0, 0), refused) << pass;
    EXPECT_CODE(Prepare(pass, &rows), refused) << pass;
    EXPECT_CODE(Commit(pass), pass == 3 ? Code::kOk : refused) << pass;
    EXPECT_CODE(stage_.Abort(pass), Code::kOk) << pass;
  }
  for (PassId pass : {0, 2, 3, 5}) {
    const absl::Status status = stage_.Begin(pass);
    EXPECT_CODE(status, pass > 4 ? Code::kAborted : Code::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(absl::StrCat("pass ", pass)), HasSubstr("next is 4")));
  }
  EXPECT_TRUE(stage_.Begin(4).ok());
}

TEST_F(CommitStateTest, OpenPassRefusesOtherPassesAndCommit) {
  ASSERT_TRUE(stage_.Begin(1).ok());
  ASSERT_TRUE(stage_.Push(1, 0, 0, SparsePush({2})).ok());
  uint64_t rows = 0;
  for (PassId pass : {0, 2}) {
    EXPECT_CODE(stage_.Begin(pass), pass > 1 ? Code::kAborted : Code::kFailedPrecondition);
    EXPECT_CODE(stage_.Push(pass, 0, 1, SparsePush({4})), Code::kFailedPrecondition);
    EXPECT_CODE(stage_.Seal(pass, 0, 1), Code::kFailedPrecondition);
    EXPECT_CODE(Prepare(pass, &rows), Code::kFailedPrecondition);
    EXPECT_TRUE(stage_.Abort(pass).ok());
  }
  EXPECT_CODE(Commit(1), Code::kFailedPrecondition);
  EXPECT_EQ(stage_.open(), 1u);
  ASSERT_TRUE(stage_.Seal(1, 0, 1).ok());
  EXPECT_TRUE(PrepareAndCommit(1).ok());
  EXPECT_FALSE(Row(2).empty());
}

TEST_F(CommitStateTest, CallsMayBeRepeated) {
  ASSERT_TRUE(stage_.Begin(1).ok());
  ASSERT_TRUE(stage_.Push(1, 0, 0, SparsePush({2})).ok());
  ASSERT_TRUE(stage_.Begin(1).ok());  // drops nothing
  const uint64_t bytes = stage_.staged_bytes();
  ASSERT_TRUE(stage_.Push(1, 0, 0, SparsePush({2})).ok());
  EXPECT_EQ(stage_.staged_bytes(), bytes);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(stage_.Seal(1, 0, 1).ok());
  ASSERT_TRUE(stage_.Push(1, 0, 0, SparsePush({2})).ok());  // late, after the seal
  for (int i = 0; i < 2; ++i) {
    uint64_t rows = 0;
    ASSERT_TRUE(Prepare(1, &rows).ok());
    EXPECT_EQ(rows, 1u);
  }
  ASSERT_TRUE(stage_.Push(1, 0, 0, SparsePush({2})).ok());
  ASSERT_TRUE(stage_.Seal(1, 0, 1).ok());
  ASSERT_TRUE(stage_.Begin(1).ok());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Commit(1).ok());
  EXPECT_EQ(stage_.committed(), 1u);
  ASSERT_TRUE(stage_.Begin(2).ok());
  EXPECT_TRUE(Commit(1).ok());  // a late repeat
  EXPECT_EQ(stage_.open(), 2u);
}

TEST_F(CommitStateTest, SealNamesTheFirstMissingPush) {
  ASSERT_TRUE(stage_.Begin(1, 2).ok());
  EXPECT_CODE(stage_.Seal(1, 0, 1), Code::kAborted);
  for (uint64_t sequence : {4, 0, 2, 1}) {  // calls overtake each other
    ASSERT_TRUE(stage_.Push(1, 0, sequence, SparsePush({100 + 2 * sequence})).ok());
  }
  const absl::Status hole = stage_.Seal(1, 0, 5);
  EXPECT_CODE(hole, Code::kAborted);
  EXPECT_THAT(std::string(hole.message()), HasSubstr("push 3 of worker 0"));
  ASSERT_TRUE(stage_.Push(1, 0, 3, SparsePush({106})).ok());
  EXPECT_CODE(stage_.Seal(1, 0, 6), Code::kAborted);
  EXPECT_CODE(stage_.Seal(1, 0, 4), Code::kOutOfRange);  // more have arrived
  ASSERT_TRUE(stage_.Seal(1, 0, 5).ok());
  EXPECT_CODE(stage_.Push(1, 0, 5, SparsePush({200})), Code::kOutOfRange);
  EXPECT_TRUE(stage_.Seal(1, 1, 0).ok());  // a worker without rows on this server
  EXPECT_TRUE(PrepareAndCommit(1).ok());
  EXPECT_EQ(table().counts().rows, 5u);
}

TEST_F(CommitStateTest, PrepareNeedsEverySeal) {
  ASSERT_TRUE(stage_.Begin(1, 2).ok());
  ASSERT_TRUE(stage_.Push(1, 0, 0, SparsePush({2})).ok());
  ASSERT_TRUE(stage_.Push(1, 1, 0, SparsePush({4})).ok());
  ASSERT_TRUE(stage_.Seal(1, 0, 1).ok());
  uint64_t rows = 0;
  const absl::Status status = Prepare(1, &rows);
  EXPECT_CODE(status, Code::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("worker 1"));
  EXPECT_CODE(Commit(1), Code::kFailedPrecondition);
  ASSERT_TRUE(stage_.Seal(1, 1, 1).ok());
  EXPECT_TRUE(PrepareAndCommit(1).ok());
}

TEST_F(CommitStateTest, APassWithoutASealIsLost) {
  ASSERT_TRUE(stage_.Begin(1).ok());
  uint64_t rows = 0;
  EXPECT_CODE(Prepare(1, &rows), Code::kAborted);
  EXPECT_CODE(Commit(1), Code::kFailedPrecondition);
}

TEST_F(CommitStateTest, PreparedPassTakesNoNewPush) {
  ASSERT_TRUE(stage_.Begin(1).ok());
  ASSERT_TRUE(stage_.Seal(1, 0, 0).ok());
  uint64_t rows = 0;
  ASSERT_TRUE(Prepare(1, &rows).ok());
  EXPECT_CODE(stage_.Push(1, 0, 0, SparsePush({2})), Code::kOutOfRange);
  EXPECT_TRUE(Commit(1).ok());
  EXPECT_EQ(table().counts().rows, 0u);
}

TEST_F(CommitStateTest, AbortLeavesCommittedStateUnchanged) {
  ASSERT_TRUE(stage_.Begin(1).ok());
  ASSERT_TRUE(stage_.Push(1, 0, 0, SparsePush({2, 4}, 1)).ok());
  ASSERT_TRUE(stage_.Push(1, 0, 1, DensePush(0, 6, 1.0f)).ok());
  ASSERT_TRUE(stage_.Seal(1, 0, 2).ok());
  ASSERT_TRUE(PrepareAndCommit(1).ok());
  const uint64_t digest = Digest();
  for (bool prepare : {false, true}) {
    ASSERT_TRUE(stage_.Begin(2).ok());
    ASSERT_TRUE(stage_.Push(2, 0, 0, SparsePush({2, 6}, 2)).ok());
    ASSERT_TRUE(stage_.Push(2, 0, 1, DensePush(0, 6, 2.0f)).ok());
    ASSERT_TRUE(stage_.Seal(2, 0, 2).ok());
    uint64_t rows = 0;
    if (prepare) {
      ASSERT_TRUE(Prepare(2, &rows).ok());
    }
    ASSERT_TRUE(stage_.Abort(2).ok());
    EXPECT_EQ(stage_.open(), 0u);
    EXPECT_EQ(stage_.committed(), 1u);
    EXPECT_CODE(Commit(2), Code::kAborted);
  }
  EXPECT_EQ(Digest(), digest);
  // The pass begins again, with the same sequences and other contents.
  ASSERT_TRUE(stage_.Begin(2).ok());
  ASSERT_TRUE(stage_.Push(2, 0, 0, SparsePush({2, 6}, 3)).ok());
  ASSERT_TRUE(stage_.Seal(2, 0, 1).ok());
  ASSERT_TRUE(PrepareAndCommit(2).ok());
  EXPECT_NE(Digest(), digest);
}

// A store whose table expires rows by day needs the day of a pass, always the same one.
TEST(CommitState, PrepareNeedsTheDaysOfATableThatExpiresByThem) {
  ThreadPool pool(1);
  TableStore store(Map(4, 1), 0);
  v1::Schema schema;
  *schema.add_tables() = EmbeddingSpec(4, "deep");
  schema.mutable_tables(0)->mutable_bounds()->set_expire_days(2);
  ASSERT_EQ(store.Create(schema), absl::OkStatus());
  CommitState stage(&store, &pool, 1 << 20);
  ASSERT_EQ(stage.Begin(1), absl::OkStatus());
  ASSERT_EQ(stage.Seal(1, 0, 0), absl::OkStatus());
  CommitState::Prepared prepared;
  CommitState::PrepareOrder order;
  EXPECT_CODE(stage.Prepare(1, order, &prepared), Code::kInvalidArgument);
  order.days.add_days()->set_first_pass(2);
  EXPECT_CODE(stage.Prepare(1, order, &prepared), Code::kInvalidArgument);
  order.days.mutable_days(0)->set_first_pass(0);
  order.days.mutable_days(0)->set_day(100);
  ASSERT_EQ(stage.Prepare(1, order, &prepared), absl::OkStatus());
  ASSERT_EQ(stage.Prepare(1, order, &prepared), absl::OkStatus());
  CommitState::PrepareOrder later = order;
  later.days.mutable_days(0)->set_day(101);
  EXPECT_CODE(stage.Prepare(1, later, &prepared), Code::kFailedPrecondition);
  EXPECT_EQ(store.days().days_size(), 0);
  bool adopted = false;
  ASSERT_EQ(stage.Commit(1, 0, {}, &adopted), absl::OkStatus());
  EXPECT_EQ(store.days().SerializeAsString(), order.days.SerializeAsString());
}

TEST_F(CommitStateTest, AReplicaSkipsPassesAndRemovesRows) {
  ASSERT_EQ(stage_.Begin(1), absl::OkStatus());
  ASSERT_EQ(stage_.Push(1, 0, 0, SparsePush({2, 4, 6})), absl::OkStatus());
  StagedPush removal;
  removal.removal = true;
  removal.keys = std::vector<Key>{4, 100};
  EXPECT_CODE(stage_.Push(1, 0, 1, removal), Code::kInvalidArgument);  // not in a pass of training
  ASSERT_EQ(stage_.Seal(1, 0, 1), absl::OkStatus());
  ASSERT_EQ(PrepareAndCommit(1), absl::OkStatus());

  EXPECT_CODE(stage_.Begin(9), Code::kAborted);
  EXPECT_CODE(stage_.Begin(1, 1, /*replica=*/true), Code::kFailedPrecondition);
  ASSERT_EQ(stage_.Begin(9, 1, /*replica=*/true), absl::OkStatus());
  ASSERT_EQ(stage_.Begin(9, 1, /*replica=*/true), absl::OkStatus());
  EXPECT_CODE(stage_.Begin(9), Code::kAborted);
  EXPECT_CODE(stage_.Begin(2), Code::kFailedPrecondition);
  EXPECT_CODE(stage_.Begin(8, 1, /*replica=*/true), Code::kFailedPrecondition);
  StagedPush foreign = removal;
  foreign.keys = std::vector<Key>{3};
  EXPECT_CODE(stage_.Push(9, 0, 0, foreign), Code::kOutOfRange);
  ASSERT_EQ(stage_.Push(9, 0, 0, removal), absl::OkStatus());
  ASSERT_EQ(stage_.Push(9, 0, 1, SparsePush({6}, 2)), absl::OkStatus());
  ASSERT_EQ(stage_.Seal(9, 0, 2), absl::OkStatus());
  EXPECT_FALSE(Row(4).empty());
  ASSERT_EQ(PrepareAndCommit(9), absl::OkStatus());
  EXPECT_EQ(stage_.committed(), 9u);
  EXPECT_TRUE(Row(4).empty());
  EXPECT_FALSE(Row(2).empty());
  EXPECT_EQ(Row(6), TestValue(table().layout(), 6, 2, true));
  EXPECT_EQ(table().removed().evicted + table().removed().expired, 0u);  // by bounds
  EXPECT_TRUE(stage_.Begin(10).ok());
}

TEST_F(CommitStateTest, AKeyIsPushedOrRemovedNotBoth) {
  ASSERT_EQ(stage_.Begin(1, 1, /*replica=*/true), absl::OkStatus());
  StagedPush removal;
  removal.removal = true;
  removal.keys = std::vector<Key>{8, 4};
  ASSERT_EQ(stage_.Push(1, 0, 0, removal), absl::OkStatus());
  ASSERT_EQ(stage_.Push(1, 0, 1, SparsePush({2, 4})), absl::OkStatus());
  ASSERT_EQ(stage_.Seal(1, 0, 2), absl::OkStatus());
  uint64_t rows = 0;
  EXPECT_CODE(Prepare(1, &rows), Code::kInvalidArgument);
}

TEST_F(CommitStateTest, ResetCommitsThePassOfALoad) {
  ASSERT_TRUE(stage_.Begin(1).ok());
  ASSERT_TRUE(stage_.Push(1, 0, 0, SparsePush({2})).ok());
  stage_.Reset(41);
  EXPECT_EQ(stage_.committed(), 41u);
  EXPECT_EQ(stage_.open(), 0u);
  EXPECT_EQ(stage_.staged_bytes(), 0u);
  EXPECT_TRUE(stage_.Begin(42).ok());
}

// A caller that continues a pass from before the restart has lost it, whatever its number: a load
// or a clear also produces passes with numbers below the recovered one.
TEST_F(CommitStateTest, PassesFromBeforeARecoveryAreLostNotOver) {
  stage_.Recovered(41);
  EXPECT_EQ(stage_.committed(), 41u);
  uint64_t rows = 0;
  for (const PassId pass : {1, 40, 41}) {
    EXPECT_CODE(stage_.Begin(pass), Code::kAborted);
    EXPECT_CODE(stage_.Push(pass, 0, 0, SparsePush({2})), Code::kAborted);
    EXPECT_CODE(stage_.Seal(pass, 0, 1), Code::kAborted);
    EXPECT_CODE(Prepare(pass, &rows), Code::kAborted);
  }
  // Passes of this process are over.
  ASSERT_TRUE(stage_.Begin(42).ok());
  EXPECT_CODE(stage_.Push(41, 0, 0, SparsePush({2})), Code::kAborted);
  ASSERT_TRUE(stage_.Push(42, 0, 0, SparsePush({2})).ok());
  ASSERT_TRUE(stage_.Seal(42, 0, 1).ok());
  ASSERT_TRUE(PrepareAndCommit(42).ok());
  EXPECT_CODE(stage_.Begin(42), Code::kFailedPrecondition);
  EXPECT_CODE(stage_.Push(42, 0, 1, SparsePush({4})), Code::kFailedPrecondition);
}

}  // namespace
}  // namespace cistern::server
