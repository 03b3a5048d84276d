// A fleet of servers in this process, for client tests: real tables and passes, no sockets.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "server/service/server_node.h"
#include "worker/client/parameter_client.h"

namespace cistern {

// The servers of one fleet. Links() returns them out of rank order.
class EmbeddedFleet {
 public:
  explicit EmbeddedFleet(uint32_t server_num, const server::ServerOptions& base = {}) {
    for (uint32_t rank = 0; rank < server_num; ++rank) {
      server::ServerOptions options = base;
      options.rank = rank;
      options.server_num = server_num;
      options.threads = 2;
      nodes_.push_back(server::ServerNode::Create(options).value());
    }
  }

  std::vector<ServerLink> Links() {
    std::vector<ServerLink> links;
    for (size_t rank = nodes_.size(); rank-- > 0;) {
      links.push_back(nodes_[rank]->link(absl::StrCat("embedded-", rank)));
    }
    return links;
  }
  server::ServerNode& node(size_t rank) { return *nodes_[rank]; }
  // Replaces a server with an empty one.
  void Restart(size_t rank, server::ServerOptions options) {
    nodes_[rank] = server::ServerNode::Create(options).value();
  }

 private:
  std::vector<std::unique_ptr<server::ServerNode>> nodes_;
};

// Two sparse tables (ctr with embedx, embedding with Adam) and one dense table.
inline v1::Schema TestSchema() {
  v1::Schema schema;
  v1::TableSpec* ctr = schema.add_tables();
  ctr->set_name("ctr");
  ctr->set_accessor(v1::TableSpec::CTR);
  ctr->set_dim(4);
  ctr->mutable_rule()->set_kind(v1::UpdateRule::ADAGRAD_SHARED);
  ctr->mutable_rule()->set_initial_g2sum(3);
  ctr->mutable_ctr()->set_click_coeff(1);
  ctr->mutable_ctr()->set_embedx_threshold(10);
  v1::TableSpec* wide = schema.add_tables();
  wide->set_name("deep");
  wide->set_dim(6);
  wide->mutable_rule()->set_kind(v1::UpdateRule::ADAM);
  wide->mutable_rule()->set_beta1(0.9f);
  wide->mutable_rule()->set_beta2(0.999f);
  wide->mutable_rule()->set_epsilon(1e-7f);
  wide->mutable_initializer()->set_kind(v1::Initializer::UNIFORM);
  wide->mutable_initializer()->set_range(0.1f);
  wide->set_seed(17);
  v1::DenseTableSpec* dense = schema.add_dense_tables();
  dense->set_name("mlp");
  dense->set_rows(1000);
  for (const char* column : {"w", "m", "v"}) dense->add_columns(column);
  return schema;
}
inline constexpr TableId kCtr = 0, kDeep = 1, kMlp = 0;

// The value that a test writes to a cell of row `key`; differs between keys and between cells.
inline float CellOf(Key key, uint32_t cell) {
  return static_cast<float>(key % 1000) + 0.001f * static_cast<float>(cell);
}

inline std::vector<float> ValuesOf(absl::Span<const Key> keys, uint32_t stride) {
  std::vector<float> values;
  for (const Key key : keys) {
    for (uint32_t cell = 0; cell < stride; ++cell) values.push_back(CellOf(key, cell));
  }
  return values;
}

// n distinct, unsorted keys, spread over all shards.
inline std::vector<Key> TestKeys(size_t n, Key first = 1) {
  std::vector<Key> keys(n);
  for (size_t i = 0; i < n; ++i) keys[i] = first + (i * 7919) % n * 1000003;
  return keys;
}

inline std::unique_ptr<ParameterClient> Connected(std::vector<ServerLink> links,
                                                  const ClientOptions& options = {}) {
  absl::StatusOr<std::unique_ptr<ParameterClient>> client =
      ParameterClient::Connect(std::move(links), options);
  EXPECT_TRUE(client.ok()) << client.status();
  return client.ok() ? *std::move(client) : nullptr;
}

// A connected client that has created the tables and is the only writer.
inline std::unique_ptr<ParameterClient> Writer(std::vector<ServerLink> links,
                                               const ClientOptions& options = {}) {
  auto client = Connected(std::move(links), options);
  EXPECT_EQ(client->CreateTables(TestSchema()), absl::OkStatus());
  EXPECT_EQ(client->ClaimTerm(), absl::OkStatus());
  return client;
}

// Commits one pass that pushes all cells of `keys` in kDeep.
inline absl::Status CommitKeys(ParameterClient& client, absl::Span<const Key> keys) {
  const std::vector<float> values = ValuesOf(keys, client.layout(kDeep).full_floats());
  const std::vector<uint8_t> has_embedx(keys.size(), 1);
  CISTERN_RETURN_IF_ERROR(client.BeginPass());
  CISTERN_RETURN_IF_ERROR(client.Push(kDeep, keys, values.data(), has_embedx.data()));
  return client.CommitPass();
}

// Shrinks the tables of all servers, as a commit of its own.
inline absl::Status Shrink(ParameterClient& client) {
  return client.ChangeInPlace([&](size_t, ControlPlane& server, uint64_t changes) {
    v1::ShrinkRequest request;
    *request.mutable_identity() = client.identity();
    request.set_changes(changes);
    v1::ShrinkReply reply;
    return server.Shrink(request, &reply);
  });
}

struct Pulled {
  absl::Status status;
  std::vector<float> values;
  std::vector<uint8_t> has_embedx;
};

inline Pulled PullKeys(ParameterClient& client, TableId table, absl::Span<const Key> keys,
                       bool absent_is_zero = false) {
  Pulled pulled;
  pulled.values.resize(keys.size() * client.layout(table).full_floats(), -1.0f);
  pulled.has_embedx.resize(keys.size(), 77);
  pulled.status =
      client.Pull(table, keys, absent_is_zero, pulled.values.data(), pulled.has_embedx.data());
  return pulled;
}

}  // namespace cistern
