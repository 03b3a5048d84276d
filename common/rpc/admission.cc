#include "common/rpc/admission.h"

#include "common/wire/call_peer.h"

namespace cistern {

absl::Status Admission::Admit(const Caller& caller, absl::string_view method, Role role) const {
  absl::Status status = access->Check(caller, method, role);
  if (status.ok()) return status;
  const CallPeer peer(caller.text());
  if (refused) refused(method, status);
  if (audit != nullptr) audit->Write(caller, access->cluster(), method, nullptr, status);
  return status;
}

void Admission::Record(const Caller& caller, absl::string_view method, Role role,
                       const google::protobuf::Message& request,
                       const absl::Status& outcome) const {
  if (audit == nullptr || role == Role::kReader) return;
  audit->Write(caller, access->cluster(), method, &request, outcome);
}

}  // namespace cistern
