// Refusals of a client by servers that it does not belong to, and their messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/worker/client/embedded_fleet.h"

namespace cistern {
namespace {

using testing::AllOf;
using testing::HasSubstr;

absl::Status ConnectError(std::vector<ServerLink> links, const ClientOptions& options = {}) {
  return ParameterClient::Connect(std::move(links), options).status();
}

std::string MessageOf(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  return std::string(status.message());
}

server::ServerOptions Options(uint32_t rank, uint32_t server_num) {
  server::ServerOptions options;
  options.rank = rank;
  options.server_num = server_num;
  options.threads = 1;
  return options;
}

TEST(Connect, SortsServersByRank) {
  EmbeddedFleet fleet(3);
  auto client = Connected(fleet.Links());
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(client->servers()[rank].name, absl::StrCat("embedded-", rank));
  }
}

TEST(Connect, RefusesAnotherCluster) {
  server::ServerOptions base;
  base.cluster = "prod";
  EmbeddedFleet fleet(1, base);
  EXPECT_THAT(MessageOf(ConnectError(fleet.Links())),
              AllOf(HasSubstr("embedded-0"), HasSubstr("'prod'"), HasSubstr("'cistern'")));
}

TEST(Connect, RefusesAnIncompleteListOfServers) {
  EmbeddedFleet fleet(3);
  std::vector<ServerLink> links = fleet.Links();
  links.pop_back();
  EXPECT_THAT(MessageOf(ConnectError(links)),
              AllOf(HasSubstr("one of 3 servers"), HasSubstr("2 were given")));
}

TEST(Connect, RefusesTwoServersWithTheSameRank) {
  auto a = server::ServerNode::Create(Options(0, 2)).value(),
       b = server::ServerNode::Create(Options(0, 2)).value();
  EXPECT_THAT(MessageOf(ConnectError({a->link("a"), b->link("b")})),
              AllOf(HasSubstr("a and b"), HasSubstr("rank 0")));
}

TEST(Connect, RefusesDifferentShardNumbers) {
  server::ServerOptions other = Options(1, 2);
  other.shard_num = 32;
  auto a = server::ServerNode::Create(Options(0, 2)).value(),
       b = server::ServerNode::Create(other).value();
  EXPECT_THAT(MessageOf(ConnectError({a->link("a"), b->link("b")})),
              AllOf(HasSubstr("64"), HasSubstr("32"), HasSubstr("shard_num")));
}

TEST(Connect, RefusesAnEmptyList) {
  EXPECT_EQ(ConnectError({}).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Connect, NamesAServerThatLostItsState) {
  EmbeddedFleet fleet(2);
  auto client = Writer(fleet.Links());
  ASSERT_TRUE(CommitKeys(*client, TestKeys(10)).ok());
  fleet.Restart(1, Options(1, 2));
  EXPECT_THAT(MessageOf(ConnectError(fleet.Links())),
              AllOf(HasSubstr("server 1 (embedded-1) has no tables and is at pass 0"),
                    HasSubstr("restarted"), HasSubstr("load a saved model")));
}

TEST(CreateTables, NamesTheFirstDifferenceOfAnotherModel) {
  EmbeddedFleet fleet(2);
  auto client = Writer(fleet.Links());
  v1::Schema other = TestSchema();
  other.mutable_tables(kDeep)->set_dim(8);
  const std::string message = MessageOf(client->CreateTables(other));
  EXPECT_THAT(message,
              AllOf(HasSubstr("schema differs"), HasSubstr("'deep': dim is 6 here and 8 there"),
                    HasSubstr("start a fresh cluster")));
}

TEST(CreateTables, AcceptsTheSameTablesAgain) {
  EmbeddedFleet fleet(2);
  auto client = Writer(fleet.Links());
  ASSERT_TRUE(CommitKeys(*client, TestKeys(10)).ok());
  EXPECT_TRUE(client->CreateTables(TestSchema()).ok());
  auto reader = Connected(fleet.Links());
  EXPECT_EQ(reader->schema().tables_size(), 2);
  EXPECT_EQ(reader->committed_pass(), 1u);
  EXPECT_EQ(PullKeys(*reader, kDeep, TestKeys(10)).values,
            PullKeys(*client, kDeep, TestKeys(10)).values);
}

TEST(Identity, WithoutTablesIsRefusedOnceTablesExist) {
  EmbeddedFleet fleet(1);
  auto early = Connected(fleet.Links());
  auto writer = Writer(fleet.Links());
  v1::GetRowRequest request;
  *request.mutable_identity() = early->identity();
  v1::GetRowReply reply;
  EXPECT_THAT(MessageOf(fleet.node(0).control().GetRow(request, &reply)),
              HasSubstr("connect again"));
}

TEST(Identity, ARefusalNamesTheDifferingPart) {
  EmbeddedFleet fleet(1);
  auto client = Writer(fleet.Links());
  v1::PassRequest good;
  *good.mutable_identity() = client->identity();
  good.set_pass(1);
  v1::PassReply reply;
  ControlPlane& server = fleet.node(0).control();
  const auto refused = [&](const v1::PassRequest& request) {
    return MessageOf(server.BeginPass(request, &reply));
  };
  v1::PassRequest bad = good;
  bad.mutable_identity()->set_cluster_id(1);
  EXPECT_THAT(refused(bad), HasSubstr("cluster differs"));
  bad = good;
  bad.mutable_identity()->set_shard_map_hash(1);
  EXPECT_THAT(refused(bad), HasSubstr("shard map differs"));
  bad = good;
  bad.mutable_identity()->set_schema_hash(1);
  EXPECT_THAT(refused(bad), HasSubstr("schema differs"));
  bad = good;
  bad.mutable_identity()->set_epoch(good.identity().epoch() - 1);
  EXPECT_THAT(refused(bad), HasSubstr("fenced"));
  bad = good;
  bad.mutable_identity()->set_epoch(good.identity().epoch() + 1);
  EXPECT_THAT(refused(bad), HasSubstr("lost its state"));
  EXPECT_TRUE(server.BeginPass(good, &reply).ok());
}

TEST(Term, AClaimFencesTheOlderWriterOnBothPlanes) {
  EmbeddedFleet fleet(2);
  auto old_writer = Writer(fleet.Links());
  const std::vector<Key> keys = TestKeys(100);
  ASSERT_TRUE(old_writer->BeginPass().ok());
  auto new_writer = Writer(fleet.Links());
  const std::vector<float> values = ValuesOf(keys, 18);
  const std::vector<uint8_t> has_embedx(keys.size(), 1);
  EXPECT_THAT(MessageOf(old_writer->Push(kDeep, keys, values.data(), has_embedx.data())),
              HasSubstr("fenced"));
  EXPECT_THAT(MessageOf(PullKeys(*old_writer, kDeep, keys).status), HasSubstr("fenced"));
  EXPECT_THAT(MessageOf(old_writer->CommitPass()), HasSubstr("fenced"));
  EXPECT_TRUE(CommitKeys(*new_writer, keys).ok());
}

TEST(Term, AClaimDropsStagedPushes) {
  EmbeddedFleet fleet(1);
  auto old_writer = Writer(fleet.Links());
  const std::vector<Key> keys = TestKeys(100);
  const std::vector<float> values = ValuesOf(keys, 18);
  const std::vector<uint8_t> has_embedx(keys.size(), 1);
  ASSERT_TRUE(old_writer->BeginPass().ok());
  ASSERT_TRUE(old_writer->Push(kDeep, keys, values.data(), has_embedx.data()).ok());
  auto new_writer = Writer(fleet.Links());
  ASSERT_TRUE(new_writer->BeginPass().ok());
  ASSERT_TRUE(new_writer->CommitPass().ok());
  EXPECT_EQ(PullKeys(*new_writer, kDeep, {keys[0]}, true).has_embedx[0], kAbsent);
}

TEST(Term, AServerRestartedDuringAPassIsNamed) {
  EmbeddedFleet fleet(2);
  auto client = Writer(fleet.Links());
  ASSERT_TRUE(client->BeginPass().ok());
  // The link still points to the old server's address.
  auto fresh = server::ServerNode::Create(Options(1, 2)).value();
  v1::PreparePassRequest request;
  *request.mutable_identity() = client->identity();
  request.set_pass(1);
  v1::PreparePassReply reply;
  EXPECT_THAT(MessageOf(fresh->control().PreparePass(request, &reply)),
              HasSubstr("it was restarted and has lost its state"));
}

}  // namespace
}  // namespace cistern
