#include "common/rpc/channel_security.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

namespace cistern {
namespace {

constexpr unsigned kReadEverySeconds = 10;

}  // namespace

absl::StatusOr<std::shared_ptr<const ChannelSecurity>> SecureChannels(const TlsFiles& files) {
  CISTERN_ASSIGN_OR_RETURN(const TlsPem pem, ReadMutualTls(files));
  if (!pem.on()) return std::shared_ptr<const ChannelSecurity>();
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(
      std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
          files.key, files.cert, files.ca, kReadEverySeconds));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  auto security = std::make_shared<ChannelSecurity>();
  security->credentials = grpc::experimental::TlsCredentials(options);
  if (security->credentials == nullptr) return absl::InternalError("gRPC refuses to use TLS");
  return std::shared_ptr<const ChannelSecurity>(std::move(security));
}

}  // namespace cistern
