// What a certificate says: whose it is, for which hosts, until when, and the holder's roles.
//
// A role is a URI among the certificate's alternative names: "cistern://ads/worker" makes the
// holder a worker of cluster ads, and "cistern://*/reader" a reader of every cluster.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/role.h"
#include "common/base/status.h"

namespace cistern {

// A role on one cluster, or on all of them ("*").
struct Membership {
  std::string cluster;
  Role role = Role::kReader;

  bool operator==(const Membership&) const = default;
};

// "cistern://ads/worker"
std::string UriOf(const Membership& membership);
// kInvalidArgument if `uri` is not of that form.
absl::StatusOr<Membership> ParseRoleUri(absl::string_view uri);

struct Certificate {
  std::string name;                // the subject's common name
  std::vector<std::string> hosts;  // DNS names and IP addresses at which its holder answers
  std::vector<Membership> roles;   // URIs of other kinds are left out
  absl::Time valid_from, valid_until;
  std::string serial;  // in hexadecimal
  bool is_authority = false;

  // Whether the holder may make a call that needs `role` on `cluster`.
  bool May(Role role, absl::string_view cluster) const;
  // Its roles on `cluster`, for messages: "reader", "reader and worker"; "none".
  std::string RolesOn(absl::string_view cluster) const;
};

// Parses the first certificate of a PEM text, which may be anything. Signatures are not checked.
// kInvalidArgument if there is none, or it has no common name.
absl::StatusOr<Certificate> ParseCertificate(absl::string_view pem);

}  // namespace cistern
