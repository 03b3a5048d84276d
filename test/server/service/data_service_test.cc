#include "server/service/data_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "common/value/value_layout.h"

namespace cistern::server {
namespace {

using testing::HasSubstr;

constexpr uint32_t kStride = 12;  // 4 weights under Adam

v1::Schema OneTable() {
  v1::Schema schema;
  v1::TableSpec* table = schema.add_tables();
  table->set_name("deep");
  table->set_dim(4);
  table->mutable_rule()->set_kind(v1::UpdateRule::ADAM);
  table->mutable_rule()->set_beta1(0.9f);
  table->mutable_rule()->set_beta2(0.999f);
  table->mutable_rule()->set_epsilon(1e-7f);
  table->mutable_initializer()->set_kind(v1::Initializer::UNIFORM);
  table->mutable_initializer()->set_range(0.5f);
  v1::DenseTableSpec* dense = schema.add_dense_tables();
  dense->set_name("mlp");
  dense->set_rows(10);
  dense->add_columns(std::string("w"));
  return schema;
}

// Server 1 of 2, 8 shards: it owns the odd keys.
class DataServiceTest : public testing::Test {
 protected:
  DataServiceTest() {
    EXPECT_TRUE(state_.store.Create(OneTable()).ok());
    EXPECT_TRUE(state_.stage.Begin(1).ok());
  }
  FrameHeader Header(FrameKind kind, uint32_t count, uint32_t stride = kStride) {
    const CallIdentity own = IdentityOf(state_.guard.Own(state_.store.schema_hash()));
    FrameHeader header;
    header.kind = static_cast<uint16_t>(kind);
    header.cluster_id = own.cluster_id;
    header.schema_hash = own.schema_hash;
    header.shard_map_hash = own.shard_map_hash;
    header.term = own.term;
    header.pass = 1;
    header.count = count;
    header.stride = stride;
    return header;
  }
  static Frame PullFrame(const FrameHeader& header, const std::vector<Key>& keys) {
    Frame frame = StartFrame(header);
    frame.AppendBytes(keys.data(), keys.size() * sizeof(Key));
    return frame;
  }
  static Frame PushFrame(FrameHeader header, const std::vector<Key>& keys, bool true_hash = true) {
    Frame frame = StartFrame(header);
    const std::vector<float> values(keys.size() * kStride, 0.5f);
    const std::vector<uint8_t> has_embedx(keys.size(), 1);
    frame.AppendBytes(keys.data(), keys.size() * sizeof(Key));
    frame.AppendBytes(values.data(), values.size() * sizeof(float));
    frame.AppendBytes(has_embedx.data(), has_embedx.size());
    header.body_hash = BodyHash(frame) + (true_hash ? 0 : 1);
    Frame hashed = StartFrame(header);
    for (size_t i = 1; i < frame.pieces().size(); ++i) hashed.Append(frame.pieces()[i]);
    return hashed;
  }
  absl::StatusCode Code(FrameKind kind, const Frame& frame) {
    return service_.Handle(kind, frame).status().code();
  }

  NodeState state_{ShardMap::Create(8, 2).value(), 1, "cistern", 2, 1 << 20};
  DataService service_{&state_};
};

TEST_F(DataServiceTest, PullRepliesInPiecesOfWholeRows) {
  std::vector<Key> keys(30'000);  // 1.44 MB of values
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = 2 * i + 1;
  absl::StatusOr<Frame> reply =
      service_.Handle(FrameKind::kPull, PullFrame(Header(FrameKind::kPull, 30'000), keys));
  ASSERT_TRUE(reply.ok()) << reply.status();
  FrameReader reader(*reply);
  const absl::StatusOr<FrameHeader> header = ReadHeader(reader, FrameKind::kPull, true);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->count, 30'000u);
  const size_t pieces = reply->pieces().size();
  for (size_t i = 1; i + 1 < pieces; ++i) {  // pieces: header, values .., has_embedx
    EXPECT_LE(reply->pieces()[i].size, 256u << 10);
    EXPECT_EQ(reply->pieces()[i].size % (kStride * sizeof(float)), 0u);
  }
  const ValueLayout layout = ValueLayout::Create(OneTable().tables(0)).value();
  std::vector<float> expected(kStride), row(kStride);
  for (const Key key : keys) {
    layout.Initialize(key, expected.data());
    ASSERT_TRUE(reader.Read(row.data(), kStride * sizeof(float)));
    ASSERT_EQ(row, expected) << key;
  }
}

TEST_F(DataServiceTest, RefusesRequestsThatDoNotFitTheTable) {
  EXPECT_EQ(Code(FrameKind::kPull, PullFrame(Header(FrameKind::kPull, 1, 11), {1})),
            absl::StatusCode::kInvalidArgument);  // stride
  EXPECT_EQ(Code(FrameKind::kPull, PullFrame(Header(FrameKind::kPull, 1), {2})),
            absl::StatusCode::kOutOfRange);  // server 0's key
  FrameHeader header = Header(FrameKind::kPull, 1);
  header.table = 1;
  EXPECT_EQ(Code(FrameKind::kPull, PullFrame(header, {1})), absl::StatusCode::kNotFound);
  EXPECT_EQ(Code(FrameKind::kPullDense, StartFrame(Header(FrameKind::kPullDense, 1, 2))),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Code(FrameKind::kPull, Frame(std::string(100, 'x'))),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(DataServiceTest, RefusesAnotherIdentity) {
  for (uint64_t FrameHeader::*field : {&FrameHeader::cluster_id, &FrameHeader::schema_hash,
                                       &FrameHeader::shard_map_hash, &FrameHeader::term}) {
    FrameHeader header = Header(FrameKind::kPull, 1);
    ++(header.*field);
    EXPECT_EQ(Code(FrameKind::kPull, PullFrame(header, {1})),
              absl::StatusCode::kFailedPrecondition);
  }
}

TEST_F(DataServiceTest, RefusesBytesThatChangedInTransit) {
  const FrameHeader header = Header(FrameKind::kPush, 2);
  const absl::Status status =
      service_.Handle(FrameKind::kPush, PushFrame(header, {1, 3}, false)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("do not match their hash"));
  EXPECT_EQ(state_.stage.staged_bytes(), 0u);
  EXPECT_EQ(Code(FrameKind::kPush, PushFrame(header, {1, 3})), absl::StatusCode::kOk);
  EXPECT_GT(state_.stage.staged_bytes(), 0u);
}

TEST_F(DataServiceTest, ScanAnswersForItsOwnShardsOnly) {
  FrameHeader header = Header(FrameKind::kScan, 0);
  for (const uint32_t shard : {0u, 8u, 0xFFFFFFFFu}) {
    header.shard = shard;
    EXPECT_EQ(Code(FrameKind::kScan, StartFrame(header)), absl::StatusCode::kOutOfRange) << shard;
  }
  header.shard = 7;
  EXPECT_EQ(Code(FrameKind::kScan, StartFrame(header)), absl::StatusCode::kOk);
}

TEST_F(DataServiceTest, SurvivesAnyScanCursor) {
  ASSERT_EQ(Code(FrameKind::kPush, PushFrame(Header(FrameKind::kPush, 2), {1, 9})),
            absl::StatusCode::kOk);
  ASSERT_TRUE(state_.stage.Seal(1, 0, 1).ok());
  CommitState::Prepared prepared;
  bool adopted = false;
  ASSERT_TRUE(state_.stage.Prepare(1, {}, &prepared).ok());
  ASSERT_TRUE(state_.stage.Commit(1, 0, {}, &adopted).ok());
  FrameHeader header = Header(FrameKind::kScan, 0);
  header.shard = 1;
  for (int bit = 0; bit < 64; ++bit) {
    for (const uint64_t cursor : {uint64_t{1} << bit, ~(uint64_t{1} << bit)}) {
      header.start = cursor;
      service_.Handle(FrameKind::kScan, StartFrame(header)).status().IgnoreError();
    }
  }
}

TEST_F(DataServiceTest, TellsCallersToRetryWhileTablesAreReplaced) {
  {
    absl::MutexLock lock(&state_.tables_mutex);
    state_.replacing = true;
  }
  EXPECT_EQ(Code(FrameKind::kPull, PullFrame(Header(FrameKind::kPull, 1), {1})),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace cistern::server
