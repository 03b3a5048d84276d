#include "server/pass/pass_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "server/pass/staging.h"
#include "test/server/table_specs.h"

namespace cistern {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Code = absl::StatusCode;

// A server of one table of embeddings (4 cells), one of ctr values and a dense one (10 rows of 2
// columns); server 0 of 2 with 4 shards, so it owns even keys and dense rows 0 to 5.
class PassStageTest : public testing::Test {
 protected:
  PassStageTest() : pool_(2), store_(Map(4, 2), 0), stage_(&store_, &pool_, 1 << 20) {
    v1::Schema schema;
    *schema.add_tables() = EmbeddingSpec(4, "deep");
    *schema.add_tables() = CtrSpec(8, "ctr");
    v1::DenseTableSpec* dense = schema.add_dense_tables();
    dense->set_name("mlp");
    dense->set_rows(10);
    for (const char* column : {"weight", "state"}) dense->add_columns(column);
    *schema.add_dense_tables() = *dense;  // one column that gradients are added to
    dense = schema.mutable_dense_tables(1);
    dense->set_name("sums");
    dense->mutable_columns()->DeleteSubrange(1, 1);
    dense->set_columns(0, "w");
    dense->mutable_rule()->set_kind(v1::DenseRule::SUM);
    CISTERN_CHECK(store_.Create(schema).ok());
  }

  SparseTable& table() { return *store_.sparse_tables()[0]; }

  StagedPush SparsePush(const std::vector<Key>& keys, int version = 1, TableId id = 0) {
    StagedPush push;
    push.table = id;
    push.keys = keys;
    for (Key key : keys) {
      const auto value = TestValue(store_.sparse_tables()[id]->layout(), key, version, true);
      push.values.insert(push.values.end(), value.begin(), value.end());
      push.full.push_back(1);
    }
    push.body_hash = 1000 * keys.size() + static_cast<uint64_t>(version);
    return push;
  }

  StagedPush DensePush(uint64_t start, uint64_t rows, float value) {
    StagedPush push;
    push.dense = true;
    push.start = start;
    push.values.assign(rows * 2, value);
    push.body_hash = start + 1;
    return push;
  }

  // The cells of an even key; empty if absent.
  std::vector<float> Row(Key key) {
    std::vector<float> value(table().layout().full_floats());
    bool full = false;
    return table().Find(key, value.data(), &full) ? value : std::vector<float>();
  }

  uint64_t Digest() {
    uint64_t sum = 0;
    for (const auto& sparse : store_.sparse_tables()) sum += sparse->Digest();
    for (const auto& dense : store_.dense_tables()) sum += dense->Digest();
    return sum;
  }

  absl::Status PrepareAndCommit(PassId pass) {
    uint64_t rows = 0;
    CISTERN_RETURN_IF_ERROR(stage_.Prepare(pass, &rows));
    return stage_.Commit(pass);
  }

  // Passes 1 .. pass of nothing.
  void CommitEmptyPasses(PassId pass) {
    for (PassId p = 1; p <= pass; ++p) {
      ASSERT_TRUE(stage_.Begin(p).ok());
      ASSERT_TRUE(stage_.Seal(p, 0, 0).ok());
      ASSERT_TRUE(PrepareAndCommit(p).ok());
    }
  }

  ThreadPool pool_;
  TableStore store_;
  PassStage stage_;
};

#define EXPECT_CODE(expression, expected_code) EXPECT_EQ((expression).code(), expected_code)

TEST_F(PassStageTest, CommitMakesStagedValuesTheState) {
  ASSERT_TRUE(stage_.Begin(1).ok());
  ASSERT_TRUE(stage_.Push(1, 0, 0, SparsePush({2, 4, 8})).ok());
  ASSERT_TRUE(stage_.Push(1, 1, 0, SparsePush({6, 10})).ok());
  ASSERT_TRUE(stage_.Push(1, 1, 1, SparsePush({6}, 1, 1)).ok());  // the same key, another table
  ASSERT_TRUE(stage_.Push(1, 1, 2, DensePush(0, 6, 0.5f)).ok());
  EXPECT_TRUE(Row(2).empty());  // nothing before the commit
  ASSERT_TRUE(stage_.Seal(1, 0, 1).ok());
  ASSERT_TRUE(stage_.Seal(1, 1, 3).ok());
  uint64_t rows = 0;
  ASSERT_TRUE(stage_.Prepare(1, &rows).ok());
  EXPECT_EQ(rows, 3u + 2 + 1 + 6);
  EXPECT_TRUE(Row(2).empty());
  EXPECT_GT(stage_.staged_bytes(), 0u);
  ASSERT_TRUE(stage_.Commit(1).ok());
  EXPECT_EQ(stage_.committed(), 1u);
  EXPECT_EQ(stage_.open(), 0u);
  EXPECT_EQ(stage_.staged_bytes(), 0u);
  for (Key key : {2, 4, 6, 8, 10}) EXPECT_EQ(Row(key), TestValue(table().layout(), key, 1, true));
  EXPECT_EQ(store_.sparse_tables()[1]->counts().rows, 1u);
  std::vector<float> dense(12);
  ASSERT_TRUE(store_.dense_tables()[0]->Read(0, 6, dense.data()).ok());
  EXPECT_EQ(dense, std::vector<float>(12, 0.5f));
}

TEST_F(PassStageTest, EveryVerbInReadyStateIsRefusedExceptBeginAndAbort) {
  CommitEmptyPasses(3);
  uint64_t rows = 0;
  for (PassId pass : {0, 1, 2, 3, 4, 5}) {
    // Of a pass that is to come, staging may have been lost here: its worker starts it again.
    const Code refused = pass > 3 ? Code::kAborted : Code::kFailedPrecondition;
    EXPECT_CODE(stage_.Push(pass, 0, 0, SparsePush({2})), refused) << pass;
    EXPECT_CODE(stage_.Seal(pass, 0, 0), refused) << pass;
    EXPECT_CODE(stage_.Prepare(pass, &rows), refused) << pass;
    EXPECT_CODE(stage_.Commit(pass), pass == 3 ? Code::kOk : refused) << pass;
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

TEST_F(PassStageTest, OpenPassRefusesOtherPassesAndCommit) {
  ASSERT_TRUE(stage_.Begin(1).ok());
  ASSERT_TRUE(stage_.Push(1, 0, 0, SparsePush({2})).ok());
  uint64_t rows = 0;
  for (PassId pass : {0, 2}) {
    EXPECT_CODE(stage_.Begin(pass), pass > 1 ? Code::kAborted : Code::kFailedPrecondition);
    EXPECT_CODE(stage_.Push(pass, 0, 1, SparsePush({4})), Code::kFailedPrecondition);
    EXPECT_CODE(stage_.Seal(pass, 0, 1), Code::kFailedPrecondition);
    EXPECT_CODE(stage_.Prepare(pass, &rows), Code::kFailedPrecondition);
    EXPECT_TRUE(stage_.Abort(pass).ok());
  }
  EXPECT_CODE(stage_.Commit(1), Code::kFailedPrecondition);
  EXPECT_EQ(stage_.open(), 1u);
  ASSERT_TRUE(stage_.Seal(1, 0, 1).ok());
  EXPECT_TRUE(PrepareAndCommit(1).ok());
  EXPECT_FALSE(Row(2).empty());
}

TEST_F(PassStageTest, VerbsMayBeRepeated) {
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
    ASSERT_TRUE(stage_.Prepare(1, &rows).ok());
    EXPECT_EQ(rows, 1u);
  }
  ASSERT_TRUE(stage_.Push(1, 0, 0, SparsePush({2})).ok());
  ASSERT_TRUE(stage_.Seal(1, 0, 1).ok());
  ASSERT_TRUE(stage_.Begin(1).ok());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(stage_.Commit(1).ok());
  EXPECT_EQ(stage_.committed(), 1u);
  ASSERT_TRUE(stage_.Begin(2).ok());
  EXPECT_TRUE(stage_.Commit(1).ok());  // a late repeat
  EXPECT_EQ(stage_.open(), 2u);
}

TEST_F(PassStageTest, ARepeatWithOtherContentsIsAClash) {
  ASSERT_TRUE(stage_.Begin(1).ok());
  ASSERT_TRUE(stage_.Push(1, 3, 0, SparsePush({2}, 1)).ok());
  const absl::Status status = stage_.Push(1, 3, 0, SparsePush({2}, 2));
  EXPECT_CODE(status, Code::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("push 0"), HasSubstr("worker 3")));
  ASSERT_TRUE(stage_.Seal(1, 3, 1).ok());
  ASSERT_TRUE(PrepareAndCommit(1).ok());
  EXPECT_EQ(Row(2), TestValue(table().layout(), 2, 1, true));
}

TEST_F(PassStageTest, SealNamesTheFirstMissingPush) {
  ASSERT_TRUE(stage_.Begin(1).ok());
  EXPECT_CODE(stage_.Seal(1, 0, 1), Code::kAborted);
  for (uint64_t sequence : {4, 0, 2, 1}) {  // calls overtake each other
    ASSERT_TRUE(stage_.Push(1, 0, sequence, SparsePush({100 + 2 * sequence})).ok());
  }
  const absl::Status hole = stage_.Seal(1, 0, 5);
  EXPECT_CODE(hole, Code::kAborted);
  EXPECT_THAT(std::string(hole.message()), HasSubstr("push 3 of worker 0"));
  ASSERT_TRUE(stage_.Push(1, 0, 3, SparsePush({106})).ok());
  EXPECT_CODE(stage_.Seal(1, 0, 6), Code::kAborted);
  EXPECT_CODE(stage_.Seal(1, 0, 4), Code::kOutOfRange);  // more are here
  ASSERT_TRUE(stage_.Seal(1, 0, 5).ok());
  EXPECT_CODE(stage_.Push(1, 0, 5, SparsePush({200})), Code::kOutOfRange);
  EXPECT_TRUE(stage_.Seal(1, 7, 0).ok());  // a worker without rows here
  EXPECT_TRUE(PrepareAndCommit(1).ok());
  EXPECT_EQ(table().counts().rows, 5u);
}

TEST_F(PassStageTest, AcceptsAWindowOfSequencesAheadOfAHole) {
  ASSERT_TRUE(stage_.Begin(1).ok());
  EXPECT_TRUE(stage_.Push(1, 0, Staging::kWindow - 1, SparsePush({2})).ok());
  EXPECT_CODE(stage_.Push(1, 0, Staging::kWindow, SparsePush({4})), Code::kAborted);
  EXPECT_CODE(stage_.Push(1, 0, ~uint64_t{0}, SparsePush({4})), Code::kAborted);
  EXPECT_TRUE(stage_.Push(1, 0, 0, SparsePush({6})).ok());
  EXPECT_TRUE(stage_.Push(1, 0, Staging::kWindow, SparsePush({4})).ok());
}

TEST_F(PassStageTest, PrepareNeedsEverySeal) {
  ASSERT_TRUE(stage_.Begin(1).ok());
  ASSERT_TRUE(stage_.Push(1, 0, 0, SparsePush({2})).ok());
  ASSERT_TRUE(stage_.Push(1, 5, 0, SparsePush({4})).ok());
  ASSERT_TRUE(stage_.Seal(1, 0, 1).ok());
  uint64_t rows = 0;
  const absl::Status status = stage_.Prepare(1, &rows);
  EXPECT_CODE(status, Code::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("worker 5"));
  EXPECT_CODE(stage_.Commit(1), Code::kFailedPrecondition);
  ASSERT_TRUE(stage_.Seal(1, 5, 1).ok());
  EXPECT_TRUE(PrepareAndCommit(1).ok());
}

TEST_F(PassStageTest, APassThatNobodySealedIsLost) {
  ASSERT_TRUE(stage_.Begin(1).ok());
  uint64_t rows = 0;
  EXPECT_CODE(stage_.Prepare(1, &rows), Code::kAborted);
  EXPECT_CODE(stage_.Commit(1), Code::kFailedPrecondition);
}

TEST_F(PassStageTest, PreparedPassTakesNoNewPush) {
  ASSERT_TRUE(stage_.Begin(1).ok());
  ASSERT_TRUE(stage_.Seal(1, 1, 0).ok());
  uint64_t rows = 0;
  ASSERT_TRUE(stage_.Prepare(1, &rows).ok());
  EXPECT_CODE(stage_.Push(1, 0, 0, SparsePush({2})), Code::kFailedPrecondition);
  EXPECT_TRUE(stage_.Commit(1).ok());
  EXPECT_EQ(table().counts().rows, 0u);
}

TEST_F(PassStageTest, PrepareNamesAKeyThatTwoPushesHold) {
  ASSERT_TRUE(stage_.Begin(1).ok());
  ASSERT_TRUE(stage_.Push(1, 0, 0, SparsePush({2, 40})).ok());
  ASSERT_TRUE(stage_.Push(1, 1, 0, SparsePush({4, 40, 6})).ok());
  ASSERT_TRUE(stage_.Seal(1, 0, 1).ok());
  ASSERT_TRUE(stage_.Seal(1, 1, 1).ok());
  uint64_t rows = 0;
  const absl::Status status = stage_.Prepare(1, &rows);
  EXPECT_CODE(status, Code::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("'deep'"), HasSubstr("key 40")));
  EXPECT_CODE(stage_.Commit(1), Code::kFailedPrecondition);
  EXPECT_TRUE(stage_.Abort(1).ok());
}

TEST_F(PassStageTest, PrepareNamesADenseRowThatTwoPushesHold) {
  ASSERT_TRUE(stage_.Begin(1).ok());
  ASSERT_TRUE(stage_.Push(1, 0, 0, DensePush(0, 3, 1.0f)).ok());
  ASSERT_TRUE(stage_.Push(1, 0, 1, DensePush(2, 2, 1.0f)).ok());
  ASSERT_TRUE(stage_.Seal(1, 0, 2).ok());
  uint64_t rows = 0;
  const absl::Status status = stage_.Prepare(1, &rows);
  EXPECT_CODE(status, Code::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("'mlp'"), HasSubstr("row 2")));
}

TEST_F(PassStageTest, CommitGivesTheSumOfGradientsToTheRule) {
  StagedPush push = DensePush(0, 6, 1.0f);
  push.table = 1;
  push.values = {0, 1, 2, 3, 4, 5};
  ASSERT_TRUE(stage_.Begin(1).ok());
  ASSERT_TRUE(stage_.Push(1, 0, 0, push).ok());
  ASSERT_TRUE(stage_.Seal(1, 0, 1).ok());
  ASSERT_TRUE(PrepareAndCommit(1).ok());

  push.gradient = true;
  push.values.assign(6, 0.5f);
  ASSERT_TRUE(stage_.Begin(2).ok());
  for (const uint32_t worker : {0, 1}) {
    ASSERT_TRUE(stage_.Push(2, worker, 0, push).ok());
    ASSERT_TRUE(stage_.Seal(2, worker, 1).ok());
  }
  uint64_t rows = 0;
  ASSERT_TRUE(stage_.Prepare(2, &rows).ok());
  EXPECT_EQ(rows, 6u);
  ASSERT_TRUE(stage_.Commit(2).ok());
  std::vector<float> values(6);
  ASSERT_TRUE(store_.dense_tables()[1]->Read(0, 6, values.data()).ok());
  EXPECT_EQ(values, (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST_F(PassStageTest, GradientsNeedATableWithARule) {
  StagedPush push = DensePush(0, 3, 1.0f);
  push.gradient = true;
  ASSERT_TRUE(stage_.Begin(1).ok());
  EXPECT_CODE(stage_.Push(1, 0, 0, push), Code::kInvalidArgument);
  push.table = 1;
  push.values.resize(7);  // rows 0 to 6: one too many for this server
  EXPECT_CODE(stage_.Push(1, 0, 0, push), Code::kOutOfRange);
}

TEST_F(PassStageTest, RefusedPushesLeaveNoTrace) {
  ASSERT_TRUE(stage_.Begin(1).ok());
  EXPECT_CODE(stage_.Push(1, 0, 0, SparsePush({2, 3})), Code::kOutOfRange);  // server 1's
  StagedPush push = SparsePush({2});
  push.table = 9;
  EXPECT_CODE(stage_.Push(1, 0, 0, push), Code::kInvalidArgument);
  push = SparsePush({2});
  push.values.pop_back();
  EXPECT_CODE(stage_.Push(1, 0, 0, push), Code::kInvalidArgument);
  push = SparsePush({2});
  push.full.clear();
  EXPECT_CODE(stage_.Push(1, 0, 0, push), Code::kInvalidArgument);
  push = SparsePush({2});
  push.full[0] = 0xFF;
  EXPECT_CODE(stage_.Push(1, 0, 0, push), Code::kInvalidArgument);
  push = SparsePush({2, 4, 6});
  push.values[4 + 1] = std::numeric_limits<float>::quiet_NaN();
  absl::Status status = stage_.Push(1, 0, 0, push);
  EXPECT_CODE(status, Code::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("key 4"), HasSubstr("cell 1")));
  push = DensePush(2, 2, 1.0f);
  push.values[3] = std::numeric_limits<float>::infinity();
  status = stage_.Push(1, 0, 0, push);
  EXPECT_CODE(status, Code::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("row 3"), HasSubstr("cell 1")));
  EXPECT_CODE(stage_.Push(1, 0, 0, DensePush(5, 2, 1.0f)), Code::kOutOfRange);
  push = DensePush(0, 2, 1.0f);
  push.values.pop_back();
  EXPECT_CODE(stage_.Push(1, 0, 0, push), Code::kInvalidArgument);
  push.table = 2;
  EXPECT_CODE(stage_.Push(1, 0, 0, push), Code::kInvalidArgument);

  EXPECT_EQ(stage_.staged_bytes(), 0u);
  EXPECT_TRUE(stage_.Seal(1, 0, 0).ok());  // nothing came through
  EXPECT_TRUE(PrepareAndCommit(1).ok());
}

TEST_F(PassStageTest, StagesUpToItsByteLimit) {
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

TEST_F(PassStageTest, AbortLeavesTheStateUntouched) {
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
      ASSERT_TRUE(stage_.Prepare(2, &rows).ok());
    }
    ASSERT_TRUE(stage_.Abort(2).ok());
    EXPECT_EQ(stage_.open(), 0u);
    EXPECT_EQ(stage_.committed(), 1u);
    EXPECT_CODE(stage_.Commit(2), Code::kAborted);
  }
  EXPECT_EQ(Digest(), digest);
  // The pass begins anew, with the same sequences and other contents.
  ASSERT_TRUE(stage_.Begin(2).ok());
  ASSERT_TRUE(stage_.Push(2, 0, 0, SparsePush({2, 6}, 3)).ok());
  ASSERT_TRUE(stage_.Seal(2, 0, 1).ok());
  ASSERT_TRUE(PrepareAndCommit(2).ok());
  EXPECT_NE(Digest(), digest);
}

TEST_F(PassStageTest, ResetMakesThePassOfALoadTheState) {
  ASSERT_TRUE(stage_.Begin(1).ok());
  ASSERT_TRUE(stage_.Push(1, 0, 0, SparsePush({2})).ok());
  stage_.Reset(41);
  EXPECT_EQ(stage_.committed(), 41u);
  EXPECT_EQ(stage_.open(), 0u);
  EXPECT_EQ(stage_.staged_bytes(), 0u);
  EXPECT_TRUE(stage_.Begin(42).ok());
}

// The state is the same whatever the order and the interleaving of pushes.
TEST_F(PassStageTest, ConcurrentPushesOfManyWorkersCommitWhole) {
  constexpr uint32_t kWorkers = 4;
  constexpr uint64_t kPushes = 20;
  constexpr Key kKeys = 50;
  ASSERT_TRUE(stage_.Begin(1).ok());
  std::vector<std::thread> workers;
  for (uint32_t worker = 0; worker < kWorkers; ++worker) {
    workers.emplace_back([this, worker] {
      for (uint64_t i = 0; i < kPushes; ++i) {
        const uint64_t sequence = worker % 2 == 0 ? i : kPushes - 1 - i;
        std::vector<Key> keys;
        for (Key k = 0; k < kKeys; ++k) {
          keys.push_back(2 * ((worker * kPushes + sequence) * kKeys + k));
        }
        // Twice, as a client does that has seen no answer.
        EXPECT_TRUE(stage_.Push(1, worker, sequence, SparsePush(keys)).ok());
        EXPECT_TRUE(stage_.Push(1, worker, sequence, SparsePush(keys)).ok());
      }
      EXPECT_TRUE(stage_.Seal(1, worker, kPushes).ok());
    });
  }
  for (std::thread& worker : workers) worker.join();
  uint64_t rows = 0;
  ASSERT_TRUE(stage_.Prepare(1, &rows).ok());
  EXPECT_EQ(rows, kWorkers * kPushes * kKeys);
  ASSERT_TRUE(stage_.Commit(1).ok());

  auto expected = Table(EmbeddingSpec(4, "deep"), Map(4, 2));
  Rows all;
  for (Key key = 0; key < 2 * kWorkers * kPushes * kKeys; key += 2) {
    all.Add(key, TestValue(expected->layout(), key, 1, true), true);
  }
  expected->Write({all.block()}, pool_);
  EXPECT_EQ(table().Digest(), expected->Digest());
}

}  // namespace
}  // namespace cistern
