#include "test/siege/handshake.h"

#include <unistd.h>

#include <map>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/tls/openssl.h"
#include "test/siege/loopback.h"

namespace cistern {
namespace {

absl::Status Failed(absl::string_view what) {
  const std::string why = OpenSslError();
  return absl::UnavailableError(
      absl::StrCat(what, ": ", why.empty() ? "the connection was closed" : why));
}

void Show(SSL_CTX* context, const KeyedCertificate& own) {
  if (own.cert.empty()) return;
  SSL_CTX_use_certificate(context, ReadCertificate(own.cert).get());
  SSL_CTX_use_PrivateKey(context, ReadKey(own.key).get());
}

}  // namespace

absl::Status TryHandshake(int port, const HandshakeOptions& options) {
  static const std::map<std::string, int> kVersions = {{"1.0", TLS1_VERSION},
                                                       {"1.1", TLS1_1_VERSION},
                                                       {"1.2", TLS1_2_VERSION},
                                                       {"1.3", TLS1_3_VERSION}};
  const OpenSslPtr<SSL_CTX> context(SSL_CTX_new(TLS_client_method()));
  const int version = kVersions.at(options.version);
  SSL_CTX_set_security_level(context.get(), 0);  // old versions too
  SSL_CTX_set_min_proto_version(context.get(), version);
  SSL_CTX_set_max_proto_version(context.get(), version);
  static const unsigned char kH2[] = {2, 'h', '2'};
  SSL_CTX_set_alpn_protos(context.get(), kH2, sizeof(kH2));
  Show(context.get(), options.own);
  const int fd = ConnectToLoopback(port, options.limit);
  if (fd < 0) return absl::UnavailableError("nobody listens");
  const absl::Cleanup closes = [fd] { close(fd); };
  const OpenSslPtr<SSL> ssl(SSL_new(context.get()));
  SSL_set_fd(ssl.get(), fd);
  if (SSL_connect(ssl.get()) != 1) return Failed("the handshake");
  if (options.renegotiates) {
    if (SSL_renegotiate(ssl.get()) != 1 || SSL_do_handshake(ssl.get()) != 1) {
      return Failed("the second handshake");
    }
  }
  // With TLS 1.3 a refusal of the certificate comes after the handshake. A server that accepts it
  // sends its settings.
  char byte = 0;
  if (SSL_read(ssl.get(), &byte, 1) != 1) return Failed("the first byte");
  return absl::OkStatus();
}

}  // namespace cistern
