#include "test/siege/relay.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "test/siege/loopback.h"

namespace cistern {
namespace {

constexpr int kLookMs = 20;                // how soon the destructor is noticed
constexpr size_t kMaxWaiting = 256 << 10;  // bytes in each direction
constexpr size_t kPiece = 16 << 10;

OpenSslPtr<SSL_CTX> ContextShowing(const KeyedCertificate& own) {
  OpenSslPtr<SSL_CTX> context(SSL_CTX_new(TLS_client_method()));
  static const unsigned char kH2[] = {2, 'h', '2'};
  SSL_CTX_set_alpn_protos(context.get(), kH2, sizeof(kH2));
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (own.cert.empty()) return context;
  SSL_CTX_use_certificate(context.get(), ReadCertificate(own.cert).get());
  SSL_CTX_use_PrivateKey(context.get(), ReadKey(own.key).get());
  return context;
}

void MakeNonBlocking(int fd) {
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

// The side of a connection that faces the server: a socket, or TLS on it.
class ServerSide {
 public:
  // ssl: may be null. Both belong to the caller.
  ServerSide(int fd, SSL* ssl) : fd_(fd), ssl_(ssl) {}

  int fd() const { return fd_; }
  // Both as send and recv on a socket that does not block.
  ssize_t Send(absl::string_view bytes) {
    if (ssl_ == nullptr) return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return Result(SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size())));
  }
  ssize_t Receive(char* bytes, size_t size) {
    if (ssl_ == nullptr) return recv(fd_, bytes, size, 0);
    return Result(SSL_read(ssl_, bytes, static_cast<int>(size)));
  }
  void EndSending() {
    if (ssl_ != nullptr) SSL_shutdown(ssl_);
    shutdown(fd_, SHUT_WR);
  }

 private:
  ssize_t Result(int result) {
    if (result > 0) return result;
    const int error = SSL_get_error(ssl_, result);
    OpenSslError();
    if (error == SSL_ERROR_ZERO_RETURN) return 0;
    errno = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? EAGAIN : EIO;
    return -1;
  }

  const int fd_;
  SSL* const ssl_;
};

// A connection from a client through the relay to a server.
class Through {
 public:
  // kept: gets all bytes of the client.
  Through(int client, ServerSide server, std::function<void(absl::string_view)> kept)
      : client_(client), server_(server), kept_(std::move(kept)) {}

  // Waits for bytes and passes them on once; false if the connection has ended.
  bool Pass() {
    short from_client = 0, from_server = 0;
    if (!client_ended_ && up_.size() < kMaxWaiting) from_client |= POLLIN;
    if (!down_.empty()) from_client |= POLLOUT;
    if (!server_ended_ && down_.size() < kMaxWaiting) from_server |= POLLIN;
    if (!up_.empty()) from_server |= POLLOUT;
    pollfd both[] = {{client_, from_client, 0}, {server_.fd(), from_server, 0}};
    poll(both, 2, kLookMs);
    if ((both[0].revents & (POLLERR | POLLHUP)) != 0) return false;
    return ReadClient() && WriteServer() && ReadServer() && WriteClient() &&
           !(server_ended_ && down_.empty());
  }

 private:
  static bool MayRetry() { return errno == EAGAIN || errno == EINTR; }
  bool ReadClient() {
    char bytes[kPiece];
    while (!client_ended_ && up_.size() < kMaxWaiting) {
      const ssize_t got = recv(client_, bytes, sizeof(bytes), MSG_DONTWAIT);
      if (got < 0) return MayRetry();
      if (got == 0) client_ended_ = true;
      const absl::string_view piece(bytes, static_cast<size_t>(got));
      kept_(piece);
      absl::StrAppend(&up_, piece);
    }
    return true;
  }
  bool WriteServer() {
    size_t sent = 0;
    while (sent < up_.size()) {
      const ssize_t wrote = server_.Send(absl::string_view(up_).substr(sent));
      if (wrote <= 0) {
        if (!MayRetry()) return false;
        break;
      }
      sent += static_cast<size_t>(wrote);
    }
    up_.erase(0, sent);
    if (client_ended_ && up_.empty() && !std::exchange(told_end_, true)) server_.EndSending();
    return true;
  }
  bool ReadServer() {
    char bytes[kPiece];
    while (!server_ended_ && down_.size() < kMaxWaiting) {
      const ssize_t got = server_.Receive(bytes, sizeof(bytes));
      if (got < 0 && MayRetry()) return true;
      if (got <= 0) server_ended_ = true;
      if (got > 0) down_.append(bytes, static_cast<size_t>(got));
    }
    return true;
  }
  bool WriteClient() {
    if (down_.empty()) return true;
    const ssize_t sent = send(client_, down_.data(), down_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return MayRetry();
    down_.erase(0, static_cast<size_t>(sent));
    return true;
  }

  const int client_;
  ServerSide server_;
  const std::function<void(absl::string_view)> kept_;
  std::string up_, down_;  // towards the server, towards the client
  bool client_ended_ = false, server_ended_ = false, told_end_ = false;
};

}  // namespace

Relay::Relay(int port) : port_(port), listener_(ListenOnLoopback(&own_port_)) {
  thread_ = std::thread([this] { Run(); });
}

Relay::Relay(int port, const KeyedCertificate& own)
    : port_(port), context_(ContextShowing(own)), listener_(ListenOnLoopback(&own_port_)) {
  thread_ = std::thread([this] { Run(); });
}

Relay::~Relay() {
  stops_ = true;
  thread_.join();
  for (Passage& passage : passages_) passage.thread.join();
  close(listener_);
}

std::string Relay::address() const {
  return absl::StrCat("127.0.0.1:", own_port_);
}

std::string Relay::sent() const {
  absl::MutexLock lock(&mutex_);
  return sent_;
}

void Relay::Keep(absl::string_view sent) {
  absl::MutexLock lock(&mutex_);
  absl::StrAppend(&sent_, sent);
}

void Relay::Run() {
  while (!stops_) {
    pollfd wait = {listener_, POLLIN, 0};
    if (poll(&wait, 1, kLookMs) <= 0) continue;
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    passages_.remove_if([](Passage& passage) {
      if (!passage.ended) return false;
      passage.thread.join();
      return true;
    });
    Passage& passage = passages_.emplace_back();
    passage.thread = std::thread([this, client, &passage] {
      Serve(client);
      passage.ended = true;
    });
  }
}

void Relay::Serve(int client) {
  const absl::Cleanup closes_client = [client] { close(client); };
  const int server = ConnectToLoopback(port_, absl::Seconds(10));
  if (server < 0) return;
  // Closes with RST: the server learns at once that nobody is there.
  const absl::Cleanup closes_server = [server] {
    const linger at_once = {1, 0};
    setsockopt(server, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(server);
  };
  const OpenSslPtr<SSL> ssl(context_ == nullptr ? nullptr : SSL_new(context_.get()));
  if (ssl != nullptr) {
    SSL_set_fd(ssl.get(), server);
    if (SSL_connect(ssl.get()) != 1) return;
  }
  MakeNonBlocking(client);
  MakeNonBlocking(server);
  Through through(client, {server, ssl.get()}, [this](absl::string_view bytes) {
    if (context_ == nullptr) Keep(bytes);
  });
  while (!stops_ && through.Pass()) {
  }
}

}  // namespace cistern
