// Pushes to a pass: which are refused, repeated, summed, and in conflict.
#include <limits>
#include <thread>

#include "test/server/commit/commit_state_fixture.h"

namespace cistern::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(CommitStateTest, RefusesARepeatWithOtherContents) {
  ASSERT_TRUE(stage_.Begin(1, 2).ok());
  ASSERT_TRUE(stage_.Seal(1, 0, 0).ok());
  ASSERT_TRUE(stage_.Push(1, 1, 0, SparsePush({2}, 1)).ok());
  const absl::Status status = stage_.Push(1, 1, 0, SparsePush({2}, 2));
  EXPECT_CODE(status, Code::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("push 0"), HasSubstr("worker 1")));
  ASSERT_TRUE(stage_.Seal(1, 1, 1).ok());
  ASSERT_TRUE(PrepareAndCommit(1).ok());
  EXPECT_EQ(Row(2), TestValue(table().layout(), 2, 1, true));
}

TEST_F(CommitStateTest, AcceptsAWindowOfSequencesAheadOfAHole) {
  ASSERT_TRUE(stage_.Begin(1).ok());
  EXPECT_TRUE(stage_.Push(1, 0, Staging::kWindow - 1, SparsePush({2})).ok());
  EXPECT_CODE(stage_.Push(1, 0, Staging::kWindow, SparsePush({4})), Code::kAborted);
  EXPECT_CODE(stage_.Push(1, 0, ~uint64_t{0}, SparsePush({4})), Code::kAborted);
  EXPECT_TRUE(stage_.Push(1, 0, 0, SparsePush({6})).ok());
  EXPECT_TRUE(stage_.Push(1, 0, Staging::kWindow, SparsePush({4})).ok());
}

TEST_F(CommitStateTest, PrepareNamesAKeyInTwoPushes) {
  ASSERT_TRUE(stage_.Begin(1, 2).ok());
  ASSERT_TRUE(stage_.Push(1, 0, 0, SparsePush({2, 40})).ok());
  ASSERT_TRUE(stage_.Push(1, 1, 0, SparsePush({4, 40, 6})).ok());
  ASSERT_TRUE(stage_.Seal(1, 0, 1).ok());
  ASSERT_TRUE(stage_.Seal(1, 1, 1).ok());
  uint64_t rows = 0;
  const absl::Status status = Prepare(1, &rows);
  EXPECT_CODE(status, Code::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("'deep'"), HasSubstr("key 40")));
  EXPECT_CODE(Commit(1), Code::kFailedPrecondition);
  EXPECT_TRUE(stage_.Abort(1).ok());
}

TEST_F(CommitStateTest, PrepareNamesADenseRowInTwoPushes) {
  ASSERT_TRUE(stage_.Begin(1).ok());
  ASSERT_TRUE(stage_.Push(1, 0, 0, DensePush(0, 3, 1.0f)).ok());
  ASSERT_TRUE(stage_.Push(1, 0, 1, DensePush(2, 2, 1.0f)).ok());
  ASSERT_TRUE(stage_.Seal(1, 0, 2).ok());
  uint64_t rows = 0;
  const absl::Status status = Prepare(1, &rows);
  EXPECT_CODE(status, Code::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("'mlp'"), HasSubstr("row 2")));
}

TEST_F(CommitStateTest, CommitAppliesTheRuleToTheSumOfGradients) {
  StagedPush push = DensePush(0, 6, 1.0f);
  push.table = 1;
  push.values = std::vector<float>{0, 1, 2, 3, 4, 5};
  ASSERT_TRUE(stage_.Begin(1).ok());
  ASSERT_TRUE(stage_.Push(1, 0, 0, push).ok());
  ASSERT_TRUE(stage_.Seal(1, 0, 1).ok());
  ASSERT_TRUE(PrepareAndCommit(1).ok());

  push.gradient = true;
  push.values = std::vector<float>(6, 0.5f);
  ASSERT_TRUE(stage_.Begin(2, 2).ok());
  for (const uint32_t worker : {0, 1}) {
    ASSERT_TRUE(stage_.Push(2, worker, 0, push).ok());
    ASSERT_TRUE(stage_.Seal(2, worker, 1).ok());
  }
  uint64_t rows = 0;
  ASSERT_TRUE(Prepare(2, &rows).ok());
  EXPECT_EQ(rows, 6u);
  ASSERT_TRUE(Commit(2).ok());
  std::vector<float> values(6);
  ASSERT_TRUE(store_.dense_tables()[1]->Read(0, 6, values.data()).ok());
  EXPECT_EQ(values, (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST_F(CommitStateTest, GradientsNeedATableWithARule) {
  StagedPush push = DensePush(0, 3, 1.0f);
  push.gradient = true;
  ASSERT_TRUE(stage_.Begin(1).ok());
  EXPECT_CODE(stage_.Push(1, 0, 0, push), Code::kInvalidArgument);
  push.table = 1;
  push.values = std::vector<float>(7);  // rows 0 to 6: one too many for this server
  EXPECT_CODE(stage_.Push(1, 0, 0, push), Code::kOutOfRange);
}

TEST_F(CommitStateTest, RefusedPushesLeaveNoTrace) {
  ASSERT_TRUE(stage_.Begin(1).ok());
  EXPECT_CODE(stage_.Push(1, 0, 0, SparsePush({2, 3})), Code::kOutOfRange);  // server 1's
  StagedPush push = SparsePush({2});
  push.table = 9;
  EXPECT_CODE(stage_.Push(1, 0, 0, push), Code::kInvalidArgument);
  push = SparsePush({2});
  push.values = With(push.values, [](auto& values) { values.pop_back(); });
  EXPECT_CODE(stage_.Push(1, 0, 0, push), Code::kInvalidArgument);
  push = SparsePush({2});
  push.has_embedx = {};
  EXPECT_CODE(stage_.Push(1, 0, 0, push), Code::kInvalidArgument);
  push = SparsePush({2});
  push.has_embedx = std::vector<uint8_t>{0xFF};
  EXPECT_CODE(stage_.Push(1, 0, 0, push), Code::kInvalidArgument);
  push = SparsePush({2, 4, 6});
  push.values = With(push.values,
                     [](auto& values) { values[4 + 1] = std::numeric_limits<float>::quiet_NaN(); });
  absl::Status status = stage_.Push(1, 0, 0, push);
  EXPECT_CODE(status, Code::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("key 4"), HasSubstr("cell 1")));
  push = DensePush(2, 2, 1.0f);
  push.values =
      With(push.values, [](auto& values) { values[3] = std::numeric_limits<float>::infinity(); });
  status = stage_.Push(1, 0, 0, push);
  EXPECT_CODE(status, Code::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("row 3"), HasSubstr("cell 1")));
  EXPECT_CODE(stage_.Push(1, 0, 0, DensePush(5, 2, 1.0f)), Code::kOutOfRange);
  push = DensePush(0, 2, 1.0f);
  push.values = With(push.values, [](auto& values) { values.pop_back(); });
  EXPECT_CODE(stage_.Push(1, 0, 0, push), Code::kInvalidArgument);
  push.table = 2;
  EXPECT_CODE(stage_.Push(1, 0, 0, push), Code::kInvalidArgument);

  EXPECT_EQ(stage_.staged_bytes(), 0u);
  EXPECT_TRUE(stage_.Seal(1, 0, 0).ok());  // nothing was staged
  EXPECT_TRUE(PrepareAndCommit(1).ok());
}

TEST_F(CommitStateTest, StagesUpToItsByteLimit) {
  ASSERT_TRUE(stage_.Begin(1).ok());
  std::vector<Key> keys(30000);  // 25 bytes each
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = 2 * i;
  const StagedPush first = SparsePush(keys);
  ASSERT_TRUE(stage_.Push(1, 0, 0, first).ok());
  const uint64_t bytes = stage_.staged_bytes();
  EXPECT_GE(bytes, 750000u);
  for (Key& key : keys) key += 100000;
  EXPECT_CODE(stage_.Push(1, 0, 1, SparsePush(keys)), Code::kResourceExhausted);
  EXPECT_EQ(stage_.staged_bytes(), bytes);
  EXPECT_TRUE(stage_.Push(1, 0, 0, first).ok());  // a repeat needs no room
  keys.resize(5000);
  EXPECT_TRUE(stage_.Push(1, 0, 1, SparsePush(keys)).ok());
  ASSERT_TRUE(stage_.Abort(1).ok());
  EXPECT_EQ(stage_.staged_bytes(), 0u);
}

// The state is the same for every order and interleaving of pushes.
TEST_F(CommitStateTest, ConcurrentPushesOfManyWorkersCommitCompletely) {
  constexpr uint32_t kWorkers = 4;
  constexpr uint64_t kPushes = 20;
  constexpr Key kKeys = 50;
  ASSERT_TRUE(stage_.Begin(1, kWorkers).ok());
  std::vector<std::thread> workers;
  for (uint32_t worker = 0; worker < kWorkers; ++worker) {
    workers.emplace_back([this, worker] {
      for (uint64_t i = 0; i < kPushes; ++i) {
        const uint64_t sequence = worker % 2 == 0 ? i : kPushes - 1 - i;
        std::vector<Key> keys;
        for (Key k = 0; k < kKeys; ++k) {
          keys.push_back(2 * ((worker * kPushes + sequence) * kKeys + k));
        }
        // Twice, as a client does when the first answer is lost.
        EXPECT_TRUE(stage_.Push(1, worker, sequence, SparsePush(keys)).ok());
        EXPECT_TRUE(stage_.Push(1, worker, sequence, SparsePush(keys)).ok());
      }
      EXPECT_TRUE(stage_.Seal(1, worker, kPushes).ok());
    });
  }
  for (std::thread& worker : workers) worker.join();
  uint64_t rows = 0;
  ASSERT_TRUE(Prepare(1, &rows).ok());
  EXPECT_EQ(rows, kWorkers * kPushes * kKeys);
  ASSERT_TRUE(Commit(1).ok());

  auto expected = Table(EmbeddingSpec(4, "deep"), Map(4, 2));
  Rows all;
  for (Key key = 0; key < 2 * kWorkers * kPushes * kKeys; key += 2) {
    all.Add(key, TestValue(expected->layout(), key, 1, true), true);
  }
  expected->Write({all.block()}, pool_);
  EXPECT_EQ(*table().Digest(), *expected->Digest());
}

TEST_F(CommitStateTest, RefusesWorkersBeyondTheNumberThatBeganThePass) {
  ASSERT_TRUE(stage_.Begin(1, 2).ok());
  for (const uint32_t worker : {2u, 9u, ~0u}) {
    EXPECT_CODE(stage_.Push(1, worker, 0, SparsePush({2})), Code::kInvalidArgument);
    EXPECT_CODE(stage_.Seal(1, worker, 0), Code::kInvalidArgument);
  }
  EXPECT_EQ(stage_.staged_bytes(), 0u);
  EXPECT_CODE(stage_.Begin(1, 3), Code::kFailedPrecondition);
  EXPECT_TRUE(stage_.Begin(1, 2).ok());
  EXPECT_CODE(stage_.Begin(2, kMaxWorkers + 1), Code::kInvalidArgument);
}

TEST_F(CommitStateTest, EveryWorkerSealsBeforeThePassIsPrepared) {
  ASSERT_TRUE(stage_.Begin(1, 2).ok());
  ASSERT_TRUE(stage_.Push(1, 0, 0, SparsePush({2})).ok());
  ASSERT_TRUE(stage_.Seal(1, 0, 1).ok());
  uint64_t rows = 0;
  const absl::Status status = Prepare(1, &rows);
  EXPECT_EQ(status.code(), Code::kAborted);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("worker 1 has not sealed"));
  ASSERT_TRUE(stage_.Seal(1, 1, 0).ok());
  EXPECT_TRUE(PrepareAndCommit(1).ok());
}

}  // namespace
}  // namespace cistern::server
