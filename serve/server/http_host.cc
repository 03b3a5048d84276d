#include "serve/server/http_host.h"

#include <malloc.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/http/request_target.h"
#include "common/rpc/connection_acceptor.h"
#include "common/rpc/connection_book.h"
#include "common/rpc/guarded.h"
#include "serve/server/http_exchange.h"
#include "serve/server/json_request.h"

namespace cistern::serve {
namespace {

constexpr size_t kMaxHeaderBytes = 32u << 10;
// Headers, the library's copy of the cookies, and a piece of the body. The library answers what
// does not fit with HTML, so there is room to receive headers that are too long.
constexpr size_t kConnectionBuffer = 4 * kMaxHeaderBytes;
// The most memory that decoding takes for a byte of JSON (json_tensor.h), and of a binary tensor.
constexpr uint64_t kMemoryOfJsonByte = 16, kMemoryOfBinaryByte = 3;

}  // namespace

class HttpHost::Service {
 public:
  Service(const ServeLimits& limits, InferenceCore* core)
      : limits_(limits), core_(core), book_(limits.memory_bytes) {}

  ~Service() { acceptor_ = nullptr; }

  absl::Status Start(ListeningSockets sockets, const TlsPem& tls) {
    port_ = sockets.port();
    shows_certificates_ = !tls.ca.empty();
    CISTERN_RETURN_IF_ERROR(StartDaemon(tls));
    AcceptorOptions accepting;
    accepting.max_connections = limits_.max_connections;
    accepting.give_memory_back = [] { malloc_trim(0); };
    accepting.hand_over = [this](int fd) { HandOver(fd); };
    acceptor_ =
        std::make_unique<ConnectionAcceptor>(std::move(sockets), std::move(accepting), &book_);
    return absl::OkStatus();
  }

  int port() const { return port_; }

  // A daemon of the library with these certificates gets the connections from now on.
  absl::Status StartDaemon(const TlsPem& tls) {
    auto daemon = std::make_shared<Daemon>(tls);
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME |
                     MHD_USE_NO_LISTEN_SOCKET;
    std::vector<MHD_OptionItem> options = {
        {MHD_OPTION_CONNECTION_LIMIT, limits_.max_connections + 64, nullptr},
        {MHD_OPTION_CONNECTION_TIMEOUT, limits_.keep_alive_seconds, nullptr},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBuffer, nullptr},
        {MHD_OPTION_STRICT_FOR_CLIENT, 0, nullptr},  // CheckFieldNames, CheckHost: in JSON
        {MHD_OPTION_UNESCAPE_CALLBACK, reinterpret_cast<intptr_t>(&UnescapeTarget), nullptr},
        {MHD_OPTION_NOTIFY_CONNECTION, reinterpret_cast<intptr_t>(&NoteAge), &limits_},
        {MHD_OPTION_NOTIFY_COMPLETED, reinterpret_cast<intptr_t>(&Service::Completed), this}};
    const auto add = [&options](MHD_OPTION option, const std::string& pem) {
      if (!pem.empty()) options.push_back({option, 0, const_cast<char*>(pem.c_str())});
    };
    if (tls.on()) flags |= MHD_USE_TLS;
    add(MHD_OPTION_HTTPS_MEM_CERT, daemon->tls.cert);
    add(MHD_OPTION_HTTPS_MEM_KEY, daemon->tls.key);
    add(MHD_OPTION_HTTPS_MEM_TRUST, daemon->tls.ca);
    options.push_back({MHD_OPTION_END, 0, nullptr});
    daemon->daemon = MHD_start_daemon(flags, 0, nullptr, nullptr, &Service::Handle, this,
                                      MHD_OPTION_ARRAY, options.data(), MHD_OPTION_END);
    if (daemon->daemon == nullptr) {
      return WithOptions(
          absl::InvalidArgumentError(
              tls.on() ? "the HTTP library does not start with these certificates; check that the "
                         "key belongs to the certificate, and that both are PEM"
                       : "the HTTP library does not start: out of memory, threads or descriptors"),
          {"tls_cert", "tls_key"});
    }
    std::vector<std::shared_ptr<Daemon>> ended;  // they end outside the lock
    const absl::MutexLock lock(&daemons_mutex_);
    daemons_.push_back(std::move(daemon));
    const auto in_use = std::stable_partition(
        daemons_.begin(), daemons_.end() - 1,
        [](const std::shared_ptr<Daemon>& older) { return older->connections() > 0; });
    ended.assign(in_use, daemons_.end() - 1);
    daemons_.erase(in_use, daemons_.end() - 1);
    return absl::OkStatus();
  }

  void BeginDrain() { closing_ = true; }
  void StopAccepting() {
    BeginDrain();
    acceptor_->Stop();
  }

  void AwaitBodies(absl::Duration grace) { AwaitNone(&arriving_, grace); }
  void AwaitReplies(absl::Duration grace) { AwaitNone(&flying_, grace); }

 private:
  struct Daemon {
    explicit Daemon(const TlsPem& pem) : tls(pem) {}
    ~Daemon() {
      if (daemon != nullptr) MHD_stop_daemon(daemon);
    }
    unsigned connections() const {
      const MHD_DaemonInfo* const info =
          MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
      return info == nullptr ? 1 : info->num_connections;
    }

    const TlsPem tls;  // read by the library as long as the daemon runs
    MHD_Daemon* daemon = nullptr;
  };

  // number: guarded by mutex_.
  void AwaitNone(int* number, absl::Duration grace) {
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(
                                +[](int* some) { return *some == 0; }, number),
                            grace);
  }

  void HandOver(int fd) {
    std::shared_ptr<Daemon> newest;
    {
      const absl::MutexLock lock(&daemons_mutex_);
      newest = daemons_.back();
    }
    sockaddr_storage address = {};
    socklen_t size = sizeof(address);
    getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size);
    // On failure the library closes the socket.
    MHD_add_connection(newest->daemon, fd, reinterpret_cast<const sockaddr*>(&address), size);
  }

  // The library's callbacks.
  static MHD_Result Handle(void* self, MHD_Connection* connection, const char* url,
                           const char* method, const char* version, const char* upload,
                           size_t* upload_bytes, void** state) {
    auto* service = static_cast<Service*>(self);
    auto* exchange = static_cast<Exchange*>(*state);
    MHD_Result result = MHD_NO;
    const absl::Status done = Guarded([&] {
      if (exchange == nullptr) {
        exchange = new Exchange;
        *state = exchange;
        result = service->Begin(connection, method, url, version, exchange);
      } else if (*upload_bytes > 0) {
        service->Receive({upload, *upload_bytes}, exchange);
        *upload_bytes = 0;
        result = MHD_YES;
      } else if (!exchange->complete) {
        exchange->complete = true;
        result = service->Complete(connection, exchange);
      } else {
        result = service->Reply(connection, exchange);
      }
      return absl::OkStatus();
    });
    return done.ok() ? result : MHD_NO;  // out of memory: the connection is closed
  }

  static void Completed(void* self, MHD_Connection*, void** state, MHD_RequestTerminationCode) {
    const std::unique_ptr<Exchange> exchange(static_cast<Exchange*>(*state));
    *state = nullptr;
    if (exchange == nullptr) return;
    auto* service = static_cast<Service*>(self);
    absl::MutexLock lock(&service->mutex_);
    if (exchange->arriving) --service->arriving_;
    if (exchange->flying) --service->flying_;
  }

  // The headers are here.
  MHD_Result Begin(MHD_Connection* connection, const char* method, const char* url,
                   const char* version, Exchange* exchange) {
    exchange->route = RouteOf(method, url);
    exchange->refused = CheckHeaderBytes(connection, exchange);
    if (exchange->refused.ok()) exchange->refused = CheckFieldNames(connection);
    if (exchange->refused.ok()) exchange->refused = CheckHost(connection, version);
    if (exchange->refused.ok()) exchange->refused = CheckFraming(connection);
    if (!exchange->refused.ok()) {
      exchange->close = true;  // what follows may be a part of this request, or another one
      return Reply(connection, exchange);
    }
    if (shows_certificates_ && !ShowsCertificate(connection)) {
      exchange->refused = absl::PermissionDeniedError(
          "this server asks for a certificate of its clients' authority; show one");
      return Reply(connection, exchange);
    }
    if (exchange->route.kind != HttpRoute::Kind::kInfer) return MHD_YES;
    exchange->refused = ReadHeaders(connection, exchange);
    if (exchange->unread) return Reply(connection, exchange);
    absl::MutexLock lock(&mutex_);
    exchange->arriving = true;
    ++arriving_;
    return MHD_YES;
  }

  static absl::Status CheckHeaderBytes(MHD_Connection* connection, Exchange* exchange) {
    const MHD_ConnectionInfo* const headers =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    if (headers == nullptr || headers->header_size <= kMaxHeaderBytes) return absl::OkStatus();
    const bool fields = FieldBytes(connection) > headers->header_size / 2;
    exchange->refused_status = fields ? 431 : 414;
    return absl::InvalidArgumentError(absl::StrCat(
        "the request line and the headers have ", headers->header_size, " bytes, more than ",
        kMaxHeaderBytes, "; send ", fields ? "fewer or shorter headers" : "a shorter URL"));
  }

  absl::Status ReadHeaders(MHD_Connection* connection, Exchange* exchange) {
    CISTERN_ASSIGN_OR_RETURN(const std::optional<size_t> length,
                             SizeHeader(connection, "Content-Length"));
    const absl::Status fits = CheckLength(connection, length.value_or(0), exchange);
    if (!fits.ok()) {
      // A caller that is still sending does not read the reply, so a body is read and dropped,
      // unless it is very long, or the caller waits for the reply.
      exchange->unread =
          length.value_or(0) > std::min(4 * limits_.max_message_bytes, limits_.memory_bytes / 4) ||
          Header(connection, "Expect") != nullptr;
      return fits;
    }
    const char* encoding = Header(connection, "Content-Encoding");
    if (encoding == nullptr || absl::EqualsIgnoreCase(encoding, "identity")) {
      return absl::OkStatus();
    }
    exchange->refused_status = 415;
    return absl::InvalidArgumentError("compressed requests are not accepted; send this one plain");
  }

  // Whether a body of this length is accepted, and its memory can ever be had.
  absl::Status CheckLength(MHD_Connection* connection, uint64_t length, Exchange* exchange) {
    if (length > limits_.max_message_bytes) return TooLong(exchange);
    CISTERN_ASSIGN_OR_RETURN(exchange->json_bytes, SizeHeader(connection, kJsonBytesHeader));
    return CheckMemory(length, exchange);
  }

  absl::Status CheckMemory(uint64_t length, Exchange* exchange) {
    const uint64_t needed = MemoryOf(length, exchange->json_bytes);
    if (needed <= limits_.memory_bytes) return absl::OkStatus();
    exchange->refused_status = 413;
    return absl::InvalidArgumentError(
        absl::StrCat("the request has ", length, " bytes, and decoding it may take ", needed,
                     ", more than the ", limits_.memory_bytes, " of all requests together; ",
                     "send fewer samples, or tensors in binary form, which takes less than JSON"));
  }

  // The most memory that decoding a body takes.
  static uint64_t MemoryOf(uint64_t length, std::optional<size_t> json_bytes) {
    const uint64_t json = std::min<uint64_t>(json_bytes.value_or(length), length);
    return json * kMemoryOfJsonByte + (length - json) * kMemoryOfBinaryByte;
  }

  absl::Status TooLong(Exchange* exchange) {
    exchange->refused_status = 413;
    exchange->body = std::string();
    return absl::InvalidArgumentError(
        absl::StrCat("the body is longer than ", limits_.max_message_bytes,
                     " bytes; send fewer samples, or let the server take larger ones"));
  }

  // A piece of the body has arrived. Bodies that no handler wants are read and dropped.
  void Receive(absl::string_view piece, Exchange* exchange) {
    exchange->received += piece.size();
    if (exchange->route.kind != HttpRoute::Kind::kInfer || !exchange->refused.ok()) return;
    if (piece.size() > limits_.max_message_bytes - exchange->body.size()) {
      exchange->refused = TooLong(exchange);
      return;
    }
    exchange->body.append(piece.data(), piece.size());
  }

  // All of the request is here. It counts as arriving until it is queued: a stop that awaits bodies
  // refuses what comes later.
  MHD_Result Complete(MHD_Connection* connection, Exchange* exchange) {
    {
      absl::MutexLock lock(&mutex_);
      exchange->flying = true;
      ++flying_;
    }
    const MHD_Result result = Enqueue(connection, exchange);
    absl::MutexLock lock(&mutex_);
    if (exchange->arriving) --arriving_;
    exchange->arriving = false;
    return result;
  }

  MHD_Result Enqueue(MHD_Connection* connection, Exchange* exchange) {
    if (exchange->refused.ok()) exchange->refused = CheckMemory(exchange->body.size(), exchange);
    const absl::Status held = Hold(connection, exchange);
    // Health and metadata are answered even if strangers hold all of the memory.
    if (exchange->refused.ok() && exchange->route.kind == HttpRoute::Kind::kInfer) {
      exchange->refused = held;
    }
    if (!exchange->refused.ok()) return Reply(connection, exchange);
    if (exchange->route.kind != HttpRoute::Kind::kInfer) {
      exchange->reply = Answer(exchange->route, *core_);
      exchange->replied = true;
      return Reply(connection, exchange);
    }
    MHD_suspend_connection(connection);
    const absl::Status queued =
        core_->queue().Run([this, connection, exchange] { Infer(connection, exchange); });
    if (!queued.ok()) {
      exchange->refused = queued;
      MHD_resume_connection(connection);
    }
    return MHD_YES;
  }

  // Counts the request against its connection.
  absl::Status Hold(MHD_Connection* connection, Exchange* exchange) {
    const MHD_ConnectionInfo* socket =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    const MHD_ConnectionInfo* headers =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    const uint64_t wire = exchange->received + (headers == nullptr ? 0 : headers->header_size);
    CISTERN_ASSIGN_OR_RETURN(
        exchange->held,
        book_.Begin(socket == nullptr ? "" : PeerOfSocket(socket->connect_fd), wire + wire / 256,
                    MemoryOf(exchange->body.size(), exchange->json_bytes)));
    return absl::OkStatus();
  }

  // On a thread of the queue.
  void Infer(MHD_Connection* connection, Exchange* exchange) {
    bool sent = false;
    const absl::Status done = Guarded([&]() -> absl::Status {
      CISTERN_ASSIGN_OR_RETURN(InferRequest request,
                               DecodeJsonRequest(exchange->body, exchange->json_bytes));
      request.model = exchange->route.model;
      request.version = exchange->route.version;
      core_->Infer(request, exchange->arrived, [&](const absl::StatusOr<InferReply>& reply) {
        HttpReply encoded = ReplyOf(reply);
        sent = true;
        Send(connection, exchange, std::move(encoded), reply.status());
      });
      return absl::OkStatus();
    });
    if (!sent) Send(connection, exchange, ErrorReply(done), done);
  }

  // Hands the reply to the library's thread. From then on the exchange may be gone.
  void Send(MHD_Connection* connection, Exchange* exchange, HttpReply reply,
            const absl::Status& outcome) {
    exchange->held.HoldReply(reply.body.size());
    exchange->reply = std::move(reply);
    core_->Count(Protocol::kHttp, ServeMethod::kInfer, outcome, exchange->arrived);
    exchange->replied = true;
    MHD_resume_connection(connection);
  }

  MHD_Result Reply(MHD_Connection* connection, Exchange* exchange) {
    if (!exchange->replied) {
      exchange->reply = ErrorReply(exchange->refused);
      if (exchange->refused_status != 0) exchange->reply.status = exchange->refused_status;
      core_->Count(Protocol::kHttp, MethodOf(exchange->route.kind), exchange->refused,
                   exchange->arrived);
    } else if (exchange->route.kind != HttpRoute::Kind::kInfer) {
      core_->Count(Protocol::kHttp, MethodOf(exchange->route.kind), OutcomeOf(exchange->reply),
                   exchange->arrived);
    }
    exchange->reply.close |=
        exchange->close || closing_ || core_->stopping() || IsTooOld(connection);
    return QueueReply(connection, exchange->reply);
  }

  ServeLimits limits_;  // constant
  InferenceCore* const core_;
  ConnectionBook book_;
  int port_ = 0;
  bool shows_certificates_ = false;  // clients have to
  std::atomic<bool> closing_{false};

  absl::Mutex mutex_;
  int arriving_ ABSL_GUARDED_BY(mutex_) = 0;  // requests for predictions without all of their body
  int flying_ ABSL_GUARDED_BY(mutex_) = 0;    // requests that are complete, and not yet answered

  absl::Mutex daemons_mutex_;
  // The last one gets new connections; the others have open ones.
  std::vector<std::shared_ptr<Daemon>> daemons_ ABSL_GUARDED_BY(daemons_mutex_);
  std::unique_ptr<ConnectionAcceptor> acceptor_;
};

HttpHost::HttpHost() = default;
HttpHost::~HttpHost() = default;

absl::StatusOr<std::unique_ptr<HttpHost>> HttpHost::Start(ListeningSockets sockets,
                                                          const TlsPem& tls,
                                                          const ServeLimits& limits,
                                                          InferenceCore* core) {
  auto host = std::unique_ptr<HttpHost>(new HttpHost);
  host->service_ = std::make_unique<Service>(limits, core);
  CISTERN_RETURN_IF_ERROR(host->service_->Start(std::move(sockets), tls));
  return host;
}

int HttpHost::port() const {
  return service_->port();
}
absl::Status HttpHost::Renew(const TlsPem& tls) {
  return service_->StartDaemon(tls);
}
void HttpHost::BeginDrain() {
  service_->BeginDrain();
}
void HttpHost::StopAccepting() {
  service_->StopAccepting();
}
void HttpHost::AwaitBodies(absl::Duration grace) {
  service_->AwaitBodies(grace);
}
void HttpHost::AwaitReplies(absl::Duration grace) {
  service_->AwaitReplies(grace);
}

}  // namespace cistern::serve
