#include "worker/group/process_group.h"

#include <exception>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/log.h"
#include "common/base/machine_limits.h"
#include "common/base/secret.h"
#include "worker/group/tcp_communicator.h"

namespace cistern::group {
namespace {

// A live worker may be busy for hours: worker 0 saves a model, or another worker waits for data.
constexpr std::chrono::milliseconds kPatience = std::chrono::hours(6);
// The workers of a second group are already connected by the first, and join at once.
constexpr std::chrono::milliseconds kNextLimit = std::chrono::seconds(60);
// The limit inside a step. Long operations run between passes, where the group waits longer.
constexpr std::chrono::milliseconds kStepPatience = std::chrono::minutes(5);

// Error messages of other workers are truncated to this length.
constexpr size_t kErrorBytes = 4096;

// A message is one byte with a status code, then the text (code 0) or the error message.
std::string WithCode(const absl::StatusOr<std::string>& said) {
  const char code = static_cast<char>(said.status().code());
  return std::string(1, code) + (said.ok() ? *said : std::string(said.status().message()));
}

absl::StatusOr<std::string> FromCode(const std::string& text, size_t rank) {
  if (text.empty()) return absl::InternalError(absl::StrCat("worker ", rank, " sent no status"));
  const auto code = static_cast<absl::StatusCode>(text[0]);
  if (code == absl::StatusCode::kOk) return text.substr(1);
  if (code < absl::StatusCode::kOk || code > absl::StatusCode::kUnauthenticated) {
    return absl::InternalError(absl::StrCat("worker ", rank, " sent an unknown error code"));
  }
  return absl::Status(code, absl::StrCat("worker ", rank, ": ", text.substr(1, kErrorBytes)));
}

// A buffer for the messages that the workers announce. announced: bytes, by rank.
absl::StatusOr<std::string> RoomFor(const std::vector<uint64_t>& announced) {
  uint64_t total = 0, largest = 0;
  size_t from = 0;
  for (size_t r = 0; r < announced.size(); ++r) {
    if (announced[r] > ProcessGroup::kMaxMessageBytes) {
      return absl::InternalError(
          absl::StrCat("worker ", r, " announces a message of ", announced[r], " bytes; ",
                       ProcessGroup::kMaxMessageBytes,
                       " is the limit. Check that it runs this version, and check its machine"));
    }
    total += announced[r];
    if (announced[r] > largest) from = r, largest = announced[r];
  }
  try {
    if (total <= MemoryBytes()) return std::string(total, '\0');
  } catch (const std::exception&) {  // std::bad_alloc, or std::length_error
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "the messages of all workers have ", total, " bytes, ", largest, " of them from worker ",
      from, ": this machine does not have the memory for them"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProcessGroup>> ProcessGroup::Form(const GroupPlace& place,
                                                                 std::chrono::milliseconds limit) {
  GroupOptions group;
  group.rank = static_cast<int>(place.rank);
  group.size = static_cast<int>(place.size);
  group.address = place.address;
  group.secret = place.secret;
  group.interrupted = place.interrupted;
  group.gather_limit = limit;
  group.deadline = kPatience;
  CISTERN_ASSIGN_OR_RETURN(const std::shared_ptr<const SecureContext> tls,
                           SecureContext::Create(place.tls, place.cluster));
  group.tls = tls;
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> peers, ConnectOverTcp(std::move(group)));
  return std::unique_ptr<ProcessGroup>(new ProcessGroup(place, tls, std::move(peers)));
}

absl::StatusOr<std::vector<std::string>> ProcessGroup::Exchange(
    const std::vector<std::string>& to) {
  std::vector<uint64_t> sent(size()), received(size());
  std::string all_sent;
  for (size_t r = 0; r < size(); ++r) {
    sent[r] = to[r].size();
    all_sent += to[r];
  }
  const std::vector<size_t> each(size(), sizeof(uint64_t));
  CISTERN_RETURN_IF_ERROR(peers_->AllToAll(sent.data(), each, received.data(), each, host_));
  CISTERN_ASSIGN_OR_RETURN(std::string all_received, RoomFor(received));
  const std::vector<size_t> send_bytes(sent.begin(), sent.end());
  const std::vector<size_t> receive_bytes(received.begin(), received.end());
  CISTERN_RETURN_IF_ERROR(
      peers_->AllToAll(all_sent.data(), send_bytes, all_received.data(), receive_bytes, host_));
  std::vector<std::string> from;
  size_t at = 0;
  for (const size_t bytes : receive_bytes) {
    from.push_back(all_received.substr(at, bytes));
    at += bytes;
  }
  return from;
}

absl::StatusOr<std::vector<std::string>> ProcessGroup::TryExchange(
    const absl::StatusOr<std::vector<std::string>>& to) {
  std::vector<std::string> coded(size());
  for (size_t r = 0; r < size(); ++r) {
    coded[r] = WithCode(to.ok() ? absl::StatusOr<std::string>((*to)[r]) : to.status());
  }
  CISTERN_ASSIGN_OR_RETURN(std::vector<std::string> said, Exchange(coded));
  CISTERN_RETURN_IF_ERROR(to.status());
  for (size_t r = 0; r < said.size(); ++r) {
    CISTERN_ASSIGN_OR_RETURN(said[r], FromCode(said[r], r));
  }
  return said;
}

absl::StatusOr<std::vector<std::string>> ProcessGroup::Gather(
    const absl::StatusOr<std::string>& own) {
  if (!own.ok()) return TryExchange(own.status());
  return TryExchange(std::vector<std::string>(size(), *own));
}

absl::StatusOr<std::string> ProcessGroup::FromLeader(const std::string& own) {
  std::vector<std::string> to(size());
  if (leads()) to.assign(size(), own);
  CISTERN_ASSIGN_OR_RETURN(std::vector<std::string> from, Exchange(to));
  return std::move(from[0]);
}

absl::Status ProcessGroup::Agree(const absl::Status& own) {
  return Gather(own.ok() ? absl::StatusOr<std::string>("") : own).status();
}

absl::Status ProcessGroup::Lead(const std::function<absl::Status()>& work) {
  return Agree(leads() ? work() : absl::OkStatus());
}

absl::StatusOr<uint64_t> SumOver(ProcessGroup& group, uint64_t own) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> said, group.Gather(absl::StrCat(own)));
  uint64_t sum = 0;
  for (const std::string& text : said) {
    uint64_t one = 0;
    if (!absl::SimpleAtoi(text, &one)) {
      return absl::InternalError(
          absl::StrCat("a worker sent '", text.substr(0, 100), "' instead of a number"));
    }
    sum += one;
  }
  return sum;
}

absl::StatusOr<GroupOptions> ProcessGroup::NextGroup() {
  GroupOptions group;
  group.rank = static_cast<int>(rank());
  group.size = static_cast<int>(size());
  group.interrupted = place_.interrupted;
  group.gather_limit = kNextLimit;
  group.deadline = kPatience;
  group.tls = tls_;
  if (size() == 1) return group;
  // "port secret"
  std::string place;
  absl::Status opened;
  if (leads()) {
    CISTERN_ASSIGN_OR_RETURN(const HostPort address, ParseHostPort(place_.address));
    absl::StatusOr<Listener> listener = Listener::Open(0, address.host);
    opened = listener.status();
    if (opened.ok()) {
      group.listener = *std::move(listener);
      place = absl::StrCat(group.listener.port(), " ", NewSecret());
    }
  }
  CISTERN_RETURN_IF_ERROR(Agree(opened));
  CISTERN_ASSIGN_OR_RETURN(place, FromLeader(place));
  const std::vector<std::string> words = absl::StrSplit(place, ' ');
  if (words.size() != 2 || !absl::SimpleAtoi(words[1], &group.secret.value)) {
    return absl::InternalError("worker 0 sent no address for the next group");
  }
  uint32_t port = 0;
  CISTERN_ASSIGN_OR_RETURN(const HostPort leader, ParseHostPort(place_.address));
  if (!absl::SimpleAtoi(words[0], &port)) {
    return absl::InternalError("worker 0 sent no port for the next group");
  }
  group.address = HostPortText(leader.host, port);
  return group;
}

absl::StatusOr<std::unique_ptr<ProcessGroup>> ProcessGroup::Another() {
  CISTERN_ASSIGN_OR_RETURN(GroupOptions group, NextGroup());
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> peers, ConnectOverTcp(std::move(group)));
  return std::unique_ptr<ProcessGroup>(new ProcessGroup(place_, tls_, std::move(peers)));
}

absl::StatusOr<std::unique_ptr<Communicator>> ProcessGroup::OnDevice(DeviceContext& device) {
  CISTERN_ASSIGN_OR_RETURN(GroupOptions group, NextGroup());
  group.deadline = kStepPatience;
  if (device.kind() == DeviceKind::kCpu) return ConnectOverTcp(std::move(group));
  // NCCL needs every rank: a group uses either NCCL or the host on all of them.
  absl::Status has_nccl = Communicator::CheckGpuGroups();
  const absl::Status all_have = Agree(has_nccl);
  const std::chrono::milliseconds deadline = group.deadline;
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> peers, ConnectOverTcp(std::move(group)));
  if (all_have.ok()) return Communicator::OnGpu(std::move(peers), deadline, device.stream());
  LogWarning(
      absl::StrCat("workers exchange through the host, which is slow: ", all_have.message()));
  return Communicator::ThroughHost(std::move(peers), device);
}

}  // namespace cistern::group
