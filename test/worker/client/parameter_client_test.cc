#include "worker/client/parameter_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "test/worker/client/embedded_fleet.h"

namespace cistern {
namespace {

using testing::HasSubstr;

// Small chunks, so that a few thousand keys need many calls.
ClientOptions SmallChunks() {
  ClientOptions options;
  options.chunk_bytes = 4096;
  return options;
}

TEST(ParameterClient, AbsentKeysReadTheirInitialValueForAnyNumberOfServers) {
  const std::vector<Key> keys = TestKeys(3000);
  const ValueLayout layout = ValueLayout::Create(TestSchema().tables(kDeep)).value();
  std::vector<float> expected(keys.size() * layout.full_floats());
  for (size_t i = 0; i < keys.size(); ++i) {
    layout.Initialize(keys[i], expected.data() + i * layout.full_floats());
  }
  for (uint32_t server_num : {1u, 2u, 3u}) {
    EmbeddedFleet fleet(server_num);
    auto client = Writer(fleet.Links(), SmallChunks());
    const Pulled pulled = PullKeys(*client, kDeep, keys);
    ASSERT_TRUE(pulled.status.ok()) << pulled.status;
    EXPECT_EQ(pulled.values, expected) << server_num << " servers";
    EXPECT_EQ(pulled.has_embedx, std::vector<uint8_t>(keys.size(), 1));
  }
}

TEST(ParameterClient, ReadsBackCommittedValues) {
  const std::vector<Key> keys = TestKeys(3000);
  for (uint32_t server_num : {1u, 2u, 3u}) {
    EmbeddedFleet fleet(server_num);
    auto client = Writer(fleet.Links(), SmallChunks());
    ASSERT_TRUE(CommitKeys(*client, keys).ok());
    EXPECT_EQ(client->committed_pass(), 1u);
    const Pulled pulled = PullKeys(*client, kDeep, keys);
    ASSERT_TRUE(pulled.status.ok()) << pulled.status;
    EXPECT_EQ(pulled.values, ValuesOf(keys, client->layout(kDeep).full_floats()));
  }
}

TEST(ParameterClient, PullsIntoTheGivenRows) {
  const std::vector<Key> keys = TestKeys(3000);
  EmbeddedFleet fleet(2);
  auto client = Writer(fleet.Links(), SmallChunks());
  ASSERT_TRUE(CommitKeys(*client, keys).ok());
  const uint32_t stride = client->layout(kDeep).full_floats();
  // Every second row, from the last key to the first; the rows between them keep their values.
  std::vector<Row> rows(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) rows[i] = static_cast<Row>(2 * (keys.size() - 1 - i));
  std::vector<float> values(2 * keys.size() * stride, -7.0f);
  std::vector<uint8_t> has_embedx(2 * keys.size(), 9);
  ASSERT_TRUE(
      client->Pull(kDeep, keys, /*absent_is_zero=*/false, values.data(), has_embedx.data(), rows)
          .ok());
  for (size_t i = 0; i < keys.size(); ++i) {
    ASSERT_EQ(has_embedx[rows[i]], 1);
    ASSERT_EQ(has_embedx[rows[i] + 1], 9);
    for (uint32_t cell = 0; cell < stride; ++cell) {
      ASSERT_EQ(values[rows[i] * stride + cell], CellOf(keys[i], cell));
      ASSERT_EQ(values[(rows[i] + 1) * stride + cell], -7.0f);
    }
  }
}

TEST(ParameterClient, PushesTheGivenRows) {
  EmbeddedFleet fleet(2);
  auto client = Writer(fleet.Links(), SmallChunks());
  // Every second row, from the last key to the first; the rows between them are pushed for no key.
  const std::vector<Key> keys = TestKeys(3000);
  const uint32_t stride = client->layout(kCtr).full_floats();
  const uint32_t short_floats = client->layout(kCtr).short_floats();
  std::vector<Row> rows(keys.size());
  std::vector<float> values(2 * keys.size() * stride, -7.0f), expected;
  std::vector<uint8_t> has_embedx(2 * keys.size(), 9), full;
  for (size_t i = 0; i < keys.size(); ++i) {
    rows[i] = static_cast<Row>(2 * (keys.size() - 1 - i));
    full.push_back(i % 3 == 0 ? 1 : 0);
    has_embedx[rows[i]] = full.back();
    for (uint32_t cell = 0; cell < stride; ++cell) {
      const bool has = full.back() == 1 || cell < short_floats;
      values[rows[i] * stride + cell] = has ? CellOf(keys[i], cell) : 0.0f;
      expected.push_back(values[rows[i] * stride + cell]);
    }
  }
  ASSERT_TRUE(client->BeginPass().ok());
  const absl::Status pushed = client->Push(kCtr, keys, values.data(), has_embedx.data(), rows);
  ASSERT_TRUE(pushed.ok()) << pushed;
  ASSERT_TRUE(client->CommitPass().ok());
  const Pulled pulled = PullKeys(*client, kCtr, keys);
  EXPECT_EQ(pulled.has_embedx, full);
  EXPECT_EQ(pulled.values, expected);
}

TEST(ParameterClient, AbsentIsZeroMarksAbsentKeys) {
  EmbeddedFleet fleet(2);
  auto client = Writer(fleet.Links());
  ASSERT_TRUE(CommitKeys(*client, {5, 6}).ok());
  const std::vector<Key> keys = {5, 7, 6};
  const Pulled pulled = PullKeys(*client, kDeep, keys, /*absent_is_zero=*/true);
  ASSERT_TRUE(pulled.status.ok());
  EXPECT_EQ(pulled.has_embedx, (std::vector<uint8_t>{1, kAbsent, 1}));
  const uint32_t stride = client->layout(kDeep).full_floats();
  for (uint32_t cell = 0; cell < stride; ++cell) {
    EXPECT_EQ(pulled.values[cell], CellOf(5, cell));
    EXPECT_EQ(pulled.values[stride + cell], 0.0f);
    EXPECT_EQ(pulled.values[2 * stride + cell], CellOf(6, cell));
  }
}

TEST(ParameterClient, ShortCtrValuesStayShort) {
  EmbeddedFleet fleet(2);
  auto client = Writer(fleet.Links());
  const std::vector<Key> keys = {1, 2};
  const ValueLayout& layout = client->layout(kCtr);
  std::vector<float> values(2 * layout.full_floats(), 0.5f);
  std::fill(values.begin() + layout.short_floats(), values.begin() + layout.full_floats(), 0.0f);
  const std::vector<uint8_t> has_embedx = {0, 1};
  ASSERT_TRUE(client->BeginPass().ok());
  ASSERT_TRUE(client->Push(kCtr, keys, values.data(), has_embedx.data()).ok());
  ASSERT_TRUE(client->CommitPass().ok());
  const Pulled pulled = PullKeys(*client, kCtr, keys);
  EXPECT_EQ(pulled.has_embedx, has_embedx);
  EXPECT_EQ(pulled.values, values);
}

TEST(ParameterClient, PushesAreInvisibleBeforeCommitAndAfterAbort) {
  EmbeddedFleet fleet(3);
  auto client = Writer(fleet.Links());
  const std::vector<Key> keys = TestKeys(100);
  const Pulled before = PullKeys(*client, kDeep, keys);
  const std::vector<float> values = ValuesOf(keys, client->layout(kDeep).full_floats());
  const std::vector<uint8_t> has_embedx(keys.size(), 1);
  ASSERT_TRUE(client->BeginPass().ok());
  ASSERT_TRUE(client->Push(kDeep, keys, values.data(), has_embedx.data()).ok());
  EXPECT_EQ(PullKeys(*client, kDeep, keys).values, before.values);
  ASSERT_TRUE(client->AbortPass().ok());
  EXPECT_EQ(PullKeys(*client, kDeep, keys).values, before.values);
  EXPECT_EQ(client->committed_pass(), 0u);
  // The next attempt at the same pass starts over.
  ASSERT_TRUE(CommitKeys(*client, keys).ok());
  EXPECT_EQ(PullKeys(*client, kDeep, keys).values, values);
}

TEST(ParameterClient, DenseTablesTravelWhole) {
  for (uint32_t server_num : {1u, 2u, 3u}) {
    EmbeddedFleet fleet(server_num);
    auto client = Writer(fleet.Links(), SmallChunks());
    std::vector<float> values(3000), read(3000, -1.0f);
    std::iota(values.begin(), values.end(), 0.5f);
    EXPECT_EQ(client->PullDense(kMlp, read.data()).code(), absl::StatusCode::kNotFound);
    ASSERT_TRUE(client->BeginPass().ok());
    ASSERT_TRUE(client->PushDense(kMlp, values.data()).ok());
    ASSERT_TRUE(client->CommitPass().ok());
    ASSERT_TRUE(client->PullDense(kMlp, read.data()).ok());
    EXPECT_EQ(read, values);
  }
}

TEST(ParameterClient, ScanVisitsEveryRowOnceInShardOrder) {
  for (uint32_t server_num : {1u, 3u}) {
    EmbeddedFleet fleet(server_num);
    auto client = Writer(fleet.Links());
    const std::vector<Key> keys = TestKeys(50'000);  // one page per shard: two would be 9000 rows
    ASSERT_TRUE(CommitKeys(*client, keys).ok());
    std::map<Key, int> seen;
    uint32_t last_shard = 0;
    const absl::Status status =
        client->Scan(kDeep, [&](uint32_t shard, Key key, const float* value, bool has_embedx) {
          EXPECT_EQ(shard, key % 64);
          EXPECT_GE(shard, last_shard);
          EXPECT_TRUE(has_embedx);
          EXPECT_EQ(value[3], CellOf(key, 3));
          last_shard = shard;
          ++seen[key];
          return absl::OkStatus();
        });
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(seen.size(), keys.size());
    for (const Key key : keys) EXPECT_EQ(seen[key], 1);
  }
}

TEST(ParameterClient, ScanPagesThroughALargeShard) {
  server::ServerOptions one_shard;
  one_shard.shard_num = 1;
  EmbeddedFleet fleet(1, one_shard);
  auto client = Writer(fleet.Links());
  const std::vector<Key> keys = TestKeys(30'000);  // 2.4 MB: five pages
  ASSERT_TRUE(CommitKeys(*client, keys).ok());
  std::map<Key, int> seen;
  ASSERT_TRUE(client
                  ->Scan(kDeep,
                         [&](uint32_t, Key key, const float*, bool) {
                           ++seen[key];
                           return absl::OkStatus();
                         })
                  .ok());
  EXPECT_EQ(seen.size(), keys.size());
}

TEST(ParameterClient, ScanStopsAtTheVisitorsError) {
  EmbeddedFleet fleet(2);
  auto client = Writer(fleet.Links());
  ASSERT_TRUE(CommitKeys(*client, TestKeys(100)).ok());
  int visits = 0;
  const absl::Status status = client->Scan(kDeep, [&](uint32_t, Key, const float*, bool) {
    return ++visits == 7 ? absl::ResourceExhaustedError("disk full") : absl::OkStatus();
  });
  EXPECT_EQ(status, absl::ResourceExhaustedError("disk full"));
  EXPECT_EQ(visits, 7);
}

TEST(ParameterClient, ClearRemovesRowsAndSetsThePass) {
  EmbeddedFleet fleet(2);
  auto client = Writer(fleet.Links());
  ASSERT_TRUE(CommitKeys(*client, TestKeys(100)).ok());
  ASSERT_TRUE(client->Clear(41).ok());
  EXPECT_EQ(client->committed_pass(), 41u);
  EXPECT_EQ(PullKeys(*client, kDeep, {TestKeys(100)[0]}, true).has_embedx[0], kAbsent);
  ASSERT_TRUE(CommitKeys(*client, TestKeys(10)).ok());
  EXPECT_EQ(client->committed_pass(), 42u);
}

TEST(ParameterClient, RefusedRowsNameTheServer) {
  EmbeddedFleet fleet(2);
  auto client = Writer(fleet.Links());
  const std::vector<Key> keys = {kReservedKey64};
  const Pulled pulled = PullKeys(*client, kDeep, keys);
  EXPECT_EQ(pulled.status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(pulled.status.message()), HasSubstr("server 1 (embedded-1)"));

  std::vector<float> values(client->layout(kDeep).full_floats(), 1.0f);
  values[2] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<Key> good = {4};
  const uint8_t has_embedx = 1;
  ASSERT_TRUE(client->BeginPass().ok());
  const absl::Status status = client->Push(kDeep, good, values.data(), &has_embedx);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("server 0 (embedded-0)"));
}

TEST(ParameterClient, ATableThatDoesNotExistIsNotFound) {
  EmbeddedFleet fleet(1);
  auto client = Writer(fleet.Links());
  float value = 0;
  uint8_t has_embedx = 0;
  EXPECT_EQ(client->Pull(2, {1}, false, &value, &has_embedx).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(client->PullDense(1, &value).code(), absl::StatusCode::kNotFound);
}

// Two workers push gradients in one pass, in chunks of different sizes; the servers sum them and
// apply one step.
TEST(ParameterClient, DenseGradientsOfTwoWorkersMakeOneStep) {
  v1::Schema schema = TestSchema();
  v1::DenseTableSpec& spec = *schema.mutable_dense_tables(kMlp);
  spec.add_columns("step");
  v1::DenseRule& rule = *spec.mutable_rule();
  rule.set_kind(v1::DenseRule::ADAM);
  rule.set_learning_rate(0.5f);
  rule.set_beta1(0.9f);
  rule.set_beta2(0.999f);
  rule.set_epsilon(1e-8f);
  for (uint32_t server_num : {1u, 3u}) {
    EmbeddedFleet fleet(server_num);
    ClientOptions second = SmallChunks();
    second.worker = 1;
    auto a = ParameterClient::Connect(fleet.Links(), ClientOptions()).value();
    ASSERT_TRUE(a->CreateTables(schema).ok());
    ASSERT_TRUE(a->ClaimTerm().ok());
    std::vector<float> rows(spec.rows() * 4, 0.0f);
    for (size_t row = 0; row < spec.rows(); ++row) rows[4 * row] = static_cast<float>(row);
    ASSERT_TRUE(a->BeginPass().ok());
    ASSERT_TRUE(a->PushDense(kMlp, rows.data()).ok());
    ASSERT_TRUE(a->CommitPass().ok());

    auto b = ParameterClient::Connect(fleet.Links(), second).value();  // the same term
    const std::vector<float> up(spec.rows(), -1.0f), down(spec.rows(), 3.0f);
    b->Follow(a->writer());
    ASSERT_TRUE(a->BeginPass(2).ok());
    b->JoinPass();
    ASSERT_TRUE(b->PushDenseGradient(kMlp, up.data()).ok());
    ASSERT_TRUE(a->PushDenseGradient(kMlp, down.data()).ok());
    v1::SealPassRequest seal;
    *seal.mutable_identity() = b->identity();
    seal.set_pass(2);
    seal.set_worker(1);
    seal.set_push_count(0);
    for (const ServerLink& link : fleet.Links()) {  // finds the number of b's pushes here
      v1::PassReply reply;
      absl::Status status = absl::OutOfRangeError("");
      for (uint64_t n = 1; n < 20 && !status.ok(); ++n) {
        seal.set_push_count(n);
        status = link.control->SealPass(seal, &reply);
      }
      ASSERT_TRUE(status.ok()) << status;
    }
    const absl::Status committed = a->CommitPass();
    ASSERT_TRUE(committed.ok()) << committed;
    std::vector<float> after(rows.size());
    ASSERT_TRUE(a->PullDense(kMlp, after.data()).ok());
    for (size_t row = 0; row < spec.rows(); ++row) {
      // Adam's first step has the size of the learning rate; the sum 2 makes it a decrease.
      ASSERT_NEAR(after[4 * row], static_cast<float>(row) - 0.5f, 1e-4);
      ASSERT_NEAR(after[4 * row + 1], 0.1f * 2, 1e-6);
      ASSERT_EQ(after[4 * row + 3], 1.0f);
    }
  }
}

// Pushed floats of any precision read back as the nearest bfloat16, whole rows in half the bytes.
TEST(ParameterClient, SendsRowsOfSixteenBits) {
  v1::Schema schema = TestSchema();
  for (v1::TableSpec& table : *schema.mutable_tables()) {
    table.set_row_type(v1::TableSpec::BFLOAT16);
  }
  EmbeddedFleet fleet(2);
  auto client = Connected(fleet.Links(), SmallChunks());
  ASSERT_TRUE(client->CreateTables(schema).ok());
  ASSERT_TRUE(client->ClaimTerm().ok());
  EXPECT_EQ(client->layout(kDeep).full_floats(), 18u);
  EXPECT_EQ(client->stored_layout(kDeep).full_floats(), 9u);
  const std::vector<Key> keys = TestKeys(500);
  ASSERT_TRUE(CommitKeys(*client, keys).ok());
  const Pulled pulled = PullKeys(*client, kDeep, keys);
  ASSERT_TRUE(pulled.status.ok()) << pulled.status;
  std::map<Key, std::vector<float>> scanned;
  ASSERT_TRUE(client
                  ->Scan(kDeep,
                         [&](uint32_t, Key key, const float* value, bool) {
                           scanned[key].assign(value, value + 18);
                           return absl::OkStatus();
                         })
                  .ok());
  for (size_t i = 0; i < keys.size(); ++i) {
    for (uint32_t cell = 0; cell < 18; ++cell) {
      const float pushed = CellOf(keys[i], cell), read = pulled.values[i * 18 + cell];
      ASSERT_NEAR(read, pushed, pushed / 256);
      ASSERT_EQ(scanned[keys[i]][cell], read);
    }
  }
  EXPECT_EQ(scanned.size(), keys.size());
}

}  // namespace
}  // namespace cistern
