// The rendezvous of a process group. Every rank opens a port and reports it to rank 0. Once all
// ranks have joined, rank 0 sends everyone the table of addresses, and the higher rank of each pair
// connects to the lower.
#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/log.h"
#include "worker/group/introduction.h"
#include "worker/group/peers.h"
#include "worker/group/waiting.h"

namespace cistern::group {
namespace {

using Clock = std::chrono::steady_clock;

// The time to send an answer, which fits into the socket's buffer.
constexpr std::chrono::seconds kAnswerTime{5};
constexpr std::chrono::seconds kLeaveAgain{1};
constexpr int kMaxSize = 1 << 16;

// Publishes the group secret for the ranks that have yet to join, again and again.
class SecretNotice {
 public:
  explicit SecretNotice(const GroupSecret& secret) : secret_(secret) {}

  // Returns a permanent error; keeps other errors for last().
  absl::Status Renew() {
    if (!secret_.leave || Clock::now() < next_) return absl::OkStatus();
    last_ = secret_.leave(secret_.value);
    next_ = Clock::now() + kLeaveAgain;
    const bool may_pass = absl::IsUnavailable(last_) || absl::IsDeadlineExceeded(last_);
    return may_pass ? absl::OkStatus() : last_;
  }
  const absl::Status& last() const { return last_; }

 private:
  const GroupSecret& secret_;
  Deadline next_{};
  absl::Status last_;
};

absl::Status CheckGroup(const GroupOptions& group) {
  if (group.size < 1 || group.size > kMaxSize || group.rank < 0 || group.rank >= group.size) {
    return absl::InvalidArgumentError(absl::StrCat("worker ", group.rank, " of ", group.size,
                                                   " is invalid: ranks are 0 to size - 1, and the "
                                                   "size is at most ",
                                                   kMaxSize));
  }
  const bool has_secret = group.secret.value != 0 || (group.rank > 0 && group.secret.fetch);
  if (group.size > 1 && !has_secret) {
    return absl::InvalidArgumentError("a process group without a secret would admit anyone");
  }
  return absl::OkStatus();
}

// A rank's entry in the table of addresses: "host port".
absl::StatusOr<HostPort> PlaceOf(const std::vector<std::string>& places, int rank) {
  const auto r = static_cast<size_t>(rank);
  std::vector<std::string> words;
  if (r < places.size()) words = absl::StrSplit(places[r], ' ');
  uint32_t port = 0;
  if (words.size() != 2 || !absl::SimpleAtoi(words[1], &port) || port == 0 || port > 65535) {
    return absl::InternalError("worker 0 sent a table of addresses that cannot be parsed");
  }
  return HostPort{words[0], static_cast<uint16_t>(port)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Peers>> Peers::Connect(GroupOptions group) {
  CISTERN_RETURN_IF_ERROR(CheckGroup(group));
  std::unique_ptr<Peers> peers(new Peers(group.rank, group.size, group.deadline));
  if (group.size == 1) return peers;
  const Deadline deadline = Clock::now() + group.gather_limit;
  absl::Status status =
      group.rank == 0 ? peers->Gather(group, deadline) : peers->Join(group, deadline);
  if (status.ok()) return peers;
  status = AddContext(
      status, absl::StrCat("worker ", group.rank, " of ", group.size, " joining the others"));
  for (const Other& other : peers->others_) {  // the ranks that wait for the table
    if (group.rank != 0 || !other.socket.is_open()) continue;
    const Answer answer = absl::IsInvalidArgument(status) ? Answer::kRefused : Answer::kFailed;
    SendAnswer(other.socket, answer, std::string(status.message()), Clock::now() + kAnswerTime)
        .IgnoreError();
  }
  return status;
}

void Peers::Take(int rank, Socket socket) {
  Other& other = others_[static_cast<size_t>(rank)];
  other.name = absl::StrCat("worker ", rank, " (", HostOf(socket), ")");
  other.socket = std::move(socket);
}

std::string Peers::Missing() const {
  std::string ranks;
  for (int r = 0; r < size(); ++r) {
    // A process that has ended may be replaced while rank 0 waits.
    const Socket& socket = others_[static_cast<size_t>(r)].socket;
    if (r == rank_ || (socket.is_open() && !(rank_ == 0 && HasEnded(socket)))) continue;
    absl::StrAppend(&ranks, ranks.empty() ? "worker " : ", ", r);
  }
  return ranks;
}

// Admits a connection that knows the secret. Such a process belongs to this run, so a wrong rank or
// size is an error of the whole group.
absl::Status Peers::Welcome(Reception::Guest guest) {
  const auto& [hello, socket] = guest;
  std::string wrong;
  if (hello.size != others_.size()) {
    wrong = absl::StrCat("worker ", hello.rank, " was started in a group of ", hello.size,
                         " workers, worker ", rank_, " in a group of ", size());
  } else if (hello.rank <= static_cast<uint32_t>(rank_) || hello.rank >= others_.size()) {
    wrong =
        absl::StrCat("worker ", rank_, " got an unexpected connection from worker ", hello.rank);
  } else if (const Socket& before = others_[hello.rank].socket;
             before.is_open() && !HasEnded(before)) {
    wrong = absl::StrCat("two processes were started as worker ", hello.rank);
  }
  const Deadline soon = Clock::now() + kAnswerTime;
  if (!wrong.empty()) {
    SendAnswer(socket, Answer::kRefused, wrong, soon).IgnoreError();
    return absl::InvalidArgumentError(wrong);
  }
  // Rank 0 answers once all ranks have joined.
  if (rank_ > 0 && !SendAnswer(socket, Answer::kWelcome, "", soon).ok()) return absl::OkStatus();
  Take(static_cast<int>(hello.rank), std::move(guest.socket));
  others_[hello.rank].port = hello.port;
  return absl::OkStatus();
}

absl::Status Peers::WelcomeAll(const GroupOptions& group, const Listener& listener, uint64_t secret,
                               Deadline deadline) {
  Reception reception(listener, secret, Reception::kHelloTime, group.tls.get());
  SecretNotice notice(group.secret);
  const auto welcome_missing = [&]() -> absl::Status {
    for (std::string missing = Missing(); !missing.empty(); missing = Missing()) {
      absl::StatusOr<Reception::Guest> guest = UntilInterrupted(
          group, deadline, [&](Deadline slice) -> absl::StatusOr<Reception::Guest> {
            CISTERN_RETURN_IF_ERROR(notice.Renew());
            return reception.Next(slice);
          });
      if (absl::IsDeadlineExceeded(guest.status()) && !notice.last().ok()) {
        return AddContext(notice.last(), absl::StrCat(missing,
                                                      " did not join: the run secret could not be "
                                                      "published for them"));
      }
      if (!guest.ok()) return AddContext(guest.status(), missing + " did not join");
      CISTERN_RETURN_IF_ERROR(Welcome(*std::move(guest)));
    }
    return absl::OkStatus();
  };
  const absl::Status status = welcome_missing();
  const std::string dropped = reception.Dropped();
  if (!dropped.empty()) LogWarning(absl::StrCat("worker ", rank_, " gathering: ", dropped));
  return status;
}

absl::Status Peers::Gather(const GroupOptions& group, Deadline deadline) {
  Listener own;
  const Listener* listener = &group.listener;
  if (!listener->is_open()) {
    CISTERN_ASSIGN_OR_RETURN(const HostPort address, ParseHostPort(group.address));
    CISTERN_ASSIGN_OR_RETURN(own, Listener::Open(address.port, address.host));
    listener = &own;
  }
  CISTERN_RETURN_IF_ERROR(WelcomeAll(group, *listener, group.secret.value, deadline));
  std::string table;
  for (const Other& other : others_) {
    const bool is_own = &other == others_.data();
    absl::StrAppend(&table, is_own ? "" : absl::StrCat(HostOf(other.socket), " ", other.port),
                    "\n");
  }
  for (int r = 1; r < size(); ++r) {
    const Other& other = others_[static_cast<size_t>(r)];
    CISTERN_RETURN_IF_ERROR(
        AddContext(SendAnswer(other.socket, Answer::kWelcome, table, deadline), other.name));
  }
  return absl::OkStatus();
}

absl::Status Peers::Join(const GroupOptions& group, Deadline deadline) {
  CISTERN_ASSIGN_OR_RETURN(const HostPort address, ParseHostPort(group.address));
  CISTERN_ASSIGN_OR_RETURN(const Listener listener, Listener::Open(0, address.host));
  absl::StatusOr<Introduced> first =
      Introduce(group, group.secret, address, listener.port(), deadline);
  if (!first.ok()) return AddContext(first.status(), "worker 0");
  Take(0, std::move(first->socket));

  const std::vector<std::string> places = absl::StrSplit(first->text, '\n');
  for (int r = 1; r < rank_; ++r) {
    CISTERN_ASSIGN_OR_RETURN(HostPort there, PlaceOf(places, r));
    if (IsLoopback(there.host)) there.host = address.host;  // the rank runs on rank 0's machine
    absl::StatusOr<Introduced> other =
        Introduce(group, {first->secret, nullptr, nullptr}, there, listener.port(), deadline);
    if (!other.ok()) return AddContext(other.status(), absl::StrCat("worker ", r));
    Take(r, std::move(other->socket));
  }
  return WelcomeAll(group, listener, first->secret, deadline);
}

}  // namespace cistern::group
