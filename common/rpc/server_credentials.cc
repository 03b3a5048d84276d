#include "common/rpc/server_credentials.h"

#include <grpc/grpc.h>

namespace cistern {

RenewedCredentials::RenewedCredentials(const TlsPem& tls) : tls_(tls) {
  const grpc_ssl_client_certificate_request_type request =
      tls.ca.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                     : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
  // The credentials take the options.
  credentials_ = grpc_ssl_server_credentials_create_with_options(
      grpc_ssl_server_credentials_create_options_using_config_fetcher(
          request, &RenewedCredentials::Fetch, this));
}

RenewedCredentials::~RenewedCredentials() {
  grpc_server_credentials_release(credentials_);
}

void RenewedCredentials::Renew(const TlsPem& tls) {
  const absl::MutexLock lock(&mutex_);
  tls_ = tls;
  fetched_ = false;
}

int RenewedCredentials::AddPortToServer(const std::string& address, grpc_server* server) {
  return grpc_server_add_http2_port(server, address.c_str(), credentials_);
}

grpc_ssl_certificate_config_reload_status RenewedCredentials::Fetch(
    void* self, grpc_ssl_server_certificate_config** config) {
  auto* const credentials = static_cast<RenewedCredentials*>(self);
  const absl::MutexLock lock(&credentials->mutex_);
  if (credentials->fetched_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  const TlsPem& tls = credentials->tls_;
  const grpc_ssl_pem_key_cert_pair pair = {tls.key.c_str(), tls.cert.c_str()};
  // gRPC insists on an authority even where it asks for no certificate of clients.
  const std::string& authority = tls.ca.empty() ? tls.cert : tls.ca;
  *config = grpc_ssl_server_certificate_config_create(authority.c_str(), &pair, 1);
  credentials->fetched_ = true;
  return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

}  // namespace cistern
