#include "serve/server/tls.h"

#include "absl/strings/match.h"
#include "common/io/file_system.h"

namespace cistern {
namespace {

constexpr uint64_t kMaxPemBytes = 1 << 20;

absl::Status ReadPem(const std::string& path, absl::string_view flag, absl::string_view content,
                     std::string* pem) {
  LocalFileSystem files;
  absl::StatusOr<std::string> read = ReadWhole(files, path, kMaxPemBytes);
  if (!read.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(flag, " ", path, ": ", read.status().message()));
  }
  if (!absl::StrContains(*read, "-----BEGIN ") || !absl::StrContains(*read, content)) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " ", path, " holds no PEM ", content, "; convert it with openssl"));
  }
  *pem = *std::move(read);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TlsPem> ReadTls(const TlsFiles& files) {
  TlsPem pem;
  if (files.cert.empty() && files.key.empty() && files.client_ca.empty()) return pem;
  if (files.cert.empty() || files.key.empty()) {
    return absl::InvalidArgumentError(
        "TLS needs both --tls-cert and --tls-key; give the other one too");
  }
  CISTERN_RETURN_IF_ERROR(ReadPem(files.cert, "--tls-cert", "CERTIFICATE", &pem.cert));
  CISTERN_RETURN_IF_ERROR(ReadPem(files.key, "--tls-key", "PRIVATE KEY", &pem.key));
  if (files.client_ca.empty()) return pem;
  CISTERN_RETURN_IF_ERROR(
      ReadPem(files.client_ca, "--tls-client-ca", "CERTIFICATE", &pem.client_ca));
  return pem;
}

}  // namespace cistern
