// A folder with an authority and the certificates that it has signed:
//
//   ca.crt, ca.key          the authority; with its key, anyone can make a certificate of any role
//   server-0.crt, .key      a certificate and its key, by name
//
// Certificates are for everyone to read, keys for their owner. A machine gets ca.crt and its own
// pair; ca.key stays where this folder is.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/status.h"
#include "common/io/file_system.h"
#include "common/tls/authority.h"

namespace cistern::app {

struct InitCertificatesOptions {
  std::string folder;
  std::string name = "Cistern authority";
  uint64_t days = 3650;  // until it expires
};

// Makes the authority. kAlreadyExists if the folder has one. kInvalidArgument: a bad name or number
// of days.
absl::StatusOr<Certificate> InitCertificates(FileSystem& files,
                                             const InitCertificatesOptions& options);

struct IssueCertificateOptions {
  std::string folder;
  std::string name;                                 // also of its files
  std::vector<std::string> roles;                   // "server", "reader", "worker", "admin"
  std::vector<std::string> clusters = {"cistern"};  // the roles hold on these; "*": on all
  std::vector<std::string> hosts;  // host names and IP addresses; required for a server
  uint64_t days = 90;
};

// Signs a new certificate with a new key. kAlreadyExists if the name is taken, kInvalidArgument: a
// bad option. kFailedPrecondition: the folder has no authority. All with fixes.
absl::StatusOr<Certificate> IssueCertificate(FileSystem& files,
                                             const IssueCertificateOptions& options);

struct ListedCertificate {
  std::string file;  // its name without .crt
  Certificate certificate;
  absl::Status state;  // why it is not accepted now; OK: it is
};

// The authority first, then the others by name. A file that is no certificate has its error as
// state.
absl::StatusOr<std::vector<ListedCertificate>> ListCertificates(FileSystem& files,
                                                                const std::string& folder);

struct RenewCertificatesOptions {
  std::string folder;
  std::vector<std::string> names;  // empty: all that expire within `within_days`
  uint64_t within_days = 30;
  uint64_t days = 90;  // from now
};

// Signs certificates anew, with the same names, roles, hosts and keys; each file is replaced at
// once. The authority is renewed if it is named ("ca"), and what it signed before stays valid.
// Returns the names. Errors as IssueCertificate; kNotFound: no such certificate.
absl::StatusOr<std::vector<std::string>> RenewCertificates(FileSystem& files,
                                                           const RenewCertificatesOptions& options);

}  // namespace cistern::app
