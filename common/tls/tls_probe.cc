#include "common/tls/tls_probe.h"

#include <netdb.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/cleanup/cleanup.h"
#include "common/tls/openssl.h"

namespace cistern {
namespace {

constexpr unsigned char kHttp2[] = {2, 'h', '2'};  // the protocols offered, as gRPC does

// A connected socket whose calls take at most `limit`; -1 if no server is reached.
int Connected(const HostPort& server, absl::Duration limit) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(server.host.c_str(), std::to_string(server.port).c_str(), &hints, &found) != 0) {
    return -1;
  }
  const auto freed = absl::MakeCleanup([found] { freeaddrinfo(found); });
  const timeval time = absl::ToTimeval(limit);
  for (const addrinfo* to = found; to != nullptr; to = to->ai_next) {
    const int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));  // also of connect
    if (connect(fd, to->ai_addr, to->ai_addrlen) == 0) return fd;
    close(fd);
  }
  return -1;
}

bool IsAddressText(const std::string& host) {
  ASN1_OCTET_STRING* const address = a2i_IPADDRESS(host.c_str());
  ASN1_OCTET_STRING_free(address);
  return address != nullptr;
}

absl::Status Refused(absl::string_view why) {
  return WithFix(absl::PermissionDeniedError(
                     absl::StrCat("the server does not accept this program's certificate: ", why)),
                 "use a certificate of the fleet's authority that is valid now");
}

// What TLS said last, after a failure.
absl::Status WhyFailed(SSL* ssl) {
  const long verified = SSL_get_verify_result(ssl);   // NOLINT(runtime/int): OpenSSL's type
  const unsigned long error = ERR_peek_last_error();  // NOLINT(runtime/int)
  ERR_clear_error();
  if (verified == X509_V_ERR_HOSTNAME_MISMATCH || verified == X509_V_ERR_IP_ADDRESS_MISMATCH) {
    return WithOptions(
        WithFix(absl::PermissionDeniedError("the server's certificate does not name this host"),
                "call it by a name of its certificate, or issue one with this name"),
        {"certs.issue.hosts"});
  }
  if (verified != X509_V_OK) {
    return WithFix(
        absl::PermissionDeniedError(absl::StrCat("the server's certificate is not accepted: ",
                                                 X509_verify_cert_error_string(verified))),
        "use the certificate of the authority that signed it, and a server's certificate "
        "that is valid now");
  }
  const int reason = ERR_GET_REASON(error);
  if (reason > SSL_AD_REASON_OFFSET) {
    const char* const text = ERR_reason_error_string(error);
    return Refused(text == nullptr ? "refused" : text);
  }
  if (reason == SSL_R_WRONG_VERSION_NUMBER) {
    return WithFix(absl::FailedPreconditionError("the server speaks plain text, without TLS"),
                   "leave the certificates out, or start the server with some");
  }
  return absl::OkStatus();
}

// A TLS client for `server`; pem.on() if it shows and checks certificates.
OpenSslPtr<SSL_CTX> ContextOf(const TlsFiles& files, bool shows) {
  OpenSslPtr<SSL_CTX> context(SSL_CTX_new(TLS_client_method()));
  if (context == nullptr) return nullptr;
  SSL_CTX_set_alpn_protos(context.get(), kHttp2, sizeof(kHttp2));
  if (!shows) return context;
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  if (SSL_CTX_load_verify_file(context.get(), files.ca.c_str()) != 1 ||
      SSL_CTX_use_certificate_chain_file(context.get(), files.cert.c_str()) != 1 ||
      SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return nullptr;
  }
  return context;
}

}  // namespace

absl::Status ProbeTls(const HostPort& server, const TlsFiles& files, absl::Duration limit) {
  const int fd = Connected(server, limit);
  if (fd < 0) return absl::OkStatus();
  const auto closed = absl::MakeCleanup([fd] { close(fd); });
  const OpenSslPtr<SSL_CTX> context = ContextOf(files, files.on());
  const OpenSslPtr<SSL> ssl(context == nullptr ? nullptr : SSL_new(context.get()));
  if (ssl == nullptr || SSL_set_fd(ssl.get(), fd) != 1) return absl::OkStatus();
  if (files.on()) {
    if (IsAddressText(server.host)) {
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl.get()), server.host.c_str());
    } else {
      SSL_set_tlsext_host_name(ssl.get(), server.host.c_str());
      SSL_set1_host(ssl.get(), server.host.c_str());
    }
  }
  ERR_clear_error();
  const bool established = SSL_connect(ssl.get()) == 1;
  if (!files.on()) {
    ERR_clear_error();
    if (!established) return absl::OkStatus();
    return WithFix(
        absl::FailedPreconditionError("the server requires TLS, and this program does not use it"),
        "name the authority, a certificate and its key: see docs/security.md");
  }
  // In TLS 1.3 a server's refusal of the certificate arrives as the first thing that is read.
  char byte = 0;
  if (established && SSL_read(ssl.get(), &byte, 1) == 1) return absl::OkStatus();
  const absl::Status why = WhyFailed(ssl.get());
  // gRPC's server does not always say it, and just closes the connection.
  return why.ok() && established ? Refused("the connection was closed") : why;
}

}  // namespace cistern
