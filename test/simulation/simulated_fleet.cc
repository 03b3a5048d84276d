#include "test/simulation/simulated_fleet.h"

#include <utility>

#include "common/base/check.h"

namespace cistern {
namespace {

constexpr size_t kMostLate = 6;
constexpr const char* kDataDir = "/cluster";

Term TermOf(server::ServerNode& node) {
  v1::HelloReply reply;
  return node.control().Hello({}, &reply).ok() ? reply.identity().epoch() : 0;
}

// Sets the newest writer, for callers that impersonate it.
void SetWriter(v1::DecideRequest& request, const server::TermClaim& claim) {
  request.mutable_identity()->set_epoch(claim.term);
  request.mutable_identity()->set_secret(claim.secret.value_or(0));
  request.mutable_manifest()->set_epoch(claim.term);
}
void SetWriter(v1::HelloRequest&, const server::TermClaim&) {}
void SetWriter(v1::ClaimEpochRequest&, const server::TermClaim&) {}
template <class Request>
void SetWriter(Request& request, const server::TermClaim& claim) {
  request.mutable_identity()->set_epoch(claim.term);
  request.mutable_identity()->set_secret(claim.secret.value_or(0));
}

Frame WithWriter(const Frame& frame, const server::TermClaim& claim) {
  FrameHeader header;
  FrameReader reader(frame);
  CISTERN_CHECK(reader.Read(&header, sizeof(header)));
  header.term = claim.term;
  if (header.body_hash != 0) header.body_hash = BodyHash(frame, claim.secret.value_or(0));
  Frame changed = StartFrame(header);
  if (reader.left() > 0) {
    const size_t bytes = reader.left();
    CISTERN_CHECK(reader.Read(changed.AppendBuffer(bytes), bytes));
  }
  return changed;
}

}  // namespace

FaultRates FaultRates::Of(int rate) {
  FaultRates rates;
  rates.request_lost = rates.reply_lost = rates.twice = rates.late = rate;
  rates.killed = rates.meanwhile = rate;
  rates.partition = (rate + 3) / 4;
  return rates;
}

SimulatedFleet::SimulatedFleet(uint32_t server_num, const server::ServerOptions& base,
                               FaultCounts* counts)
    : base_(base),
      counts_(counts),
      disk_(std::make_unique<MemoryFileSystem>()),
      machines_(server_num) {
  base_.durable = true;
  base_.data_dir = kDataDir;
  base_.server_num = server_num;
  for (auto& machine : machines_) machine = std::make_unique<Machine>();
}

SimulatedFleet::~SimulatedFleet() {
  for (size_t rank = 0; rank < size(); ++rank) Kill(rank);
}

server::TermClaim SimulatedFleet::ClaimOf(Term term) {
  const auto folder = server::StateFolder::OpenToRead(*disk_, server::StateFolderOf(kDataDir));
  const absl::StatusOr<server::TermClaim> claim =
      folder.ok() ? (*folder)->ReadTerm(term) : absl::StatusOr<server::TermClaim>(folder.status());
  return claim.ok() ? *claim : server::ParseClaim(term, "");
}

bool SimulatedFleet::IsUp(size_t rank) {
  absl::ReaderMutexLock lock(&machines_[rank]->mutex);
  return machines_[rank]->node != nullptr;
}

void SimulatedFleet::Kill(size_t rank) {
  Machine& machine = *machines_[rank];
  absl::MutexLock lock(&machine.mutex);
  // The server's threads (a merge) must stop writing, like those of a dead process.
  if (machine.files != nullptr) machine.files->FailCall(1, Fault::kInputOutput, ~uint64_t{0} / 2);
  machine.node.reset();
  machine.files.reset();
}

absl::Status SimulatedFleet::Start(size_t rank) {
  Machine& machine = *machines_[rank];
  absl::MutexLock lock(&machine.mutex);
  if (machine.node != nullptr) return absl::OkStatus();
  machine.dying = false;
  machine.files = std::make_unique<FaultFileSystem>(disk_.get());
  server::ServerOptions options = base_;
  if (base_.local_state && rank > 0) absl::StrAppend(&options.data_dir, "/server-", rank);
  options.rank = static_cast<uint32_t>(rank);
  options.threads = 1;
  options.files = machine.files.get();
  CISTERN_ASSIGN_OR_RETURN(machine.node, server::ServerNode::Create(options));
  return absl::OkStatus();
}

absl::Status SimulatedFleet::StartAll() {
  for (size_t rank = 0; rank < size(); ++rank) CISTERN_RETURN_IF_ERROR(Start(rank));
  return absl::OkStatus();
}

void SimulatedFleet::LosePower(uint64_t seed) {
  ++counts_->outages;
  // Locks all machines in rank order and unlocks them together, so that none starts meanwhile.
  for (auto& machine : machines_) machine->mutex.Lock();
  for (auto& machine : machines_) {
    if (machine->files != nullptr) {
      machine->files->FailCall(1, Fault::kInputOutput, ~uint64_t{0} / 2);
    }
    machine->node.reset();
    machine->files.reset();
  }
  disk_ = disk_->Crash(disk_->operation_num(), MemoryFileSystem::Loss::kWeak, seed);
  for (auto& machine : machines_) machine->mutex.Unlock();
}

void SimulatedFleet::StopDiskAt(size_t rank, uint64_t call) {
  absl::ReaderMutexLock lock(&machines_[rank]->mutex);
  if (machines_[rank]->files == nullptr) return;
  machines_[rank]->dying = true;
  machines_[rank]->files->FailCall(call, Fault::kInputOutput, ~uint64_t{0} / 2);
}

absl::Status SimulatedFleet::Arrive(size_t rank, const Act& act) {
  Machine& machine = *machines_[rank];
  absl::ReaderMutexLock lock(&machine.mutex);
  if (machine.node == nullptr) return absl::UnavailableError("no server listens there");
  const absl::Status answer = act(*machine.node);
  // A process that dies during one client's call answers no other call either.
  return machine.dying ? absl::UnavailableError("the connection was reset") : answer;
}

void SimulatedFleet::KeepLate(size_t rank, Act act) {
  absl::MutexLock lock(&late_mutex_);
  late_.emplace_back(rank, std::move(act));
  if (late_.size() > kMostLate) late_.pop_front();
}

size_t SimulatedFleet::late_num() {
  absl::MutexLock lock(&late_mutex_);
  return late_.size();
}

void SimulatedFleet::DeliverLate(uint64_t draw) {
  std::pair<size_t, Act> message;
  {
    absl::MutexLock lock(&late_mutex_);
    if (late_.empty()) return;
    const auto at = late_.begin() + static_cast<ptrdiff_t>(draw % late_.size());
    message = std::move(*at);
    late_.erase(at);
  }
  Arrive(message.first, message.second).IgnoreError();  // no caller waits for the answer
}

void SimulatedFleet::Meanwhile() {
  if (meanwhile == nullptr || in_meanwhile_.exchange(true)) return;
  meanwhile();
  in_meanwhile_ = false;
}

SimulatedLink::SimulatedLink(SimulatedFleet* fleet, size_t rank, uint64_t seed,
                             const FaultRates& rates)
    : fleet_(fleet), rank_(rank), rates_(rates), random_(seed) {}

SimulatedLink::Fate SimulatedLink::Draw() {
  Fate fate;
  if (!faulty_) return fate;
  FaultCounts& counts = fleet_->counts();
  ++counts.calls;
  absl::MutexLock lock(&mutex_);
  const auto happens = [this](int rate) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return static_cast<int>(random_() % 10000) < rate;
  };
  if (happens(rates_.partition)) {
    refused_calls_ = static_cast<int>(random_() % 20);
    ++counts.partitions;
  }
  if (refused_calls_ > 0) {
    --refused_calls_;
    fate.request_lost = true;
    return fate;
  }
  fate.request_lost = happens(rates_.request_lost);
  fate.reply_lost = happens(rates_.reply_lost);
  fate.twice = happens(rates_.twice);
  fate.late = happens(rates_.late);
  fate.meanwhile = happens(rates_.meanwhile);
  if (fate.late) fate.request_lost |= random_() % 2 == 0;
  if (happens(rates_.killed)) {
    fate.death = static_cast<decltype(fate.death)>(1 + random_() % 3);
    fate.disk_call = 1 + random_() % 12;
    ++counts.kills;
  }
  counts.lost += fate.request_lost + fate.reply_lost;
  counts.twice += fate.twice;
  counts.late += fate.late;
  return fate;
}

absl::Status SimulatedLink::Send(const SimulatedFleet::Act& act, const SimulatedFleet::Act& late) {
  const Fate fate = Draw();
  if (fate.meanwhile) fleet_->Meanwhile();
  if (fate.death == Fate::kBefore) fleet_->Kill(rank_);
  if (fate.late) fleet_->KeepLate(rank_, late);
  if (fate.request_lost) return absl::UnavailableError("the request was lost");
  if (fate.death == Fate::kDuring) fleet_->StopDiskAt(rank_, fate.disk_call);
  absl::Status answer = fleet_->Arrive(rank_, act);
  if (fate.twice) answer = fleet_->Arrive(rank_, act);
  if (fate.death == Fate::kDuring || fate.death == Fate::kAfter) fleet_->Kill(rank_);
  // The caller cannot know whether a server that died during the call had answered.
  if (fate.death == Fate::kDuring) return absl::UnavailableError("the connection was reset");
  if (fate.reply_lost) return absl::DeadlineExceededError("the reply was lost");
  return answer;
}

template <class In, class Out, class Method>
absl::Status SimulatedLink::SendControl(const In& in, Out* out, Method method) {
  const auto act = [in, method, fleet = fleet_, passes_fence = passes_fence_.load()](
                       server::ServerNode& node, Out* reply) {
    In request = in;
    if (passes_fence) SetWriter(request, fleet->ClaimOf(TermOf(node)));
    reply->Clear();
    return (node.control().*method)(request, reply);
  };
  Out reply;
  CISTERN_RETURN_IF_ERROR(Send([&](server::ServerNode& node) { return act(node, &reply); },
                               [act](server::ServerNode& node) {
                                 Out nobody_waits;
                                 return act(node, &nobody_waits);
                               }));
  *out = reply;
  return absl::OkStatus();
}

#define CISTERN_METHOD(name, request, reply, length, effect, role)          \
  absl::Status SimulatedLink::name(const v1::request& in, v1::reply* out) { \
    return SendControl(in, out, &ControlPlane::name);                       \
  }
CISTERN_CONTROL_METHODS(CISTERN_METHOD)
#undef CISTERN_METHOD

void SimulatedLink::Call(FrameKind kind, Frame request, absl::Duration, Done done) {
  const auto act = [kind, request, fleet = fleet_, passes_fence = passes_fence_.load()](
                       server::ServerNode& node) -> absl::StatusOr<Frame> {
    const Frame sent = passes_fence ? WithWriter(request, fleet->ClaimOf(TermOf(node))) : request;
    absl::StatusOr<Frame> reply = absl::InternalError("no answer");
    node.data().Call(kind, sent, absl::InfiniteDuration(),
                     [&reply](absl::StatusOr<Frame> answer) { reply = std::move(answer); });
    return reply;
  };
  absl::StatusOr<Frame> reply = absl::InternalError("no answer");
  const absl::Status answer = Send(
      [&](server::ServerNode& node) {
        reply = act(node);
        return reply.status();
      },
      [act](server::ServerNode& node) { return act(node).status(); });
  if (answer.ok()) {
    done(std::move(reply));
  } else {
    done(answer);
  }
}

}  // namespace cistern
