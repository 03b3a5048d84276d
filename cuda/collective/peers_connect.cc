// How a group finds each other: everyone opens a port and says at rank 0 which; when all have come,
// rank 0 tells everyone where the others are, and the higher rank of each pair connects to the
// lower.
#include <algorithm>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "cuda/collective/peers.h"

namespace cistern {
namespace {

using Clock = std::chrono::steady_clock;

// The longest that a connection may take to say who it is; other programs come to ports too.
constexpr std::chrono::seconds kHelloTime{5};
constexpr uint32_t kLongestReply = 1 << 24;

struct Hello {
  char magic[8] = {'C', 'I', 'S', 'T', 'P', 'E', 'E', 'R'};
  int32_t rank = 0, size = 0;
  uint32_t port = 0;
  char run[64] = {};
};

// The longest that a signal goes unnoticed.
constexpr std::chrono::milliseconds kSlice{500};

// Waits for something in parts, between which a signal ends it. `wait` may be called again after
// the deadline that it is given.
template <typename Wait>
auto UntilInterrupted(const PeerGroup& group, Deadline deadline, const Wait& wait)
    -> decltype(wait(deadline)) {
  for (;;) {
    auto result = wait(std::min<Deadline>(deadline, Clock::now() + kSlice));
    if (result.ok() || Clock::now() >= deadline) return result;
    if (group.interrupted != nullptr && group.interrupted->load()) {
      return absl::CancelledError("interrupted");
    }
    if (!absl::IsDeadlineExceeded(result.status())) return result;
  }
}

Hello HelloOf(const PeerGroup& group, uint16_t port) {
  Hello hello;
  hello.rank = group.rank;
  hello.size = group.size;
  hello.port = port;
  std::strncpy(hello.run, group.run.c_str(), sizeof(hello.run) - 1);
  return hello;
}

// A reply begins with a letter: 'T' the table of places, 'E' an error, 'U' one that another try may
// not meet.
absl::Status Reply(const Socket& socket, char kind, const std::string& text, Deadline deadline) {
  const auto bytes = static_cast<uint32_t>(text.size());
  std::string message(1, kind);
  message.append(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
  message += text;
  return SendAll(socket, message.data(), message.size(), deadline);
}

// Until all others have come to rank 0.
absl::StatusOr<std::string> ReceiveTable(const PeerGroup& group, const Socket& socket,
                                         Deadline deadline) {
  CISTERN_ASSIGN_OR_RETURN(
      const char kind,
      UntilInterrupted(group, deadline, [&](Deadline slice) -> absl::StatusOr<char> {
        char letter = 0;
        CISTERN_RETURN_IF_ERROR(ReceiveAll(socket, &letter, 1, slice));
        return letter;
      }));
  uint32_t bytes = 0;
  CISTERN_RETURN_IF_ERROR(ReceiveAll(socket, &bytes, sizeof(bytes), deadline));
  if (bytes > kLongestReply) return absl::DataLossError("its answer is none of this program");
  std::string text(bytes, ' ');
  CISTERN_RETURN_IF_ERROR(ReceiveAll(socket, text.data(), bytes, deadline));
  if (kind == 'E') return absl::InvalidArgumentError(text);
  if (kind == 'U') return absl::UnavailableError(text);
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Peers>> Peers::Connect(PeerGroup group) {
  if (group.size < 1 || group.rank < 0 || group.rank >= group.size) {
    return absl::InvalidArgumentError(absl::StrCat("worker ", group.rank, " of ", group.size,
                                                   " is none: they are 0 to size - 1"));
  }
  if (group.run.size() >= sizeof(Hello::run)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the run's name '", group.run, "' is longer than 63 characters"));
  }
  std::unique_ptr<Peers> peers(new Peers(group.rank, group.size, group.deadline));
  if (group.size == 1) return peers;
  const Deadline deadline = Clock::now() + group.gather_limit;
  absl::Status status =
      group.rank == 0 ? peers->Gather(group, deadline) : peers->Join(group, deadline);
  if (status.ok()) return peers;
  status = AddContext(
      status, absl::StrCat("worker ", group.rank, " of ", group.size, " joining the others"));
  for (const Other& other : peers->others_) {  // those who wait for the table
    if (group.rank != 0 || !other.socket.is_open()) continue;
    Reply(other.socket, absl::IsInvalidArgument(status) ? 'E' : 'U', std::string(status.message()),
          Clock::now() + kHelloTime)
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
    if (r == rank_ || others_[static_cast<size_t>(r)].socket.is_open()) continue;
    absl::StrAppend(&ranks, ranks.empty() ? "worker " : ", ", r);
  }
  return ranks;
}

// Someone came to a port. places: "host port" by rank, filled by rank 0. Only what shows that the
// group itself is wrong is an error; strangers are sent away.
absl::Status Peers::Welcome(const PeerGroup& group, Socket socket, bool is_first, Deadline deadline,
                            std::vector<std::string>* places) {
  Hello hello;
  const Hello own;
  const Deadline soon = std::min<Deadline>(deadline, Clock::now() + kHelloTime);
  if (!ReceiveAll(socket, &hello, sizeof(hello), soon).ok() ||
      std::memcmp(hello.magic, own.magic, sizeof(own.magic)) != 0) {
    return absl::OkStatus();
  }
  hello.run[sizeof(hello.run) - 1] = 0;
  if (group.run != hello.run) {
    Reply(socket, 'E',
          absl::StrCat("this is run '", group.run, "', not '", hello.run,
                       "'; two runs were given one address"),
          soon)
        .IgnoreError();
    return absl::OkStatus();
  }
  std::string wrong;
  if (hello.size != size()) {
    wrong = absl::StrCat("worker ", hello.rank, " says that the group has ", hello.size,
                         " workers, worker ", rank_, " says ", size());
  } else if (hello.rank <= (is_first ? 0 : rank_) || hello.rank >= size()) {
    wrong =
        absl::StrCat("worker ", hello.rank, " came to worker ", rank_, ", which did not expect it");
  } else if (const Socket& before = others_[static_cast<size_t>(hello.rank)].socket;
             before.is_open() && !HasEnded(before)) {
    wrong = absl::StrCat("two processes say that they are worker ", hello.rank);
  }
  if (!wrong.empty()) {
    Reply(socket, 'E', wrong, soon).IgnoreError();
    return absl::InvalidArgumentError(wrong);
  }
  const auto place = static_cast<size_t>(hello.rank);
  if (is_first) (*places)[place] = absl::StrCat(HostOf(socket), " ", hello.port);
  Take(hello.rank, std::move(socket));
  return absl::OkStatus();
}

absl::Status Peers::Gather(const PeerGroup& group, Deadline deadline) {
  Listener own;
  const Listener* listener = &group.listener;
  if (!listener->is_open()) {
    CISTERN_ASSIGN_OR_RETURN(const HostAndPort address, ParseAddress(group.address));
    CISTERN_ASSIGN_OR_RETURN(own, Listener::Open(address.port, IsLoopback(address.host)));
    listener = &own;
  }
  std::vector<std::string> places(others_.size());
  for (std::string missing = Missing(); !missing.empty(); missing = Missing()) {
    absl::StatusOr<Socket> socket =
        UntilInterrupted(group, deadline, [&](Deadline slice) { return listener->Accept(slice); });
    if (!socket.ok()) return AddContext(socket.status(), missing + " did not come");
    CISTERN_RETURN_IF_ERROR(Welcome(group, *std::move(socket), true, deadline, &places));
  }
  std::string table;
  for (const std::string& place : places) absl::StrAppend(&table, place, "\n");
  for (int r = 1; r < size(); ++r) {
    const Other& other = others_[static_cast<size_t>(r)];
    CISTERN_RETURN_IF_ERROR(AddContext(Reply(other.socket, 'T', table, deadline), other.name));
  }
  return absl::OkStatus();
}

absl::Status Peers::Join(const PeerGroup& group, Deadline deadline) {
  CISTERN_ASSIGN_OR_RETURN(const HostAndPort address, ParseAddress(group.address));
  CISTERN_ASSIGN_OR_RETURN(const Listener listener, Listener::Open(0, IsLoopback(address.host)));
  absl::StatusOr<Socket> first =
      UntilInterrupted(group, deadline, [&](Deadline slice) -> absl::StatusOr<Socket> {
        absl::StatusOr<Socket> socket = ConnectTo(address, slice);
        if (socket.ok()) return socket;
        return absl::DeadlineExceededError(socket.status().message());
      });
  if (!first.ok()) return AddContext(first.status(), "worker 0");
  const Hello hello = HelloOf(group, listener.port());
  CISTERN_RETURN_IF_ERROR(AddContext(SendAll(*first, &hello, sizeof(hello), deadline), "worker 0"));
  absl::StatusOr<std::string> table = ReceiveTable(group, *first, deadline);
  if (!table.ok()) {
    return AddContext(table.status(), absl::StrCat("worker 0 at ", group.address));
  }
  Take(0, *std::move(first));

  const std::vector<std::string> places = absl::StrSplit(*table, '\n');
  for (int r = 1; r < rank_; ++r) {
    const std::vector<std::string> place =
        absl::StrSplit(places[static_cast<size_t>(r) % places.size()], ' ');
    uint32_t port = 0;
    if (place.size() != 2 || !absl::SimpleAtoi(place[1], &port)) {
      return absl::DataLossError("worker 0 sent a table of places that cannot be read");
    }
    // A loopback is rank 0's own machine.
    const HostAndPort there = {IsLoopback(place[0]) ? address.host : place[0],
                               static_cast<uint16_t>(port)};
    absl::StatusOr<Socket> socket = ConnectTo(there, deadline);
    if (!socket.ok()) return AddContext(socket.status(), absl::StrCat("worker ", r));
    CISTERN_RETURN_IF_ERROR(
        AddContext(SendAll(*socket, &hello, sizeof(hello), deadline), absl::StrCat("worker ", r)));
    Take(r, *std::move(socket));
  }
  for (std::string missing = Missing(); !missing.empty(); missing = Missing()) {
    absl::StatusOr<Socket> socket =
        UntilInterrupted(group, deadline, [&](Deadline slice) { return listener.Accept(slice); });
    if (!socket.ok()) return AddContext(socket.status(), missing + " did not come");
    CISTERN_RETURN_IF_ERROR(Welcome(group, *std::move(socket), false, deadline, nullptr));
  }
  return absl::OkStatus();
}

}  // namespace cistern
