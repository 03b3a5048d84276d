#include "worker/client/after_save.h"

namespace cistern {

absl::Status UpdateAfterSave(ParameterClient& client, v1::SaveMode mode, uint32_t day) {
  return client.ChangeInPlace([&](size_t, ControlPlane& server, uint64_t changes) {
    v1::UpdateAfterSaveRequest request;
    *request.mutable_identity() = client.identity();
    request.set_mode(mode);
    request.set_day(day);
    request.set_changes(changes);
    v1::PassReply reply;
    return server.UpdateAfterSave(request, &reply);
  });
}

}  // namespace cistern
