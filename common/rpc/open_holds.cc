#include "common/rpc/open_holds.h"

#include <utility>

#include "common/rpc/grpc_convert.h"
#include "common/rpc/guarded.h"

namespace cistern {
namespace {

constexpr size_t kMaxHolds = 64;  // a fleet has one writer; other holds are of earlier writers

}  // namespace

// Deletes itself when gRPC is done with it.
class OpenHolds::Hold : public grpc::ServerUnaryReactor {
 public:
  Hold(OpenHolds* holds, const v1::HoldTermRequest& request, ConnectionBook::Call held)
      : holds_(holds), request_(request), held_(std::move(held)) {}

  void Begin() {
    if (!holds_->Enter(this)) {
      return End(absl::UnavailableError(absl::StrCat("this server is stopping, or already has ",
                                                     kMaxHolds, " HoldTerm calls open")));
    }
    const absl::Status begun = Guarded([&] { return holds_->plane_->BeginHold(request_); });
    begun_ = begun.ok();
    if (!begun_) return End(begun);
    StartSendInitialMetadata();
  }
  // Ends the call unless it has already ended.
  void End(const absl::Status& status) {
    if (!ended_.exchange(true)) Finish(ToGrpc(status));
  }

 private:
  void OnCancel() override { End(absl::CancelledError("the writer's connection has ended")); }
  void OnDone() override {
    holds_->Leave(this);
    if (begun_) holds_->plane_->EndHold(request_);
    delete this;
  }

  OpenHolds* const holds_;
  const v1::HoldTermRequest request_;
  const ConnectionBook::Call held_;
  bool begun_ = false;
  std::atomic<bool> ended_{false};
};

grpc::ServerUnaryReactor* OpenHolds::Open(const v1::HoldTermRequest& request,
                                          ConnectionBook::Call held) {
  auto* hold = new Hold(this, request, std::move(held));
  hold->Begin();
  return hold;
}

bool OpenHolds::Enter(Hold* hold) {
  absl::MutexLock lock(&mutex_);
  return !stopped_ && open_.size() < kMaxHolds && open_.insert(hold).second;
}

void OpenHolds::Leave(Hold* hold) {
  absl::MutexLock lock(&mutex_);
  open_.erase(hold);
}

void OpenHolds::Stop() {
  absl::MutexLock lock(&mutex_);  // calls that end now call Leave only after the loop
  stopped_ = true;
  for (Hold* hold : open_) hold->End(absl::UnavailableError("this server is stopping"));
}

}  // namespace cistern
