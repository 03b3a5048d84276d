// A small authority and certificates of it in a folder, for tests of connections under TLS.
#pragma once

#include <string>
#include <vector>

#include "common/base/role.h"
#include "common/tls/authority.h"
#include "common/tls/openssl.h"
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
    const KeyedCertificate made = Sign(name, roles, cluster, lifetime, hosts);
    WriteBytes(folder_ / (name + ".crt"), made.cert);
    WriteBytes(folder_ / (name + ".key"), made.key);
    return {folder_ / (name + ".crt"), folder_ / (name + ".key"), folder_ / "ca.crt"};
  }
  // The same, of a certificate that ended an hour ago.
  TlsFiles IssueExpired(const std::string& name, const std::vector<Role>& roles) const {
    const TlsFiles files = Issue(name, roles);
    const OpenSslPtr<X509> certificate = ReadCertificate(ReadBytes(files.cert));
    const OpenSslPtr<EVP_PKEY> signer = ReadKey(pair_.key);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -2 * 60 * 60);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), -60 * 60);
    X509_sign(certificate.get(), signer.get(), EVP_sha256());
    const OpenSslPtr<BIO> out(BIO_new_file(files.cert.c_str(), "w"));
    PEM_write_bio_X509(out.get(), certificate.get());
    return files;
  }
  // The texts of such files. The certificate is named after its role.
  KeyedCertificate Sign(Role role, const std::string& cluster = "cistern",
                        absl::Duration lifetime = absl::Hours(1)) const {
    return Sign(std::string(NameOf(role)), {role}, cluster, lifetime, {"127.0.0.1"});
  }

 private:
  KeyedCertificate Sign(const std::string& name, const std::vector<Role>& roles,
                        const std::string& cluster, absl::Duration lifetime,
                        const std::vector<std::string>& hosts) const {
    CertificateRequest request;
    request.name = name;
    for (const Role role : roles) request.roles.push_back({cluster, role});
    request.hosts = hosts;
    request.lifetime = lifetime;
    return *cistern::Issue(pair_, request);
  }

  TempFolder folder_;
  KeyedCertificate pair_;
};

}  // namespace cistern
