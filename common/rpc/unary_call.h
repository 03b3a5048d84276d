// A unary gRPC call on the server. It lives until gRPC is done with it, and until then its memory
// counts towards its connection.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/steady_time.h"
#include "common/rpc/call_trace.h"
#include "common/rpc/connection_book.h"
#include "common/rpc/grpc_convert.h"

namespace cistern {

// Deletes itself once the reply is written or has failed. Finish is called exactly once. If the
// caller traces the call, the answer says how long it took.
class UnaryCall : public grpc::ServerUnaryReactor {
 public:
  // context: of the call, if its caller traces it; else null.
  explicit UnaryCall(ConnectionBook::Call held, grpc::CallbackServerContext* context = nullptr)
      : traced_(context), held_(std::move(held)) {}

  // Ends the call with a status.
  void FinishWith(const absl::Status& status) {
    ReportTime();
    Finish(ToGrpc(status));
  }
  // Ends the call with the reply of `bytes` that its handler has set.
  void FinishReply(uint64_t bytes) {
    held_.HoldReply(bytes);
    ReportTime();
    Finish(grpc::Status::OK);
  }

 protected:
  void OnDone() override { delete this; }

 private:
  void ReportTime() {
    if (traced_ == nullptr) return;
    const double seconds = SecondsSince(begin_);
    traced_->AddTrailingMetadata(kHandledName, absl::StrCat(static_cast<uint64_t>(seconds * 1e6)));
  }

  const SteadyTime begin_ = std::chrono::steady_clock::now();
  grpc::CallbackServerContext* const traced_;  // null: the call is not traced
  ConnectionBook::Call held_;
};

}  // namespace cistern
