#include "worker/group/peers.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/base/check.h"

namespace cistern::group {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kPieceMagic = 0x43505231;  // "CPR1"
constexpr uint32_t kGivesUp = 0xFFFFFFFF;  // the kind of a final message, whose bytes are a reason
constexpr uint64_t kLastCode = static_cast<uint64_t>(absl::StatusCode::kUnauthenticated);
constexpr size_t kPieceReasonBytes = 512;
constexpr std::chrono::milliseconds kLook{100};  // the interval of checks for an Interrupt
// After a rank has failed: how long to wait for the messages of the others, so that none of them
// mistakes this process for the failed one.
constexpr std::chrono::seconds kGrace{5};

}  // namespace

struct Peers::Header {
  uint32_t magic = kPieceMagic;
  uint32_t kind = 0;
  char name[16] = {};
  uint64_t number = 0, elements = 0, bytes = 0;
};

// One other rank's part of a call.
struct Peers::Transfer {
  Header out, in;
  SentPart send;
  ReceivedPart receive;
  size_t sent = 0, received = 0;  // bytes, headers included
  char reason[kPieceReasonBytes] = {};
  bool cannot_send = false;
  absl::Status status;

  bool may_send() const { return status.ok() && !cannot_send; }
  bool wants_to_send() const { return may_send() && sent < sizeof(Header) + send.bytes; }
  bool wants_to_receive() const { return status.ok() && received < sizeof(Header) + receive.bytes; }
  bool is_done() const { return !wants_to_send() && !wants_to_receive(); }
};

Peers::Peers(int rank, int size, std::chrono::milliseconds deadline)
    : rank_(rank), deadline_(deadline), others_(static_cast<size_t>(size)) {}

absl::Status Peers::Exchange(const CallShape& call, absl::Span<const SentPart> send,
                             absl::Span<const ReceivedPart> receive) {
  if (const absl::Status stop = Interruption(); !stop.ok()) Abort(stop);
  CISTERN_RETURN_IF_ERROR(status_);
  CISTERN_CHECK(send.size() == others_.size() && receive.size() == others_.size());
  ++calls_;
  std::vector<Transfer> transfers(others_.size());
  for (size_t r = 0; r < others_.size(); ++r) {
    Transfer& transfer = transfers[r];
    transfer.send = send[r];
    transfer.receive = receive[r];
    transfer.out.kind = call.kind;
    std::strncpy(transfer.out.name, call.name, sizeof(transfer.out.name) - 1);
    transfer.out.number = calls_;
    transfer.out.elements = call.elements;
    transfer.out.bytes = send[r].bytes;
    if (static_cast<int>(r) == rank_) transfer.sent = transfer.received = ~size_t{0};
  }
  Carry(call, absl::MakeSpan(transfers));
  status_ = Outcome(call, transfers);
  if (!status_.ok()) Abort(status_, transfers);
  return status_;
}

void Peers::Carry(const CallShape& call, absl::Span<Transfer> transfers) {
  Deadline deadline = Clock::now() + deadline_;
  bool has_failed = false;
  std::vector<pollfd> waits;
  std::vector<int> ranks;
  for (;;) {
    waits.clear();
    ranks.clear();
    for (int r = 0; r < size(); ++r) {
      Transfer& transfer = transfers[static_cast<size_t>(r)];
      const Socket& socket = others_[static_cast<size_t>(r)].socket;
      if (transfer.wants_to_receive() && socket.HoldsBytes()) Receive(r, call, &transfer);
      if (!transfer.status.ok() && !has_failed) {
        has_failed = true;
        deadline = std::min<Deadline>(deadline, Clock::now() + kGrace);
      }
      const bool holds = transfer.may_send() && socket.HoldsOutput();
      if (transfer.is_done() && !holds) continue;
      const int events = (transfer.wants_to_send() || holds ? POLLOUT : 0) |
                         (transfer.wants_to_receive() ? POLLIN : 0);
      waits.push_back({socket.descriptor(), static_cast<short>(events), 0});
      ranks.push_back(r);
    }
    if (waits.empty()) return;
    const Deadline next_look = std::min<Deadline>(deadline, Clock::now() + kLook);
    const int ready = poll(waits.data(), waits.size(), MillisecondsUntil(next_look));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0 || (ready == 0 && next_look == deadline)) return;
    if (const absl::Status stop = Interruption(); !stop.ok()) {
      for (Transfer& transfer : transfers) {
        if (transfer.status.ok()) transfer.status = stop;
      }
      return;
    }
    for (size_t i = 0; i < waits.size(); ++i) {
      Transfer& transfer = transfers[static_cast<size_t>(ranks[i])];
      const int events = waits[i].revents;
      if ((events & (POLLOUT | POLLERR | POLLHUP)) != 0) Send(ranks[i], &transfer);
      if ((events & (POLLIN | POLLERR | POLLHUP)) != 0) Receive(ranks[i], call, &transfer);
    }
  }
}

// A rank's own error takes precedence over the silence of others.
absl::Status Peers::Outcome(const CallShape& call, absl::Span<const Transfer> transfers) const {
  std::string silent;
  for (size_t r = 0; r < transfers.size(); ++r) {
    CISTERN_RETURN_IF_ERROR(transfers[r].status);
    if (transfers[r].is_done()) continue;
    absl::StrAppend(&silent, silent.empty() ? "" : ", ", others_[r].name,
                    transfers[r].received == 0 ? " has not reached it" : " stopped during it");
  }
  if (silent.empty()) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat(call.name, " (call ", calls_, "): after ", deadline_.count(), " ms ", silent));
}

// Sends what the socket takes at once; what it holds of this message, once all is handed over.
ssize_t Peers::SendSome(const Socket& socket, Transfer* transfer) {
  if (!transfer->wants_to_send()) return socket.Flush();
  const bool in_header = transfer->sent < sizeof(Header);
  const char* at =
      in_header ? reinterpret_cast<const char*>(&transfer->out) + transfer->sent
                : static_cast<const char*>(transfer->send.data) + (transfer->sent - sizeof(Header));
  const size_t left =
      (in_header ? sizeof(Header) : sizeof(Header) + transfer->send.bytes) - transfer->sent;
  const ssize_t sent = socket.Send(at, left, in_header && transfer->send.bytes > 0);
  if (sent > 0) transfer->sent += static_cast<size_t>(sent);
  return sent;
}

void Peers::Send(int rank, Transfer* transfer) {
  const Other& other = others_[static_cast<size_t>(rank)];
  while (transfer->wants_to_send() || (transfer->may_send() && other.socket.HoldsOutput())) {
    if (SendSome(other.socket, transfer) >= 0 || errno == EINTR) continue;
    if (errno == EAGAIN) return;
    // The connection is closed, but a reason may have arrived before: Receive reports the error.
    transfer->cannot_send = true;
    if (transfer->wants_to_receive()) return;
    transfer->status = absl::UnavailableError(
        absl::StrCat(transfer->out.name, " (call ", calls_, "): ", other.name,
                     " closed its connection; it has ended or was killed"));
  }
}

void Peers::Receive(int rank, const CallShape& call, Transfer* transfer) {
  const Other& other = others_[static_cast<size_t>(rank)];
  while (transfer->wants_to_receive()) {
    const bool in_header = transfer->received < sizeof(Header);
    char* at = in_header ? reinterpret_cast<char*>(&transfer->in) + transfer->received
                         : static_cast<char*>(transfer->receive.data) +
                               (transfer->received - sizeof(Header));
    const size_t left = (in_header ? sizeof(Header) : sizeof(Header) + transfer->receive.bytes) -
                        transfer->received;
    const ssize_t received = other.socket.Receive(at, left);
    if (received > 0) {
      transfer->received += static_cast<size_t>(received);
      if (in_header && transfer->received == sizeof(Header)) {
        transfer->status = CheckHeader(rank, call, transfer->out, transfer);
      }
    } else if (received < 0 && errno == EAGAIN) {
      return;
    } else if (received == 0 || errno != EINTR) {
      transfer->status = absl::UnavailableError(
          absl::StrCat(call.name, " (call ", calls_, "): ", other.name,
                       received == 0 ? " closed its connection" : " lost its connection",
                       "; it has ended or was killed"));
    }
  }
  // A reason replaces the message and ends the group.
  if (transfer->status.ok() && transfer->in.kind == kGivesUp && !transfer->wants_to_receive()) {
    transfer->status = absl::Status(static_cast<absl::StatusCode>(transfer->in.elements),
                                    absl::StrCat(call.name, " (call ", calls_, "): ", other.name,
                                                 " gave up: ", transfer->reason));
  }
}

absl::Status Peers::CheckHeader(int rank, const CallShape& call, const Header& own,
                                Transfer* transfer) const {
  Header& in = transfer->in;
  const std::string& name = others_[static_cast<size_t>(rank)].name;
  if (in.magic != kPieceMagic) {
    return absl::FailedPreconditionError(
        absl::StrCat(call.name, " (call ", calls_, "): ", name,
                     " sent something that is not a message of this program; another program may "
                     "use the group's "
                     "port"));
  }
  if (in.kind == kGivesUp && in.elements > 0 && in.elements <= kLastCode) {
    transfer->receive = {transfer->reason, std::min<size_t>(in.bytes, kPieceReasonBytes - 1)};
    transfer->cannot_send = true;
    return absl::OkStatus();
  }
  in.name[sizeof(in.name) - 1] = 0;
  const bool same = in.kind == own.kind && in.number == own.number && in.elements == own.elements &&
                    std::strcmp(in.name, own.name) == 0;
  if (same && in.bytes == transfer->receive.bytes) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      name, " is in ", in.name, " (call ", in.number, ") of ", in.elements, " elements of kind ",
      in.kind, " and sends ", in.bytes, " bytes; this one, worker ", rank_, ", is in ", call.name,
      " (call ", calls_, ") of ", call.elements, " elements of kind ", call.kind, " and expects ",
      transfer->receive.bytes, " bytes"));
}

void Peers::Interrupt(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  interruption_.Update(why);
}

absl::Status Peers::Interruption() const {
  absl::MutexLock lock(&mutex_);
  return interruption_;
}

void Peers::Abort(const absl::Status& why) {
  if (!status_.ok()) return;
  status_ = why;
  std::vector<Transfer> transfers(others_.size());  // none is partly sent
  for (Transfer& transfer : transfers) transfer.sent = transfer.received = ~size_t{0};
  Abort(why, transfers);
}

void Peers::Abort(const absl::Status& status, absl::Span<const Transfer> transfers) {
  Header last;
  last.kind = kGivesUp;
  last.elements = static_cast<uint64_t>(status.code());
  const std::string reason(status.message().substr(0, kPieceReasonBytes - 1));
  last.bytes = reason.size();
  const std::string text = std::string(reinterpret_cast<const char*>(&last), sizeof(last)) + reason;
  for (size_t r = 0; r < others_.size(); ++r) {
    // A reason cannot follow a partly sent message.
    const bool between =
        transfers[r].sent == 0 || transfers[r].sent >= sizeof(Header) + transfers[r].send.bytes;
    if (between && !transfers[r].cannot_send && others_[r].socket.is_open()) {
      const ssize_t ignored = others_[r].socket.Send(text.data(), text.size());
      static_cast<void>(ignored);
    }
    others_[r].socket = Socket();
  }
}

}  // namespace cistern::group
