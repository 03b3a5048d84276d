#include "serve/server/tls.h"

#include <gnutls/gnutls.h>

#include <filesystem>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "common/io/file_system.h"

namespace cistern {
namespace {

constexpr uint64_t kMaxPemBytes = 1 << 20;

absl::Status ReadPem(const std::string& path, const std::string& option, absl::string_view content,
                     std::string* pem) {
  // Secrets of Kubernetes and certificates of certbot are symbolic links, which are replaced.
  std::error_code error;
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  LocalFileSystem files;
  absl::StatusOr<std::string> read = ReadWhole(files, error ? path : target.string(), kMaxPemBytes);
  if (!read.ok()) {
    return WithOptions(
        AddContext(WithCode(read.status(), absl::StatusCode::kInvalidArgument), path), {option});
  }
  if (!absl::StrContains(*read, "-----BEGIN ") || !absl::StrContains(*read, content)) {
    return WithOptions(absl::InvalidArgumentError(absl::StrCat(path, " holds no PEM ", content,
                                                               "; convert it with openssl")),
                       {option});
  }
  *pem = *std::move(read);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TlsPem> ReadTls(const TlsFiles& files) {
  TlsPem pem;
  if (files.cert.empty() && files.key.empty() && files.client_ca.empty()) return pem;
  if (files.cert.empty() || files.key.empty()) {
    return WithOptions(absl::InvalidArgumentError(
                           "TLS needs both a certificate and its key; give the other one too"),
                       {"tls_cert", "tls_key"});
  }
  CISTERN_RETURN_IF_ERROR(ReadPem(files.cert, "tls_cert", "CERTIFICATE", &pem.cert));
  CISTERN_RETURN_IF_ERROR(ReadPem(files.key, "tls_key", "PRIVATE KEY", &pem.key));
  if (files.client_ca.empty()) return pem;
  CISTERN_RETURN_IF_ERROR(ReadPem(files.client_ca, "tls_client_ca", "CERTIFICATE", &pem.client_ca));
  return pem;
}

namespace {

gnutls_datum_t DatumOf(const std::string& pem) {
  return {reinterpret_cast<unsigned char*>(const_cast<char*>(pem.data())),
          static_cast<unsigned>(pem.size())};
}

}  // namespace

absl::Status CheckPair(const TlsPem& tls) {
  gnutls_certificate_credentials_t credentials = nullptr;
  if (gnutls_certificate_allocate_credentials(&credentials) < 0) {
    return absl::ResourceExhaustedError("out of memory");
  }
  const auto freed = absl::MakeCleanup([&] { gnutls_certificate_free_credentials(credentials); });
  const gnutls_datum_t cert = DatumOf(tls.cert), key = DatumOf(tls.key),
                       ca = DatumOf(tls.client_ca);
  const int paired =
      gnutls_certificate_set_x509_key_mem(credentials, &cert, &key, GNUTLS_X509_FMT_PEM);
  if (paired < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("certificate and key cannot be used together: ", gnutls_strerror(paired)));
  }
  if (tls.client_ca.empty()) return absl::OkStatus();
  const int trusted = gnutls_certificate_set_x509_trust_mem(credentials, &ca, GNUTLS_X509_FMT_PEM);
  if (trusted > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the authority of clients holds no certificate that can be used",
                   trusted < 0 ? absl::StrCat(": ", gnutls_strerror(trusted)) : ""));
}

}  // namespace cistern
