// A unary gRPC call on the server. It lives until gRPC is done with it, and until then its memory
// counts towards its connection.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <utility>

#include "common/rpc/connection_book.h"
#include "common/rpc/grpc_convert.h"

namespace cistern {

// Deletes itself once the reply is written or has failed. Finish is called exactly once.
class UnaryCall : public grpc::ServerUnaryReactor {
 public:
  explicit UnaryCall(ConnectionBook::Call held) : held_(std::move(held)) {}

  // Ends the call with a status.
  void FinishWith(const absl::Status& status) { Finish(ToGrpc(status)); }
  // Ends the call with the reply of `bytes` that its handler has set.
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
