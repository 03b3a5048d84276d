#include "worker/group/reception.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/base/log.h"

namespace cistern::group {
namespace {

using Clock = std::chrono::steady_clock;

// The connections to accept before waiting ones are read again, so that a flood does not displace
// one whose hello is complete.
constexpr int kAcceptedAtOnce = 32;
// The pause after descriptors ran out.
constexpr std::chrono::milliseconds kAcceptAgain{100};

}  // namespace

absl::StatusOr<Reception::Guest> Reception::Next(Deadline deadline) {
  for (;;) {
    CISTERN_RETURN_IF_ERROR(Wait(deadline));
    Guest guest;
    for (size_t i = waiting_.size(); i-- > 0;) {
      if (Read(i, &guest)) return guest;
    }
    DropSilent();
    AcceptSome();
    if (Clock::now() >= deadline) return absl::DeadlineExceededError("no connection arrived");
  }
}

absl::Status Reception::Wait(Deadline deadline) {
  const Deadline now = Clock::now();
  const bool accepts = now >= no_accept_before_;
  if (!accepts) deadline = std::min(deadline, no_accept_before_);
  std::vector<pollfd> polled;
  if (accepts) polled.push_back({listener_.descriptor(), POLLIN, 0});
  for (const Waiting& one : waiting_) {
    polled.push_back({one.socket.descriptor(), one.events, 0});
    deadline = std::min(deadline, one.until);
  }
  if (poll(polled.data(), polled.size(), MillisecondsUntil(deadline)) < 0 && errno != EINTR) {
    return absl::UnavailableError(absl::StrCat("poll: errno ", errno));
  }
  return absl::OkStatus();
}

bool Reception::Secure(size_t i) {
  Waiting& one = waiting_[i];
  if (one.is_secure) return true;
  const absl::Status done = one.socket.Handshake(&one.events);
  if (done.ok()) {
    one.is_secure = true;
    one.events = POLLIN;
    return true;
  }
  if (!absl::IsUnavailable(done)) Drop(i, kNotAdmitted);
  return false;
}

bool Reception::Read(size_t i, Guest* guest) {
  if (!Secure(i)) return false;
  Waiting& one = waiting_[i];
  char bytes[kHelloBytes];
  while (one.bytes.size() < kHelloBytes) {
    const ssize_t received = one.socket.Receive(bytes, kHelloBytes - one.bytes.size());
    if (received > 0) {
      one.bytes.append(bytes, static_cast<size_t>(received));
    } else if (received < 0 && (errno == EAGAIN || errno == EINTR)) {
      return false;
    } else {
      Drop(i, kClosed);
      return false;
    }
  }
  const absl::StatusOr<Hello> hello = ParseHello(one.bytes);
  if (!hello.ok() || !SameSecret(hello->secret, secret_)) {
    Drop(i, hello.ok() ? kOtherSecret : kOtherProgram);
    return false;
  }
  *guest = {*hello, std::move(one.socket)};
  waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
  return true;
}

void Reception::DropSilent() {
  while (!waiting_.empty() && waiting_.front().until <= Clock::now()) Drop(0, kSilent);
}

void Reception::AcceptSome() {
  if (Clock::now() < no_accept_before_) return;
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    absl::StatusOr<Socket> socket = listener_.Accept(Clock::now());
    if (absl::IsDeadlineExceeded(socket.status())) return;  // no pending connection
    if (!socket.ok()) {
      if (!std::exchange(has_warned_, true)) LogWarning(std::string(socket.status().message()));
      no_accept_before_ = Clock::now() + kAcceptAgain;
      if (!waiting_.empty()) Drop(0, kMadeRoom);
      return;
    }
    if (waiting_.size() == kMaxWaiting) Drop(0, kMadeRoom);
    if (!socket->BeginTls(tls_, TlsSide::kAccepts).ok()) {
      ++dropped_[kNotAdmitted];
      continue;
    }
    waiting_.push_back({*std::move(socket), Clock::now() + hello_time_, "", false, POLLIN});
  }
}

void Reception::Drop(size_t i, Reason reason) {
  ++dropped_[reason];
  waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
}

std::string Reception::Dropped() const {
  constexpr std::array<const char*, kReasons> kNames = {"silent",
                                                        "closed before their hello",
                                                        "of another program or version",
                                                        "with another secret",
                                                        "without a worker's certificate",
                                                        "closed to make room"};
  uint64_t all = 0;
  std::string reasons;
  for (size_t r = 0; r < kReasons; ++r) {
    if (dropped_[r] == 0) continue;
    all += dropped_[r];
    absl::StrAppend(&reasons, reasons.empty() ? ": " : ", ", dropped_[r], " ", kNames[r]);
  }
  if (all == 0) return "";
  return absl::StrCat("dropped ", all, all == 1 ? " connection that does" : " connections that do",
                      " not belong to this run", reasons);
}

}  // namespace cistern::group
