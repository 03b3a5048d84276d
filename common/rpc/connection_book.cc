#include "common/rpc/connection_book.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/rpc/watched_sockets.h"

namespace cistern {
namespace {

// Bytes that a call sends in addition to its request: headers, and the window updates for its
// reply.
constexpr uint64_t kBytesBesideRequest = 512;
constexpr uint64_t kReplyBytesAFlowByte = 256;
// gRPC's memory per byte of an incomplete message that arrives in the smallest frames (measured:
// 3.4).
constexpr uint64_t kMemoryOfUnfinishedByte = 4;
// gRPC's memory per call in addition to its messages (measured: 17 KB).
constexpr uint64_t kMemoryOfCall = 16u << 10;
// A connection may stall with fewer bytes than this: the frames of workers are smaller
// (worker/client).
constexpr uint64_t kMayStall = 1u << 20;

// The inode of an open socket; 0 if `fd` is not a socket.
uint64_t SocketInode(int fd) {
  struct stat status = {};
  return fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode) ? status.st_ino : 0;
}

// Resets the connection and drops the bytes that it has sent but that are still unread. After
// shutdown(2), gRPC would still process them.
void Reset(int fd) {
  sockaddr nowhere = {};
  nowhere.sa_family = AF_UNSPEC;
  if (connect(fd, &nowhere, sizeof(nowhere)) != 0) shutdown(fd, SHUT_RDWR);
}

// Bytes that this process has read from `fd` so far.
uint64_t ReadBytes(int fd) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  int unread = 0;
  if (ioctl(fd, SIOCINQ, &unread) != 0) unread = 0;
  const uint64_t received = info.tcpi_bytes_received;
  return received - std::min<uint64_t>(received, static_cast<uint64_t>(unread));
}

}  // namespace

struct ConnectionBook::Connection {
  Connection(int fd_in, const std::string& peer_in)
      : fd(fd_in), inode(SocketInode(fd_in)), peer(peer_in) {}

  bool IsOpen() const { return inode != 0 && SocketInode(fd) == inode; }
  uint64_t held() const { return unfinished + in_calls.load(std::memory_order_relaxed); }
  void End() {
    ended = true;
    Reset(fd);
  }

  const int fd;  // owned by gRPC: it may be closed, and the number reused
  const uint64_t inode;
  const std::string peer;
  std::shared_ptr<StreamWatch> watch;  // null: not watched
  std::atomic<uint64_t> delivered{0};  // bytes read from the socket and delivered to a handler
  std::atomic<uint64_t> in_calls{0};   // requests and replies of calls in progress
  std::atomic<int> calls{0};
  std::atomic<bool> called{false};  // has had a call
  std::atomic<int64_t> quiet_since_ns{absl::GetCurrentTimeNanos()};
  // Used by the accepting thread only:
  uint64_t unfinished = 0;  // memory of incomplete messages
  uint64_t last_delivered = 0;
  absl::Time moved = absl::Now();  // last time a call arrived or little was unfinished
  bool ended = false;
};

struct ConnectionBook::Totals {
  std::atomic<uint64_t> unfinished{0}, in_calls{0};
  std::atomic<uint64_t> accepted{0}, forgotten{0}, without_call{0};  // connections

  absl::Mutex mutex;
  bool closed ABSL_GUARDED_BY(mutex) = false;
  int calls ABSL_GUARDED_BY(mutex) = 0;

  // Counts a call; returns false if closed.
  bool Enter() {
    absl::MutexLock lock(&mutex);
    ++calls;
    return !closed;
  }
  void Leave() {
    absl::MutexLock lock(&mutex);
    --calls;
  }
};

ConnectionBook::ConnectionBook(uint64_t limit_bytes, absl::Duration stall, uint32_t max_streams,
                               bool encrypted)
    : limit_bytes_(limit_bytes),
      stall_(stall),
      max_streams_(max_streams),
      encrypted_(encrypted),
      totals_(std::make_shared<Totals>()) {}

ConnectionBook::~ConnectionBook() {
  for (const auto& connection : connections_) {
    if (connection->watch != nullptr) UnwatchSocket(connection->fd, connection->watch.get());
  }
}

std::shared_ptr<StreamWatch> ConnectionBook::Add(int fd, const std::string& peer) {
  auto connection = std::make_shared<Connection>(fd, peer);
  if (max_streams_ > 0) {
    connection->watch = std::make_shared<StreamWatch>(max_streams_);
    if (!encrypted_) WatchSocket(fd, connection->watch);
  }
  std::shared_ptr<StreamWatch> watch = connection->watch;
  connections_.push_back(connection);
  totals_->accepted.fetch_add(1, std::memory_order_relaxed);
  {
    absl::MutexLock lock(&mutex_);
    by_peer_[peer] = std::move(connection);
  }
  return watch;
}

void ConnectionBook::Forget(const std::shared_ptr<Connection>& connection, Swept* swept) {
  if (connection->watch != nullptr) {
    UnwatchSocket(connection->fd, connection->watch.get());
    if (const absl::Status status = connection->watch->status(); !status.ok()) {
      ++swept->excessive;
      swept->last_excessive = absl::StrCat(connection->peer, ": ", status.message());
    }
  }
  totals_->forgotten.fetch_add(1, std::memory_order_relaxed);
  if (!connection->called.load(std::memory_order_relaxed)) {
    totals_->without_call.fetch_add(1, std::memory_order_relaxed);
    ++swept->without_call;
    swept->last_without_call = connection->peer;
  }
  absl::MutexLock lock(&mutex_);
  const auto found = by_peer_.find(connection->peer);
  // The peer may have reconnected from the same port.
  if (found != by_peer_.end() && found->second == connection) by_peer_.erase(found);
}

void ConnectionBook::Measure(Connection* connection, absl::Time now) {
  uint64_t delivered = connection->delivered.load(std::memory_order_relaxed);
  const uint64_t read = ReadBytes(connection->fd);
  // The allowance for a call may exceed what it sent; the surplus must not accumulate.
  if (delivered > read) {
    connection->delivered.compare_exchange_strong(delivered, read, std::memory_order_relaxed);
  }
  const uint64_t undelivered = read - std::min(read, delivered);
  connection->unfinished = undelivered * kMemoryOfUnfinishedByte;
  if (connection->watch != nullptr) connection->unfinished += connection->watch->held_bytes();
  if (undelivered < kMayStall || delivered != connection->last_delivered) connection->moved = now;
  connection->last_delivered = delivered;
}

void ConnectionBook::End(Connection* connection, Swept* swept) {
  ++swept->ended;
  swept->last_ended = connection->peer;
  swept->ended_bytes = connection->held();
  connection->End();
}

ConnectionBook::Swept ConnectionBook::Sweep() {
  const absl::Time now = absl::Now();
  Swept swept;
  uint64_t unfinished = 0, held = 0;  // of all connections; of those that stay open
  std::vector<Connection*> living;
  std::erase_if(connections_, [&](const std::shared_ptr<Connection>& connection) {
    if (!connection->IsOpen()) {
      Forget(connection, &swept);
      return true;
    }
    if (!connection->ended) Measure(connection.get(), now);
    unfinished += connection->unfinished;
    if (connection->ended) return false;
    if (now - connection->moved > stall_) {
      End(connection.get(), &swept);
    } else {
      held += connection->held();
      living.push_back(connection.get());
    }
    return false;
  });
  totals_->unfinished.store(unfinished, std::memory_order_relaxed);
  swept.held_bytes = unfinished + totals_->in_calls.load(std::memory_order_relaxed);
  while (held > limit_bytes_ && !living.empty()) {
    const auto largest = std::max_element(living.begin(), living.end(),
                                          [](auto* a, auto* b) { return a->held() < b->held(); });
    held -= std::min(held, (*largest)->held());
    End(*largest, &swept);
    living.erase(largest);
  }
  return swept;
}

bool ConnectionBook::EndIdle(absl::Duration idle) {
  const int64_t latest = absl::GetCurrentTimeNanos() - absl::ToInt64Nanoseconds(idle);
  Connection* chosen = nullptr;
  for (const auto& connection : connections_) {
    const int64_t since = connection->quiet_since_ns.load(std::memory_order_relaxed);
    if (connection->ended || connection->calls.load(std::memory_order_relaxed) > 0) continue;
    if (since > latest || !connection->IsOpen()) continue;
    if (chosen == nullptr || since < chosen->quiet_since_ns) chosen = connection.get();
  }
  if (chosen == nullptr) return false;
  chosen->End();
  return true;
}

absl::StatusOr<ConnectionBook::Call> ConnectionBook::Begin(const std::string& peer,
                                                           uint64_t wire_bytes, uint64_t bytes) {
  const bool open = totals_->Enter();
  bytes += kMemoryOfCall;
  Call call;
  call.totals_ = totals_;
  call.bytes_ = bytes;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = by_peer_.find(peer);
    if (found != by_peer_.end()) call.connection_ = found->second;
  }
  const uint64_t in_calls = totals_->in_calls.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (call.connection_ != nullptr) {
    call.connection_->delivered.fetch_add(wire_bytes + kBytesBesideRequest,
                                          std::memory_order_relaxed);
    call.connection_->in_calls.fetch_add(bytes, std::memory_order_relaxed);
    call.connection_->calls.fetch_add(1, std::memory_order_relaxed);
    call.connection_->called.store(true, std::memory_order_relaxed);
  }
  if (!open) return absl::UnavailableError("this server is stopping");
  if (in_calls + totals_->unfinished.load(std::memory_order_relaxed) <= limit_bytes_) return call;
  return WithOptions(
      absl::UnavailableError(absl::StrCat(
          "the calls and connections of this server hold all of the ", limit_bytes_ >> 20,
          " MiB available to them; try again, or give the server more for its calls")),
      {"cistern-server.rpc_memory_mb"});
}

ConnectionBook::Figures ConnectionBook::figures() const {
  Figures figures;
  // In this order, so that no more are gone than have come.
  const uint64_t forgotten = totals_->forgotten.load();
  figures.accepted = totals_->accepted.load();
  figures.open = figures.accepted - forgotten;
  figures.without_call = totals_->without_call.load();
  figures.held_bytes = totals_->unfinished.load() + totals_->in_calls.load();
  return figures;
}

void ConnectionBook::Close(absl::Duration most) {
  absl::MutexLock lock(&totals_->mutex);
  totals_->closed = true;
  totals_->mutex.AwaitWithTimeout(absl::Condition(
                                      +[](int* calls) { return *calls == 0; }, &totals_->calls),
                                  most);
}

ConnectionBook::Call& ConnectionBook::Call::operator=(Call&& other) noexcept {
  if (this == &other) return *this;
  End();
  totals_ = std::move(other.totals_);
  connection_ = std::move(other.connection_);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void ConnectionBook::Call::HoldReply(uint64_t bytes) {
  if (totals_ == nullptr) return;
  bytes_ += bytes;
  totals_->in_calls.fetch_add(bytes, std::memory_order_relaxed);
  if (connection_ == nullptr) return;
  connection_->in_calls.fetch_add(bytes, std::memory_order_relaxed);
  connection_->delivered.fetch_add(bytes / kReplyBytesAFlowByte, std::memory_order_relaxed);
}

void ConnectionBook::Call::End() {
  if (totals_ == nullptr) return;
  totals_->in_calls.fetch_sub(bytes_, std::memory_order_relaxed);
  if (connection_ != nullptr) {
    connection_->in_calls.fetch_sub(bytes_, std::memory_order_relaxed);
    connection_->quiet_since_ns.store(absl::GetCurrentTimeNanos(), std::memory_order_relaxed);
    connection_->calls.fetch_sub(1, std::memory_order_relaxed);
  }
  totals_->Leave();
  totals_ = nullptr;
  connection_ = nullptr;
}

}  // namespace cistern
