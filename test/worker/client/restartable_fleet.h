// Durable servers in this process that can be killed and restarted at the same address.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "server/service/server_node.h"
#include "worker/client/parameter_client.h"

namespace cistern {

// The address of one server: forwards calls to the current server process, if any.
//
// A test can intercept control calls: `before` runs before the call, `after` once the server has
// answered, each with the method's name; the caller gets the error that they return.
class Address : public ControlPlane, public DataPlane {
 public:
  // Waits for calls in flight.
  void Connect(server::ServerNode* node) {
    absl::MutexLock lock(&mutex_);
    node_ = node;
  }

  std::function<absl::Status(const char*method)> before, after;
  // Called before each call of the data plane, which `before` sees as "Frame".
  std::function<void(FrameKind)> before_frame;

  void Call(FrameKind kind, Frame request, absl::Duration timeout, Done done) override {
    if (before_frame != nullptr) before_frame(kind);
    const absl::Status sent = Ask(before, "Frame");
    absl::ReaderMutexLock lock(&mutex_);
    if (!sent.ok() || node_ == nullptr) {
      done(sent.ok() ? Nobody() : sent);
      return;
    }
    node_->data().Call(kind, std::move(request), timeout, std::move(done));
  }
#define CISTERN_METHOD(name, request, reply, length, effect, role)    \
  absl::Status name(const v1::request& in, v1::reply* out) override { \
    CISTERN_RETURN_IF_ERROR(Ask(before, #name));                      \
    {                                                                 \
      absl::ReaderMutexLock lock(&mutex_);                            \
      if (node_ == nullptr) return Nobody();                          \
      CISTERN_RETURN_IF_ERROR(node_->control().name(in, out));        \
    }                                                                 \
    return Ask(after, #name);                                         \
  }
  CISTERN_CONTROL_METHODS(CISTERN_METHOD)
#undef CISTERN_METHOD

 private:
  static absl::Status Ask(const std::function<absl::Status(const char*)>& who, const char* method) {
    return who == nullptr ? absl::OkStatus() : who(method);
  }
  static absl::Status Nobody() {
    return absl::UnavailableError("no server listens there");
  }

  absl::Mutex mutex_;
  server::ServerNode* node_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

class RestartableFleet {
 public:
  // base.local_state: server 0 has base.data_dir, and each other a folder of its own in it.
  RestartableFleet(uint32_t server_num, const server::ServerOptions& base)
      : base_(base), nodes_(server_num), addresses_(server_num) {
    base_.durable = true;
    for (uint32_t rank = 0; rank < server_num; ++rank) {
      addresses_[rank] = std::make_unique<Address>();
      EXPECT_EQ(Start(rank), absl::OkStatus());
    }
  }

  absl::Status Start(size_t rank) {
    server::ServerOptions options = base_;
    options.data_dir = data_dir(rank);
    options.rank = static_cast<uint32_t>(rank);
    options.server_num = static_cast<uint32_t>(nodes_.size());
    options.threads = 2;
    CISTERN_ASSIGN_OR_RETURN(nodes_[rank], server::ServerNode::Create(options));
    addresses_[rank]->Connect(nodes_[rank].get());
    return absl::OkStatus();
  }
  // Loses the server's memory; its disk stays.
  void Kill(size_t rank) {
    addresses_[rank]->Connect(nullptr);
    nodes_[rank].reset();
  }
  absl::Status Restart(size_t rank) {
    Kill(rank);
    return Start(rank);
  }

  std::vector<ServerLink> Links() {
    std::vector<ServerLink> links;
    for (size_t rank = 0; rank < nodes_.size(); ++rank) {
      links.push_back(
          {absl::StrCat("server-", rank), addresses_[rank].get(), addresses_[rank].get()});
    }
    return links;
  }
  std::string data_dir(size_t rank) const {
    return base_.local_state && rank > 0 ? absl::StrCat(base_.data_dir, "/server-", rank)
                                         : base_.data_dir;
  }
  Address& address(size_t rank) { return *addresses_[rank]; }
  server::ServerNode& node(size_t rank) { return *nodes_[rank]; }
  size_t size() const { return nodes_.size(); }

 private:
  server::ServerOptions base_;
  std::vector<std::unique_ptr<server::ServerNode>> nodes_;
  std::vector<std::unique_ptr<Address>> addresses_;
};

// Digests of all tables over the fleet, sparse tables first, computed from every row.
inline std::vector<uint64_t> DigestsOf(ParameterClient& client) {
  std::vector<uint64_t> digests;
  const auto add = [&](size_t at, uint64_t digest) {
    digests.resize(std::max(digests.size(), at + 1));
    digests[at] += digest;
  };
  for (const ServerLink& server : client.servers()) {
    v1::StatsRequest request;
    *request.mutable_identity() = client.identity();
    request.set_digest(true);
    v1::StatsReply reply;
    EXPECT_EQ(server.control->Stats(request, &reply), absl::OkStatus());
    for (int t = 0; t < reply.tables_size(); ++t) add(t, reply.tables(t).digest());
    for (int t = 0; t < reply.dense_tables_size(); ++t) {
      add(reply.tables_size() + t, reply.dense_tables(t).digest());
    }
  }
  return digests;
}

}  // namespace cistern
