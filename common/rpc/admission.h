// What happens to every call for the sake of security: its caller's role is checked, refusals are
// reported, and what changes something is written to the audit log.
#pragma once

#include <google/protobuf/message.h>

#include <functional>

#include "common/rpc/audit_log.h"
#include "common/rpc/call_access.h"

namespace cistern {

// Threads: any thread.
struct Admission {
  CallAccess* access = nullptr;
  AuditLog* audit = nullptr;  // null: none
  // Called for each call that is refused for its caller's roles.
  std::function<void(absl::string_view method, const absl::Status&)> refused;

  // kPermissionDenied unless the caller has `role`.
  absl::Status Admit(const Caller& caller, absl::string_view method, Role role) const;
  // After an admitted call. Calls that only read are not recorded.
  void Record(const Caller& caller, absl::string_view method, Role role,
              const google::protobuf::Message& request, const absl::Status& outcome) const;
};

}  // namespace cistern
