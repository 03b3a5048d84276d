#include "common/http/metrics_endpoint.h"

#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/host_address.h"
#include "common/http/request_target.h"
#include "common/http/unix_socket.h"
#include "common/metrics/metric_text.h"
#include "common/rpc/guarded.h"
#include "common/rpc/listening_socket.h"

namespace cistern {
namespace {

constexpr size_t kConnectionBytes = 16 << 10;
constexpr absl::Duration kMaxAge = absl::Seconds(MetricsEndpoint::kMaxSeconds);
// How long nothing is accepted once the process has run out of descriptors.
constexpr absl::Duration kPause = absl::Seconds(1);

MHD_Result Reply(MHD_Connection* connection, unsigned status, const std::string& body,
                 const char* content_type) {
  MHD_Response* const response = MHD_create_response_from_buffer(
      body.size(), const_cast<char*>(body.data()), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, "Content-Type", content_type);
  MHD_add_response_header(response, "Connection", "close");
  if (status == MHD_HTTP_METHOD_NOT_ALLOWED) {
    MHD_add_response_header(response, "Allow", "GET, HEAD");
  }
  const MHD_Result queued = MHD_queue_response(connection, status, response);
  MHD_destroy_response(response);
  return queued;
}

MHD_Result ReplyText(MHD_Connection* connection, unsigned status, const std::string& text) {
  return Reply(connection, status, text + "\n", "text/plain; charset=utf-8");
}

}  // namespace

// The library runs on this thread alone, in its mode of external polling, so nothing here is
// locked.
class MetricsEndpoint::Service {
 public:
  explicit Service(std::function<std::string()> page) : page_(std::move(page)) {}

  ~Service() {
    if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
    if (wake_fd_ >= 0) close(wake_fd_);
  }

  absl::Status Open(const MetricsPlace& place) {
    if (place.port.has_value()) {
      absl::StatusOr<ListeningSockets> sockets = ListeningSockets::Open(place.bind, *place.port);
      if (!sockets.ok()) {
        const bool is_port = OptionsOf(sockets.status()) == std::vector<std::string>{"port"};
        return WithOptions(sockets.status(), {is_port ? "metrics_port" : "metrics_bind"});
      }
      port_ = std::make_unique<ListeningSockets>(*std::move(sockets));
      where_ = absl::StrCat("http://", HostPortText(place.bind, port_->port()), "/metrics");
    }
    if (!place.socket.empty()) {
      absl::StatusOr<std::unique_ptr<UnixSocket>> socket = UnixSocket::Listen(place.socket);
      if (!socket.ok()) return WithOptions(socket.status(), {"metrics_socket"});
      socket_ = *std::move(socket);
      absl::StrAppend(&where_, where_.empty() ? "" : ",", place.socket);
    }
    wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    // The library's own limit is a second line: connections that are being closed count there.
    daemon_ = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, nullptr, nullptr, &Service::Handle, this,
        MHD_OPTION_CONNECTION_LIMIT, 2 * kMaxConnections, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        kConnectionBytes, MHD_OPTION_NOTIFY_CONNECTION, &Service::Note, this,
        MHD_OPTION_UNESCAPE_CALLBACK, &UnescapeTarget, nullptr, MHD_OPTION_END);
    if (daemon_ == nullptr || wake_fd_ < 0) {
      return absl::ResourceExhaustedError(
          "the endpoint of metrics does not start: out of memory or descriptors");
    }
    return absl::OkStatus();
  }

  int port() const { return port_ == nullptr ? 0 : port_->port(); }
  const std::string& where() const { return where_; }

  void Stop() {
    const uint64_t one = 1;
    (void)!write(wake_fd_, &one, sizeof(one));
  }

  // Serves until Stop.
  void Work() {
    const MHD_DaemonInfo* const info = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_EPOLL_FD);
    std::vector<pollfd> watched = {{wake_fd_, POLLIN, 0}, {info->epoll_fd, POLLIN, 0}};
    if (port_ != nullptr) {
      for (const int fd : port_->fds()) watched.push_back({fd, POLLIN, 0});
    }
    if (socket_ != nullptr) watched.push_back({socket_->fd(), POLLIN, 0});
    constexpr size_t kListeners = 2;  // the first index of one
    while (true) {
      const bool accepts = absl::Now() >= resume_;
      poll(watched.data(), accepts ? watched.size() : kListeners, TimeoutMs());
      if (watched[0].revents != 0) return;
      for (size_t i = kListeners; accepts && i < watched.size(); ++i) {
        if (watched[i].revents != 0) Accept(watched[i].fd);
      }
      MHD_run(daemon_);
      EndOld();
    }
  }

 private:
  struct Peer {
    int fd = -1;
    absl::Time begin;
    bool ended = false;  // its socket is shut down; the library closes it next
  };

  // Until the library or EndOld has something to do; -1: until something happens.
  int TimeoutMs() const {
    absl::Duration most = absl::InfiniteDuration();
    MHD_UNSIGNED_LONG_LONG library_ms = 0;
    if (MHD_get_timeout(daemon_, &library_ms) == MHD_YES) {
      most = absl::Milliseconds(std::min<uint64_t>(library_ms, 1000));
    }
    const absl::Time now = absl::Now();
    if (!open_.empty()) most = std::min(most, open_.front().begin + kMaxAge - now);
    if (resume_ > now) most = std::min(most, resume_ - now);
    if (most == absl::InfiniteDuration()) return -1;
    return static_cast<int>(absl::ToInt64Milliseconds(std::max(most, absl::ZeroDuration()))) + 1;
  }

  void Accept(int listener) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
        resume_ = absl::Now() + kPause;
      }
      return;
    }
    if (open_.size() >= kMaxConnections) EndOldest();
    sockaddr_storage address = {};
    socklen_t size = sizeof(address);
    getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size);
    // The library knows no Unix sockets; it only keeps the address.
    if (address.ss_family == AF_UNIX) {
      address.ss_family = AF_INET;
      size = sizeof(sockaddr_in);
    }
    // On failure the library closes the socket.
    MHD_add_connection(daemon_, fd, reinterpret_cast<const sockaddr*>(&address), size);
  }

  void End(Peer& connection) {
    if (!connection.ended) shutdown(connection.fd, SHUT_RDWR);
    connection.ended = true;
  }
  void EndOldest() {
    const auto oldest = std::find_if(open_.begin(), open_.end(),
                                     [](const Peer& connection) { return !connection.ended; });
    if (oldest != open_.end()) End(*oldest);
  }
  void EndOld() {
    const absl::Time latest = absl::Now() - kMaxAge;
    for (Peer& connection : open_) {
      if (connection.begin > latest) return;
      End(connection);
    }
  }

  // The library's callbacks.
  static void Note(void* self, MHD_Connection* connection, void**,
                   MHD_ConnectionNotificationCode what) {
    auto* const service = static_cast<Service*>(self);
    const MHD_ConnectionInfo* const info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info == nullptr) return;
    const int fd = info->connect_fd;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
      (void)Guarded([&] {
        service->open_.push_back({fd, absl::Now()});
        return absl::OkStatus();
      });
    } else {
      service->open_.remove_if([fd](const Peer& open) { return open.fd == fd; });
    }
  }

  static MHD_Result Handle(void* self, MHD_Connection* connection, const char* url,
                           const char* method, const char*, const char*, size_t*, void**) {
    MHD_Result result = MHD_NO;
    const absl::Status done = Guarded([&] {
      result = static_cast<Service*>(self)->Answer(connection, url, method);
      return absl::OkStatus();
    });
    return done.ok() ? result : MHD_NO;  // out of memory: the connection is closed
  }

  // Called once the headers are here; a reply at that moment leaves a body unread.
  MHD_Result Answer(MHD_Connection* connection, absl::string_view url, absl::string_view method) {
    if (WithoutAuthority(url) != "/metrics") {
      return ReplyText(connection, MHD_HTTP_NOT_FOUND, "no such path; the figures are at /metrics");
    }
    if (method != "GET" && method != "HEAD") {
      return ReplyText(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "/metrics takes the method GET");
    }
    std::string text;
    const absl::Status written = Guarded([&] {
      text = page_();
      return absl::OkStatus();
    });
    if (!written.ok()) {
      return ReplyText(connection, MHD_HTTP_SERVICE_UNAVAILABLE, std::string(written.message()));
    }
    return Reply(connection, MHD_HTTP_OK, text, MetricText::kContentType);
  }

  const std::function<std::string()> page_;
  std::unique_ptr<ListeningSockets> port_;
  std::unique_ptr<UnixSocket> socket_;
  std::string where_;
  int wake_fd_ = -1;
  MHD_Daemon* daemon_ = nullptr;
  std::list<Peer> open_;                      // oldest first
  absl::Time resume_ = absl::InfinitePast();  // accepts again from then on
};

MetricsEndpoint::MetricsEndpoint() = default;

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::Start(
    const MetricsPlace& place, std::function<std::string()> page) {
  std::unique_ptr<MetricsEndpoint> endpoint(new MetricsEndpoint);
  endpoint->service_ = std::make_unique<Service>(std::move(page));
  CISTERN_RETURN_IF_ERROR(endpoint->service_->Open(place));
  endpoint->thread_ = std::make_unique<ThreadPool>(1);
  endpoint->thread_->Run([service = endpoint->service_.get()] { service->Work(); });
  return endpoint;
}

MetricsEndpoint::~MetricsEndpoint() {
  if (thread_ == nullptr) return;
  service_->Stop();
  thread_ = nullptr;  // joins
}

int MetricsEndpoint::port() const {
  return service_->port();
}

std::string MetricsEndpoint::Where() const {
  return service_->where();
}

}  // namespace cistern
