#include "test/simulation/worker_actor.h"

#include "absl/strings/str_cat.h"

namespace cistern {
namespace {

constexpr uint32_t kSumRows = 12;
constexpr Key kCounter = 7, kWriterKeys = 16;

float CellOf(PassId pass, Key key, uint32_t cell) {
  return static_cast<float>((pass * 7919 + key * 104729 + cell * 13) % 9973) / 8.0f;
}

absl::Status PushRows(ParameterClient& client, PassId pass, std::vector<float>* carried) {
  const uint32_t stride = client.layout(kRows).full_floats();
  std::vector<Key> keys = {kCounter};
  std::vector<uint8_t> has_embedx(1);
  if (carried->empty()) {
    carried->resize(stride);
    CISTERN_RETURN_IF_ERROR(client.Pull(kRows, keys, true, carried->data(), has_embedx.data()));
  }
  for (float& cell : *carried) cell += 1.0f;
  std::vector<float> values = *carried;
  for (Key key = 100 + pass % 5; key < 180; key += 3 + pass % 4) {
    keys.push_back(key);
    for (uint32_t cell = 0; cell < stride; ++cell) values.push_back(CellOf(pass, key, cell));
  }
  has_embedx.assign(keys.size(), 1);
  return client.Push(kRows, keys, values.data(), has_embedx.data());
}

}  // namespace

v1::Schema SimulationSchema() {
  v1::Schema schema;
  for (const char* name : {"rows", "writer"}) {
    v1::TableSpec* table = schema.add_tables();
    table->set_name(name);
    table->set_dim(2);
  }
  v1::DenseTableSpec* sum = schema.add_dense_tables();
  sum->set_name("sum");
  sum->set_rows(kSumRows);
  *sum->add_columns() = std::string("w");
  sum->mutable_rule()->set_kind(v1::DenseRule::SUM);
  return schema;
}

absl::Status PushPass(ParameterClient& client, uint32_t writer, std::vector<float>* carried) {
  const PassId pass = client.committed_pass() + 1;
  CISTERN_RETURN_IF_ERROR(PushRows(client, pass, carried));
  std::vector<Key> keys;
  for (Key key = 1; key <= kWriterKeys; ++key) keys.push_back(key);
  const std::vector<float> values(keys.size() * client.layout(kWriter).full_floats(),
                                  static_cast<float>(writer));
  const std::vector<uint8_t> has_embedx(keys.size(), 1);
  CISTERN_RETURN_IF_ERROR(client.Push(kWriter, keys, values.data(), has_embedx.data()));
  const std::vector<float> ones(kSumRows, 1.0f);
  if (pass == 1) return client.PushDense(kSum, ones.data());  // initializes the sum for gradients
  return client.PushDenseGradient(kSum, ones.data());
}

WorkerActor::WorkerActor(SimulatedFleet* fleet, const Options& options) : options_(options) {
  for (size_t rank = 0; rank < fleet->size(); ++rank) {
    links_.push_back(std::make_unique<SimulatedLink>(
        fleet, rank, options.seed * 31 + options.id * 7 + rank, options.rates));
  }
}

void WorkerActor::StopFaults() {
  for (const auto& link : links_) link->StopFaults();
}

void WorkerActor::PassFence() {
  for (const auto& link : links_) link->PassFence();
}

absl::Status WorkerActor::Connect() {
  std::vector<ServerLink> servers;
  for (size_t rank = 0; rank < links_.size(); ++rank) {
    servers.push_back({absl::StrCat("server-", rank), links_[rank].get(), links_[rank].get()});
  }
  ClientOptions options;
  options.retry_limit = absl::ZeroDuration();  // no retries: the actor itself retries
  CISTERN_ASSIGN_OR_RETURN(client_, ParameterClient::Connect(servers, options));
  return client_->CreateTables(SimulationSchema());
}

absl::Status WorkerActor::Commit(bool* durable) {
  const PassId pass = client_->committed_pass() + 1;
  ParameterClient::CommitOptions commit;
  commit.durable = pass % options_.commit_every == 0 || pass == options_.last_pass;
  commit.worker_state = absl::StrCat("{\"writer\": ", options_.id, "}");
  CISTERN_RETURN_IF_ERROR(client_->CommitPass(commit));
  *durable = commit.durable;
  return absl::OkStatus();
}

WorkerActor::Outcome WorkerActor::Step() {
  bool durable = false;
  absl::Status status;
  switch (stage_) {
    case kConnect:
      status = Connect();
      if (status.ok()) stage_ = kClaim;
      break;
    case kClaim:
      carried_.clear();
      status = client_->ClaimTerm();
      if (status.ok()) stage_ = kBegin;
      break;
    case kBegin:
      if (client_->committed_pass() >= options_.last_pass) {
        stage_ = kOver;
        return Outcome::kOver;
      }
      status = client_->BeginPass();
      if (status.ok()) stage_ = kPush;
      break;
    case kPush:
      status = PushPass(*client_, options_.id, &carried_);
      if (status.ok()) stage_ = kCommit;
      break;
    case kCommit:
      status = Commit(&durable);
      if (status.ok()) stage_ = kBegin;
      break;
    case kOver:
      return Outcome::kOver;
  }
  if (!status.ok()) return After(status);
  return durable ? Outcome::kCommitted : Outcome::kGoesOn;
}

WorkerActor::Outcome WorkerActor::After(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      // Like the trainer: starts again from the last commit.
      if (stage_ != kConnect) stage_ = kClaim;
      return Outcome::kGoesOn;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:  // another actor has claimed this term
      stage_ = kOver;
      return Outcome::kOver;
    default:
      stage_ = kOver;
      trouble_ = status.ToString();
      return Outcome::kBroken;
  }
}

}  // namespace cistern
