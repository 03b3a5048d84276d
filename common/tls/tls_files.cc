#include "common/tls/tls_files.h"

#include <openssl/err.h>

#include <cstdlib>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "common/io/file.h"
#include "common/tls/openssl.h"

namespace cistern {
namespace {

constexpr uint64_t kMaxPemBytes = 1 << 20;

absl::Status ReadPem(const std::string& path, const std::string& option, absl::string_view content,
                     std::string* pem) {
  // Follows links: the secrets of Kubernetes and the certificates of certbot are links.
  absl::StatusOr<std::string> read = ReadFile(path, kMaxPemBytes);
  if (!read.ok()) {
    const bool may_pass =
        absl::IsNotFound(read.status()) || absl::IsPermissionDenied(read.status());
    return WithOptions(WithCode(read.status(), may_pass ? absl::StatusCode::kFailedPrecondition
                                                        : absl::StatusCode::kInvalidArgument),
                       {option});
  }
  if (!absl::StrContains(*read, "-----BEGIN ") || !absl::StrContains(*read, content)) {
    return WithOptions(absl::InvalidArgumentError(absl::StrCat(path, " holds no PEM ", content,
                                                               "; convert it with openssl")),
                       {option});
  }
  if (absl::StrContains(*read, "ENCRYPTED")) {
    return WithOptions(absl::InvalidArgumentError(absl::StrCat(
                           path,
                           " is encrypted, and nobody is asked for its password; write it "
                           "without one: openssl pkey -in ",
                           path, " -out FILE")),
                       {option});
  }
  *pem = *std::move(read);
  return absl::OkStatus();
}

// Calls `add` with each certificate of a PEM text, until one is refused; the number that was added.
template <class Add>
int ForCertificates(const std::string& pem, const Add& add) {
  const OpenSslPtr<BIO> reader = ReaderOf(pem);
  int added = 0;
  while (reader != nullptr) {
    const OpenSslPtr<X509> next(PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr));
    if (next == nullptr || !add(next.get())) break;
    ++added;
  }
  ERR_clear_error();  // the end of the text is one
  return added;
}

}  // namespace

TlsFiles TlsFromEnvironment() {
  const auto value = [](const char* name) -> std::string {
    const char* const text = std::getenv(name);
    return text == nullptr ? "" : text;
  };
  return {value("CISTERN_TLS_CERT"), value("CISTERN_TLS_KEY"), value("CISTERN_TLS_CA")};
}

absl::StatusOr<TlsPem> ReadTls(const TlsFiles& files, const std::string& ca_option) {
  TlsPem pem;
  if (!files.on()) return pem;
  if (files.cert.empty() || files.key.empty()) {
    return WithOptions(absl::InvalidArgumentError(
                           "TLS needs both a certificate and its key; give the other one too"),
                       {"tls_cert", "tls_key"});
  }
  CISTERN_RETURN_IF_ERROR(ReadPem(files.cert, "tls_cert", "CERTIFICATE", &pem.cert));
  CISTERN_RETURN_IF_ERROR(ReadPem(files.key, "tls_key", "PRIVATE KEY", &pem.key));
  if (files.ca.empty()) return pem;
  CISTERN_RETURN_IF_ERROR(ReadPem(files.ca, ca_option, "CERTIFICATE", &pem.ca));
  return pem;
}

absl::StatusOr<TlsPem> ReadMutualTls(const TlsFiles& files) {
  if (files.on() && files.ca.empty()) {
    return WithOptions(
        absl::InvalidArgumentError("TLS within a fleet needs the authority whose certificates all "
                                   "its servers, workers and users show"),
        {"tls_ca"});
  }
  CISTERN_ASSIGN_OR_RETURN(const TlsPem pem, ReadTls(files));
  if (!pem.on()) return pem;
  absl::Status checked = CheckPair(pem);
  checked.Update(checked.ok() ? CheckTrusted(pem) : absl::OkStatus());
  if (!checked.ok()) {
    return WithOptions(AddContext(checked, files.cert), {"tls_ca", "tls_cert", "tls_key"});
  }
  return pem;
}

absl::Status CheckPair(const TlsPem& tls) {
  ERR_clear_error();
  const OpenSslPtr<X509> certificate = ReadCertificate(tls.cert);
  const OpenSslPtr<EVP_PKEY> key = ReadKey(tls.key);
  if (certificate == nullptr || key == nullptr ||
      X509_check_private_key(certificate.get(), key.get()) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("certificate and key cannot be used together: ", OpenSslError()));
  }
  if (tls.ca.empty() || ForCertificates(tls.ca, [](X509*) { return true; }) > 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("the authority holds no certificate that can be used");
}

absl::Status CheckTrusted(const TlsPem& tls) {
  X509_STORE* const authorities = X509_STORE_new();
  X509_STORE_CTX* const check = X509_STORE_CTX_new();
  STACK_OF(X509)* const chain = sk_X509_new_null();
  const auto freed = absl::MakeCleanup([&] {
    sk_X509_pop_free(chain, X509_free);
    X509_STORE_CTX_free(check);
    X509_STORE_free(authorities);
  });
  const OpenSslPtr<X509> certificate = ReadCertificate(tls.cert);
  if (authorities == nullptr || check == nullptr || chain == nullptr) {
    return absl::ResourceExhaustedError("out of memory");
  }
  ForCertificates(tls.ca, [&](X509* next) { return X509_STORE_add_cert(authorities, next) == 1; });
  ForCertificates(tls.cert, [&](X509* next) {
    return X509_up_ref(next) == 1 && sk_X509_push(chain, next) > 0;
  });
  if (X509_STORE_CTX_init(check, authorities, certificate.get(), chain) == 1 &&
      X509_verify_cert(check) == 1) {
    return absl::OkStatus();
  }
  const char* const why = X509_verify_cert_error_string(X509_STORE_CTX_get_error(check));
  ERR_clear_error();
  return absl::InvalidArgumentError(
      absl::StrCat("this certificate is not accepted under its authority: ", why));
}

}  // namespace cistern
