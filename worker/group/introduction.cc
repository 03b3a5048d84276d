#include "worker/group/introduction.h"

#include <poll.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/log.h"
#include "worker/group/waiting.h"

namespace cistern::group {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kAgain{100};  // between two attempts
// The limit for a message that fits in one packet, and for a port that was open a moment ago.
constexpr std::chrono::seconds kSoon{5};
// The longest answer: a reason, or one address table entry per rank.
constexpr size_t kReasonBytes = 1 << 20, kPlaceBytes = 128;

void Pause() {
  poll(nullptr, 0, static_cast<int>(kAgain.count()));
}

bool MayComeLater(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsUnavailable(status) ||
         absl::IsDeadlineExceeded(status);
}

absl::StatusOr<uint64_t> Ask(const GroupOptions& group, const GroupSecret& secret,
                             Deadline deadline) {
  if (!secret.fetch) return secret.value;
  const Deadline long_since = Clock::now() + kSoon;
  bool has_told = false;
  return UntilInterrupted(group, deadline, [&](Deadline) -> absl::StatusOr<uint64_t> {
    absl::StatusOr<uint64_t> value = secret.fetch();
    if (value.ok() || !MayComeLater(value.status())) return value;
    if (Clock::now() >= long_since && !std::exchange(has_told, true)) {
      LogInfo(
          absl::StrCat("worker ", group.rank, " waits for worker 0: ", value.status().message()));
    }
    Pause();
    return WithCode(value.status(), absl::StatusCode::kDeadlineExceeded);
  });
}

absl::StatusOr<Socket> Connect(const GroupOptions& group, const HostPort& there,
                               Deadline deadline) {
  return UntilInterrupted(group, deadline, [&](Deadline slice) -> absl::StatusOr<Socket> {
    absl::StatusOr<Socket> socket = ConnectTo(there, slice);
    if (socket.ok()) return socket;
    return WithCode(socket.status(), absl::StatusCode::kDeadlineExceeded);
  });
}

// nullopt if the other side closed the connection without an answer.
absl::StatusOr<std::optional<std::string>> SayHello(const GroupOptions& group, const Hello& hello,
                                                    const Socket& socket, Deadline deadline) {
  const std::string bytes = FormatHello(hello);
  const absl::Status secured = CompleteHandshake(socket, std::min(deadline, Clock::now() + kSoon));
  if (absl::IsPermissionDenied(secured)) return secured;
  if (!secured.ok()) return std::nullopt;
  if (!SendAll(socket, bytes.data(), bytes.size(), std::min(deadline, Clock::now() + kSoon)).ok()) {
    return std::nullopt;
  }
  const absl::StatusOr<Answer> answer =
      UntilInterrupted(group, deadline, [&](Deadline slice) -> absl::StatusOr<Answer> {
        char letter = 0;
        CISTERN_RETURN_IF_ERROR(ReceiveAll(socket, &letter, 1, slice));
        return static_cast<Answer>(letter);
      });
  if (absl::IsUnavailable(answer.status())) return std::nullopt;
  CISTERN_RETURN_IF_ERROR(answer.status());
  const Deadline soon = std::min(deadline, Clock::now() + kSoon);
  uint32_t count = 0;
  CISTERN_RETURN_IF_ERROR(ReceiveAll(socket, &count, sizeof(count), soon));
  const bool known =
      *answer == Answer::kWelcome || *answer == Answer::kRefused || *answer == Answer::kFailed;
  if (!known || count > kReasonBytes + kPlaceBytes * static_cast<size_t>(group.size)) {
    return absl::FailedPreconditionError(
        "another program answers there; find out which program uses the port, or choose another");
  }
  std::string text(count, ' ');
  CISTERN_RETURN_IF_ERROR(ReceiveAll(socket, text.data(), count, soon));
  if (*answer == Answer::kRefused) return absl::InvalidArgumentError(text);
  if (*answer == Answer::kFailed) return absl::UnavailableError(text);
  return text;
}

}  // namespace

absl::Status SendAnswer(const Socket& socket, Answer answer, const std::string& text,
                        Deadline deadline) {
  const auto bytes = static_cast<uint32_t>(text.size());
  std::string message(1, static_cast<char>(answer));
  message.append(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
  message += text;
  return SendAll(socket, message.data(), message.size(), deadline);
}

absl::StatusOr<Introduced> Introduce(const GroupOptions& group, const GroupSecret& secret,
                                     const HostPort& there, uint16_t port, Deadline deadline) {
  Hello hello = {secret.value, static_cast<uint32_t>(group.rank), static_cast<uint32_t>(group.size),
                 port};
  Deadline connected_by = deadline;
  for (int tries = 1;; ++tries) {
    CISTERN_ASSIGN_OR_RETURN(hello.secret, Ask(group, secret, deadline));
    CISTERN_ASSIGN_OR_RETURN(Socket socket, Connect(group, there, connected_by));
    CISTERN_RETURN_IF_ERROR(socket.BeginTls(group.tls.get(), TlsSide::kConnects));
    CISTERN_ASSIGN_OR_RETURN(std::optional<std::string> welcome,
                             SayHello(group, hello, socket, deadline));
    if (welcome) return Introduced{std::move(socket), *std::move(welcome), hello.secret};
    // A process whose secret cannot change is not restarted: either it runs, or the group is lost.
    if (!secret.fetch) connected_by = std::min(deadline, Clock::now() + kSoon);
    if (Clock::now() + kAgain >= deadline) {
      return absl::UnavailableError(absl::StrCat(
          there.host, ":", there.port, " closed ", tries,
          tries == 1 ? " connection" : " connections",
          " of this worker without an answer; the process that listens there has ended or belongs "
          "to another run"));
    }
    Pause();
  }
}

}  // namespace cistern::group
