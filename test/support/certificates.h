// A small authority and certificates of it in a folder, for tests of connections under TLS.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/tls/authority.h"
#include "common/tls/tls_files.h"
#include "test/support/temp_folder.h"

namespace cistern {

// An authority, and files of what it signs.
class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name = "tests")
      : pair_(*MakeAuthority(name, absl::Hours(24))) {
    WriteBytes(folder_ / "ca.crt", pair_.cert);
  }

  const KeyedCertificate& pair() const { return pair_; }

  // Writes a certificate for 127.0.0.1 and its key; an older one of this name is replaced.
  TlsFiles Issue(const std::string& name, const std::vector<Role>& roles,
                 const std::string& cluster = "cistern", absl::Duration lifetime = absl::Hours(1),
                 const std::vector<std::string>& hosts = {"127.0.0.1"}) const {
    CertificateRequest request;
    request.name = name;
    for (const Role role : roles) request.roles.push_back({cluster, role});
    request.hosts = hosts;
    request.lifetime = lifetime;
    const absl::StatusOr<KeyedCertificate> made = cistern::Issue(pair_, request);
    EXPECT_TRUE(made.ok()) << made.status();
    WriteBytes(folder_ / (name + ".crt"), made->cert);
    WriteBytes(folder_ / (name + ".key"), made->key);
    return {folder_ / (name + ".crt"), folder_ / (name + ".key"), folder_ / "ca.crt"};
  }

 private:
  TempFolder folder_;
  KeyedCertificate pair_;
};

}  // namespace cistern
