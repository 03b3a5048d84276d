#include "common/base/role.h"

#include "absl/strings/str_cat.h"

namespace cistern {

absl::string_view NameOf(Role role) {
  switch (role) {
    case Role::kServer:
      return "server";
    case Role::kReader:
      return "reader";
    case Role::kWorker:
      return "worker";
    case Role::kAdmin:
      return "admin";
  }
  return "";
}

absl::StatusOr<Role> ParseRole(absl::string_view name) {
  for (const Role role : {Role::kServer, Role::kReader, Role::kWorker, Role::kAdmin}) {
    if (name == NameOf(role)) return role;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "' is not a role: the roles are server, reader, worker and admin"));
}

}  // namespace cistern
