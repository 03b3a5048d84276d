#include "worker/group/secure_channel.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "common/tls/certificate.h"
#include "common/tls/openssl.h"

namespace cistern::group {
namespace {

// The largest piece for one call of OpenSSL, which takes an int.
constexpr size_t kMaxPiece = 1u << 30;
constexpr size_t kReadBuffer = 256u << 10;
// Records (16 KiB each) that are sent with one system call.
constexpr size_t kSentAtOnce = 256u << 10;

absl::Status Refused(absl::string_view why) {
  return absl::PermissionDeniedError(
      absl::StrCat("the TLS connection between two workers was refused: ", why));
}

absl::Status CheckWorker(const Certificate& certificate, const std::string& cluster,
                         absl::string_view whose) {
  if (certificate.May(Role::kWorker, cluster)) return absl::OkStatus();
  return WithOptions(WithFix(absl::PermissionDeniedError(absl::StrCat(
                                 "the certificate '", certificate.name, "' of ", whose,
                                 " does not make it a worker of cluster '", cluster,
                                 "'; its roles there: ", certificate.RolesOn(cluster))),
                             "use a certificate with the role worker"),
                     {"certs.issue.role=worker"});
}

// The other side's certificate as PEM; empty if it showed none.
std::string PeerPem(const SSL* ssl) {
  const OpenSslPtr<X509> shown(SSL_get1_peer_certificate(ssl));
  const OpenSslPtr<BIO> to(BIO_new(BIO_s_mem()));
  if (shown == nullptr || to == nullptr || PEM_write_bio_X509(to.get(), shown.get()) != 1) {
    return "";
  }
  char* bytes = nullptr;
  const auto size = BIO_get_mem_data(to.get(), &bytes);
  return std::string(bytes, static_cast<size_t>(size));
}

// Adds the certificates, key and authority of `pem` to a context.
bool Use(SSL_CTX* context, const TlsPem& pem) {
  const OpenSslPtr<EVP_PKEY> key = ReadKey(pem.key);
  if (key == nullptr) return false;
  const OpenSslPtr<BIO> chain = ReaderOf(pem.cert), authorities = ReaderOf(pem.ca);
  bool is_first = true;
  while (X509* const next = PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr)) {
    const OpenSslPtr<X509> owned(next);
    const int used =
        is_first ? SSL_CTX_use_certificate(context, next) : SSL_CTX_add1_chain_cert(context, next);
    if (used != 1) return false;
    is_first = false;
  }
  X509_STORE* const store = SSL_CTX_get_cert_store(context);
  while (X509* const next = PEM_read_bio_X509(authorities.get(), nullptr, nullptr, nullptr)) {
    const OpenSslPtr<X509> owned(next);
    if (X509_STORE_add_cert(store, next) != 1) return false;
  }
  ERR_clear_error();  // the end of a text is one
  return !is_first && SSL_CTX_use_PrivateKey(context, key.get()) == 1;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const SecureContext>> SecureContext::Create(
    const TlsFiles& files, const std::string& cluster) {
  CISTERN_ASSIGN_OR_RETURN(const TlsPem pem, ReadMutualTls(files));
  if (!pem.on()) return std::shared_ptr<const SecureContext>();
  CISTERN_ASSIGN_OR_RETURN(const Certificate own, ParseCertificate(pem.cert));
  CISTERN_RETURN_IF_ERROR(CheckWorker(own, cluster, "this worker"));
  SSL_CTX* const context = SSL_CTX_new(TLS_method());
  if (context == nullptr) return absl::ResourceExhaustedError("out of memory");
  std::shared_ptr<const SecureContext> made(new SecureContext(context, cluster));
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
  // One system call reads many records (16 KiB each), and not two for each of them.
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, kReadBuffer);
  SSL_CTX_set_num_tickets(context, 0);  // a ticket would be unread bytes for a side that sends only
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // Either side may have begun the connection, so workers' certificates need not be servers'.
  SSL_CTX_set_purpose(context, X509_PURPOSE_ANY);
  if (!Use(context, pem)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the certificates cannot be used: ", OpenSslError()));
  }
  return made;
}

SecureContext::~SecureContext() {
  SSL_CTX_free(context_);
}

absl::StatusOr<std::unique_ptr<SecureChannel>> SecureContext::Begin(int descriptor,
                                                                    TlsSide side) const {
  SSL* const ssl = SSL_new(context_);
  if (ssl == nullptr) return absl::ResourceExhaustedError("out of memory");
  std::unique_ptr<SecureChannel> channel(new SecureChannel(ssl, descriptor, cluster_));
  BIO* const from = BIO_new_socket(descriptor, BIO_NOCLOSE);
  BIO* const to = BIO_new(BIO_s_mem());
  if (from == nullptr || to == nullptr) {
    BIO_free(from);
    BIO_free(to);
    return absl::ResourceExhaustedError("out of memory");
  }
  SSL_set_bio(ssl, from, to);  // takes both
  if (side == TlsSide::kConnects) {
    SSL_set_connect_state(ssl);
  } else {
    SSL_set_accept_state(ssl);
  }
  return channel;
}

SecureChannel::~SecureChannel() {
  SSL_free(ssl_);
}

absl::Status SecureChannel::Handshake(short* events) {
  ERR_clear_error();
  errno = 0;
  const int done = SSL_do_handshake(ssl_);
  const int error = done == 1 ? SSL_ERROR_NONE : SSL_get_error(ssl_, done);
  const bool flushed = Flush() == 0;  // also the reason of a refusal
  if (done == 1 && (flushed || errno == EAGAIN)) return CheckPeer();
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
    *events = static_cast<short>(POLLIN | (flushed ? 0 : POLLOUT));
    return absl::UnavailableError("the handshake is not complete");
  }
  const long verified = SSL_get_verify_result(ssl_);  // NOLINT(runtime/int): OpenSSL's type
  if (verified != X509_V_OK) return Refused(X509_verify_cert_error_string(verified));
  return Refused(ERR_peek_error() == 0 ? "the other side closed the connection, perhaps because it "
                                         "does not use TLS"
                                       : OpenSslError());
}

absl::Status SecureChannel::CheckPeer() const {
  const absl::StatusOr<Certificate> peer = ParseCertificate(PeerPem(ssl_));
  if (!peer.ok()) return Refused(peer.status().message());
  return CheckWorker(*peer, cluster_, "the other worker");
}

ssize_t SecureChannel::Send(const void* bytes, size_t count, bool more) {
  if (!more && sent_ < out_.size() && Flush() != 0) return -1;
  ERR_clear_error();
  const char* const from = static_cast<const char*>(bytes);
  const size_t most = std::min(count, kSentAtOnce);
  size_t taken = 0;
  while (taken < most) {  // a record each; memory takes them all
    const int record = SSL_write(ssl_, from + taken, static_cast<int>(most - taken));
    if (record <= 0) return Result(record);
    taken += static_cast<size_t>(record);
  }
  if (!more && Flush() != 0 && errno != EAGAIN) return -1;
  return static_cast<ssize_t>(taken);
}

ssize_t SecureChannel::Flush() {
  while (HoldsOutput()) {
    if (sent_ == out_.size()) {
      BIO* const memory = SSL_get_wbio(ssl_);
      out_.resize(BIO_ctrl_pending(memory));
      sent_ = 0;
      if (BIO_read(memory, out_.data(), static_cast<int>(out_.size())) < 0) out_.clear();
    }
    const ssize_t sent = send(descriptor_, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) return -1;
    if (sent > 0) sent_ += static_cast<size_t>(sent);
  }
  return 0;
}

bool SecureChannel::HoldsOutput() const {
  return sent_ < out_.size() || BIO_ctrl_pending(SSL_get_wbio(ssl_)) > 0;
}

bool SecureChannel::HoldsBytes() const {
  return SSL_has_pending(ssl_) == 1;
}

ssize_t SecureChannel::Receive(void* bytes, size_t count) {
  ERR_clear_error();
  return Result(SSL_read(ssl_, bytes, static_cast<int>(std::min(count, kMaxPiece))));
}

ssize_t SecureChannel::Result(int returned) {
  if (returned > 0) return returned;
  const int system_error = errno;
  switch (SSL_get_error(ssl_, returned)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      errno = EAGAIN;
      return -1;
    case SSL_ERROR_ZERO_RETURN:
      return 0;
    case SSL_ERROR_SYSCALL:
      errno = system_error == 0 || system_error == EAGAIN ? ECONNRESET : system_error;
      return -1;
    default: {
      // The end of a connection without TLS's own end, as after kill -9, is one of these.
      const bool is_alert = ERR_GET_REASON(ERR_peek_last_error()) > SSL_AD_REASON_OFFSET;
      errno = is_alert ? EKEYREJECTED : ECONNRESET;
      return -1;
    }
  }
}

}  // namespace cistern::group
