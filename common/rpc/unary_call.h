// A unary call on the server, in gRPC's terms: it lives until gRPC is done with it, and counts as
// memory of its connection for as long.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <utility>

#include "common/rpc/connection_book.h"
#include "common/rpc/grpc_convert.h"

namespace cistern {

// Deletes itself once the reply is written, or cannot be. Finish is called exactly once.
class UnaryCall : public grpc::ServerUnaryReactor {
 public:
  explicit UnaryCall(ConnectionBook::Call held) : held_(std::move(held)) {}

  // Ends the call with a status.
  void FinishWith(const absl::Status& status) { Finish(ToGrpc(status)); }
  // Ends the call with the reply that its handler has set, of `bytes`.
  void FinishReply(uint64_t bytes) {
    held_.HoldReply(bytes);
    Finish(grpc::Status::OK);
  }

 protected:
  void OnDone() override { delete this; }

 private:
  ConnectionBook::Call held_;
};

}  // namespace cistern
