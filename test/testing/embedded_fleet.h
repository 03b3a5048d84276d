// Servers in the test's own process, and a client of them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "server/service/server_node.h"
#include "worker/client/parameter_client.h"

namespace cistern {

// Threads: one at a time.
class EmbeddedServers {
 public:
  explicit EmbeddedServers(uint32_t server_num, const std::string& data_dir = "") {
    for (uint32_t rank = 0; rank < server_num; ++rank) {
      ServerOptions options;
      options.rank = rank;
      options.server_num = server_num;
      options.shard_num = 8;
      options.threads = 2;
      options.data_dir = data_dir;
      absl::StatusOr<std::unique_ptr<ServerNode>> node = ServerNode::Create(options);
      EXPECT_TRUE(node.ok()) << node.status();
      nodes_.push_back(std::move(*node));
    }
  }

  std::unique_ptr<ParameterClient> Connect() {
    std::vector<ServerLink> links;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      links.push_back(nodes_[i]->link(absl::StrCat("embedded server ", i)));
    }
    auto client = ParameterClient::Connect(links, ClientOptions());
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? std::move(*client) : nullptr;
  }

 private:
  std::vector<std::unique_ptr<ServerNode>> nodes_;
};

}  // namespace cistern
