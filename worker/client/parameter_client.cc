#include "worker/client/parameter_client.h"

#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/secret.h"
#include "common/value/pass_days.h"
#include "common/value/schema.h"
#include "common/value/step_clock.h"
#include "proto/control_plane.pb.h"
#include "worker/client/backoff.h"
#include "worker/client/connect.h"
#include "worker/client/outage.h"
#include "worker/client/transfers.h"

namespace cistern {

namespace {

using TableStates = google::protobuf::RepeatedPtrField<v1::TableState>;

// Adds one server's part of each table: rows and digests of a table are sums over its parts.
void AddTables(const TableStates& part, TableStates* sum) {
  while (sum->size() < part.size()) sum->Add();
  for (int i = 0; i < part.size(); ++i) {
    v1::TableState& table = *sum->Mutable(i);
    table.set_name(part[i].name());
    table.set_rows(table.rows() + part[i].rows());
    table.set_digest(table.digest() + part[i].digest());
  }
}

// "cistern train, process 4711 on host-3"
std::string NameOfWriter(const std::string& program) {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  return absl::StrCat(program, ", process ", getpid(), " on ", host);
}

// The attempts at a change that server restarts interrupt.
constexpr int kMaxTries = 5;

bool WasLost(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsUnavailable(status);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ParameterClient>> ParameterClient::Connect(
    std::vector<ServerLink> servers, const ClientOptions& options) {
  CISTERN_ASSIGN_OR_RETURN(FleetView view, ReadFleetView(servers, options));
  if (view.behind && view.writer_at_work.empty()) {
    // The writer ended between its commit and its last call, so nobody else tells these servers.
    ParameterClient messenger(view, options);
    const absl::Status told = messenger.StoreNewestManifest();
    if (absl::IsPermissionDenied(told)) {
      return absl::FailedPreconditionError(
          "a server has missed the newest commit, and this certificate may not tell it; connect "
          "again after the next start of the training, or with a worker's certificate");
    }
    CISTERN_RETURN_IF_ERROR(told);
    CISTERN_ASSIGN_OR_RETURN(view, ReadFleetView(servers, options));
  }
  const v1::Schema schema = view.schema;
  auto client = std::unique_ptr<ParameterClient>(new ParameterClient(std::move(view), options));
  CISTERN_RETURN_IF_ERROR(client->SetSchema(schema));
  return client;
}

ParameterClient::ParameterClient(FleetView view, const ClientOptions& options)
    : FleetReader(view, options),
      committed_(view.committed),
      days_(std::move(view.days)),
      sequences_(servers_.size(), 0),
      boots_(servers_.size(), 0) {}

ParameterClient::~ParameterClient() = default;

absl::Status ParameterClient::CreateTables(const v1::Schema& schema) {
  CISTERN_RETURN_IF_ERROR(CheckSchema(schema));
  v1::CreateTablesRequest request;
  *request.mutable_identity() = identity();
  *request.mutable_schema() = schema;
  const absl::Status created = Repeat([&](size_t, ControlPlane& server) -> absl::Status {
    v1::CreateTablesReply reply;
    CISTERN_RETURN_IF_ERROR(server.CreateTables(request, &reply));
    if (reply.schema_hash() == SchemaHash(schema)) return absl::OkStatus();
    return absl::FailedPreconditionError(
        "computes a different hash of the same tables: it runs another version");
  });
  CISTERN_RETURN_IF_ERROR(created);
  return SetSchema(schema);
}

absl::Status ParameterClient::AwaitNoWriter() const {
  if (options_.take_over) return absl::OkStatus();
  constexpr absl::Duration kPatience = absl::Seconds(3);
  const absl::Time limit = absl::Now() + kPatience;
  while (true) {
    CISTERN_ASSIGN_OR_RETURN(const FleetView view, ReadFleetView(servers_, options_, secret_));
    if (view.writer_at_work.empty()) return absl::OkStatus();
    if (absl::Now() >= limit) {
      return WithOptions(absl::FailedPreconditionError(absl::StrCat(
                             "another writer is at work on this fleet: ", view.writer_at_work,
                             "; wait until it ends, or stop it and take over")),
                         {"take_over"});
    }
    absl::SleepFor(absl::Milliseconds(50));
  }
}

absl::Status ParameterClient::ClaimTerm() {
  // This must precede the first claim: a claim that only some servers refuse would still fence the
  // other writer on the rest.
  CISTERN_RETURN_IF_ERROR(AwaitNoWriter());
  const uint64_t before = secret_, secret = NewSecret();
  constexpr int kMaxLost = 3;
  for (int lost = 0;; ++lost) {
    // An interrupted claim may have reached some servers; a retry claims a term above all of
    // theirs.
    const absl::Status claimed =
        WithRetry(options_.retry_limit, options_.worker, [&] { return ClaimWith(secret, before); });
    const bool may_be_lost = absl::IsFailedPrecondition(claimed) || absl::IsAlreadyExists(claimed);
    if (!may_be_lost || lost == kMaxLost) return claimed;
    // Another writer's claim may have come first. If it is at work, its name is the error.
    CISTERN_RETURN_IF_ERROR(AwaitNoWriter());
  }
}

absl::Status ParameterClient::ClaimWith(uint64_t secret, uint64_t before) {
  CISTERN_ASSIGN_OR_RETURN(const FleetView view, ReadFleetView(servers_, options_, secret));
  v1::ClaimEpochRequest request;
  *request.mutable_identity() = identity();
  request.mutable_identity()->set_epoch(view.term + 1);
  request.mutable_identity()->set_secret(secret);
  request.set_held_secret(before);
  request.set_take_over(options_.take_over);
  request.set_writer(NameOfWriter(options_.program));
  std::vector<PassId> committed(servers_.size());
  std::vector<uint64_t> boots(servers_.size());
  const auto claim = [&](size_t rank, ControlPlane& server) -> absl::Status {
    v1::PassReply reply;
    CISTERN_RETURN_IF_ERROR(server.ClaimEpoch(request, &reply));
    committed[rank] = reply.committed_pass();
    boots[rank] = reply.boot();
    return absl::OkStatus();
  };
  // Server 0 grants the claim; the others see the grant in the folder that they share with it. With
  // folders of their own they take the caller's word, so they come second.
  CISTERN_RETURN_IF_ERROR(AddContext(claim(0, *servers_[0].control), ServerName(0, servers_[0])));
  if (local_state_) CISTERN_RETURN_IF_ERROR(StoreNewestManifest());
  CISTERN_RETURN_IF_ERROR(ForEachServer([&](size_t rank, ControlPlane& server) {
    return rank == 0 ? absl::OkStatus() : claim(rank, server);
  }));
  for (size_t rank = 1; rank < committed.size(); ++rank) {
    if (committed[rank] == committed[0]) continue;
    return absl::UnavailableError(absl::StrCat("server 0 is at pass ", committed[0], " and server ",
                                               rank, " at pass ", committed[rank],
                                               ": one of them was restarted"));
  }
  term_ = request.identity().epoch();
  secret_ = secret;
  boots_ = boots;
  committed_ = committed[0];
  CISTERN_RETURN_IF_ERROR(CheckStepClock(view.clock, view.schema));
  clock_ = view.clock;
  days_ = view.days;
  open_ = 0;
  changes_ = 0;
  // Servers without tables were restarted before the first commit: create the tables again.
  if (SchemaHash(view.schema) != 0 && SchemaHash(view.schema) != schema_hash_) {
    CISTERN_RETURN_IF_ERROR(SetSchema(view.schema));
  }
  return durable_ ? ReadManifest() : absl::OkStatus();
}

absl::Status ParameterClient::ReadManifest() {
  v1::GetManifestRequest request;
  *request.mutable_identity() = identity();
  v1::GetManifestReply reply;
  const absl::Status got = servers_[0].control->GetManifest(request, &reply);
  if (!got.ok() && !absl::IsNotFound(got)) return AddContext(got, ServerName(0, servers_[0]));
  manifest_ = reply.manifest();
  manifest_xxh3_ = reply.self_xxh3();
  if (manifest_.commit() > 0) {
    CISTERN_RETURN_IF_ERROR(CheckStepClock(manifest_.clock(), manifest_.schema()));
    clock_ = manifest_.clock();
  }
  days_ = manifest_.days();
  if (manifest_.commit() == 0 || manifest_.pass() == committed_) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the newest commit holds pass ", manifest_.pass(),
                                             ", but the servers are at pass ", committed_));
}

absl::Status ParameterClient::StoreNewestManifest() {
  v1::GetManifestRequest request;
  *request.mutable_identity() = identity();
  v1::GetManifestReply newest;
  const absl::Status got = servers_[0].control->GetManifest(request, &newest);
  if (absl::IsNotFound(got)) return absl::OkStatus();  // no commit yet
  CISTERN_RETURN_IF_ERROR(AddContext(got, ServerName(0, servers_[0])));
  return ForEachServer([&](size_t rank, ControlPlane& server) {
    return rank == 0 ? absl::OkStatus()
                     : StoreManifestOn(server, newest.manifest(), newest.self_xxh3());
  });
}

absl::Status ParameterClient::StoreManifestOn(ControlPlane& server, const v1::Manifest& manifest,
                                              uint64_t self_xxh3) const {
  v1::StoreManifestRequest request;
  *request.mutable_identity() = identity();
  *request.mutable_manifest() = manifest;
  request.set_self_xxh3(self_xxh3);
  v1::StoreManifestReply reply;
  return server.StoreManifest(request, &reply);
}

// Two messages in sequence: a CommitPassRequest, preceded by its length (8 bytes), and the newest
// manifest.
std::string ParameterClient::Writer::Pack() const {
  v1::CommitPassRequest state;
  state.mutable_identity()->set_epoch(term);
  state.mutable_identity()->set_secret(secret);
  state.set_pass(committed);
  *state.mutable_clock() = clock;
  const std::string first = state.SerializeAsString();
  const uint64_t bytes = first.size();
  return std::string(reinterpret_cast<const char*>(&bytes), sizeof(bytes)) + first +
         manifest.SerializeAsString();
}

absl::StatusOr<ParameterClient::Writer> ParameterClient::Writer::Unpack(const std::string& packed) {
  v1::CommitPassRequest state;
  Writer writer;
  uint64_t bytes = 0;
  const bool whole = packed.size() >= sizeof(bytes) &&
                     (packed.copy(reinterpret_cast<char*>(&bytes), sizeof(bytes)),
                      bytes <= packed.size() - sizeof(bytes)) &&
                     state.ParseFromString(packed.substr(sizeof(bytes), bytes)) &&
                     writer.manifest.ParseFromString(packed.substr(sizeof(bytes) + bytes));
  if (!whole) return absl::InternalError("worker 0 sent a writer state that cannot be parsed");
  writer.term = state.identity().epoch();
  writer.secret = state.identity().secret();
  writer.committed = state.pass();
  writer.clock = state.clock();
  return writer;
}

ParameterClient::Writer ParameterClient::writer() const {
  return {term_, secret_, committed_, clock_, manifest_};
}

void ParameterClient::Follow(const Writer& writer) {
  term_ = writer.term;
  secret_ = writer.secret;
  committed_ = writer.committed;
  clock_ = writer.clock;
  manifest_ = writer.manifest;
  open_ = 0;
  changes_ = 0;
}

absl::Status ParameterClient::StoreRunSecret(const std::string& address, uint64_t secret) {
  return Meet(address, secret).status();
}

absl::StatusOr<uint64_t> ParameterClient::RunSecret(const std::string& address) {
  return Meet(address, 0);
}

absl::StatusOr<uint64_t> ParameterClient::Meet(const std::string& address, uint64_t secret) {
  v1::MeetRequest request;
  *request.mutable_identity() = identity();
  request.set_address(address);
  request.set_secret(secret);
  v1::MeetReply reply;
  CISTERN_RETURN_IF_ERROR(
      AddContext(WithRetry(options_.retry_limit, options_.worker,
                           [&] { return servers_[0].control->Meet(request, &reply); }),
                 ServerName(0, servers_[0])));
  return reply.secret();
}

v1::PassDays ParameterClient::DaysThrough(PassId pass) const {
  v1::PassDays days = days_;
  const uint32_t longest = LongestExpireDays(schema_);
  if (longest > 0) AddPassDay(pass, options_.today(), longest, &days);
  return days;
}

absl::Status ParameterClient::BeginPass(uint32_t worker_num) {
  v1::PassRequest request;
  request.set_pass(committed_ + 1);
  request.set_worker_num(worker_num);
  open_days_ = DaysThrough(request.pass());
  return Begin(request);
}

absl::Status ParameterClient::BeginReplica(PassId pass, const v1::PassDays& days) {
  v1::PassRequest request;
  request.set_pass(std::max(pass, committed_ + 1));
  request.set_replica(true);
  open_days_ = days.days().empty() ? DaysThrough(request.pass()) : days;
  return Begin(request);
}

absl::Status ParameterClient::Begin(const v1::PassRequest& what) {
  v1::PassRequest request = what;
  *request.mutable_identity() = identity();
  request.set_changes(changes_);
  open_ = request.pass();
  std::fill(sequences_.begin(), sequences_.end(), 0);
  std::vector<v1::PassReply> replies(servers_.size());
  CISTERN_RETURN_IF_ERROR(Repeat([&](size_t rank, ControlPlane& server) {
    return server.BeginPass(request, &replies[rank]);
  }));
  for (size_t rank = 0; rank < replies.size(); ++rank) {
    const uint64_t boot = replies[rank].boot();
    const uint64_t before = std::exchange(boots_[rank], boot);
    if (before != 0 && before != boot) {
      restarted_.push_back(
          absl::StrCat(ServerName(rank, servers_[rank]), " was restarted since the last pass"));
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> ParameterClient::TakeRestarted() {
  return std::exchange(restarted_, {});
}

void ParameterClient::JoinPass() {
  open_ = committed_ + 1;
  std::fill(sequences_.begin(), sequences_.end(), 0);
}

template <class Chunk>
std::vector<uint64_t> ParameterClient::TakeSequences(const std::vector<Chunk>& chunks) {
  std::vector<uint64_t> sequences;
  sequences.reserve(chunks.size());
  for (const Chunk& chunk : chunks) sequences.push_back(sequences_[chunk.server]++);
  return sequences;
}

absl::Status ParameterClient::Push(TableId table, absl::Span<const Key> keys, const float* values,
                                   const uint8_t* has_embedx, absl::Span<const Row> rows) {
  CISTERN_RETURN_IF_ERROR(CheckTable(table));
  return PushRows(HeaderFor(table, layouts_[table].full_floats()), keys, values, has_embedx, rows);
}

absl::Status ParameterClient::PushRemoved(TableId table, absl::Span<const Key> keys) {
  CISTERN_RETURN_IF_ERROR(CheckTable(table));
  FrameHeader header = HeaderFor(table, /*stride=*/0);
  header.flags |= kRemoval;
  return PushRows(header, keys, nullptr, std::vector<uint8_t>(keys.size()).data());
}

absl::Status ParameterClient::PushRows(const FrameHeader& base, absl::Span<const Key> keys,
                                       const float* values, const uint8_t* has_embedx,
                                       absl::Span<const Row> rows) {
  CISTERN_CHECK(rows.empty() || rows.size() == keys.size());
  const KeyRouting routing = RouteKeys(map_, keys, ChunkKeys(base.table));
  FrameHeader header = base;
  header.pass = open_;
  PushTransfer transfer(header, layouts_[base.table], secret_, routing,
                        TakeSequences(routing.chunks), keys, values, has_embedx, rows);
  return RunExchange(servers_, policy(), transfer, &restarted_);
}

absl::Status ParameterClient::PushDense(TableId table, const float* values) {
  CISTERN_RETURN_IF_ERROR(CheckDenseTable(table));
  const auto columns = schema_.dense_tables(static_cast<int>(table)).columns_size();
  return PushDenseRows(table, HeaderFor(table, static_cast<uint32_t>(columns)), values);
}

absl::Status ParameterClient::PushDenseGradient(TableId table, const float* gradients) {
  CISTERN_RETURN_IF_ERROR(CheckDenseTable(table));
  FrameHeader header = HeaderFor(table, 1);
  header.flags |= kGradient;
  return PushDenseRows(table, header, gradients);
}

absl::Status ParameterClient::PushDenseRows(TableId table, const FrameHeader& base,
                                            const float* values) {
  const std::vector<DenseChunk> chunks = ChunksOf(table);
  FrameHeader header = base;
  header.pass = open_;
  PushDenseTransfer transfer(header, secret_, chunks, TakeSequences(chunks), values);
  return RunExchange(servers_, policy(), transfer, &restarted_);
}

absl::Status ParameterClient::SealPass() {
  if (open_ == 0) return absl::FailedPreconditionError("no pass is open");
  return Repeat([&](size_t rank, ControlPlane& server) {
    v1::SealPassRequest seal;
    *seal.mutable_identity() = identity();
    seal.set_pass(open_);
    seal.set_worker(options_.worker);
    seal.set_push_count(sequences_[rank]);
    v1::PassReply reply;
    return server.SealPass(seal, &reply);
  });
}

absl::Status ParameterClient::CommitPass(const CommitOptions& commit) {
  CISTERN_RETURN_IF_ERROR(SealPass());
  v1::CommitPassRequest pass;
  *pass.mutable_identity() = identity();
  pass.set_pass(open_);
  if (commit.clock.step() > 0) *pass.mutable_clock() = commit.clock;
  const bool durable = durable_ && commit.durable;
  std::vector<v1::PreparePassReply> prepared(servers_.size());
  CISTERN_RETURN_IF_ERROR(Repeat([&](size_t rank, ControlPlane& server) {
    v1::PreparePassRequest prepare;
    *prepare.mutable_identity() = pass.identity();
    prepare.set_pass(open_);
    prepare.set_durable(durable);
    prepare.set_changes(changes_);
    if (!open_days_.days().empty()) *prepare.mutable_days() = open_days_;
    return server.PreparePass(prepare, &prepared[rank]);
  }));
  uint64_t evicted = 0, expired = 0;
  for (const v1::PreparePassReply& reply : prepared) {
    evicted += reply.evicted_rows();
    expired += reply.expired_rows();
  }
  if (durable) {
    CISTERN_RETURN_IF_ERROR(Decide(prepared, commit));
    pass.set_commit(manifest_.commit());
  }
  // Every server has prepared, and the manifest is written: the pass is committed. From here on, an
  // error means that a server has not received the commit.
  const absl::Status told = Repeat([&](size_t rank, ControlPlane& server) -> absl::Status {
    if (durable && local_state_ && rank > 0) {
      CISTERN_RETURN_IF_ERROR(StoreManifestOn(server, manifest_, manifest_xxh3_));
    }
    v1::PassReply reply;
    return server.CommitPass(pass, &reply);
  });
  const std::string state =
      durable
          ? absl::StrCat(
                "commit ", manifest_.commit(),
                " is on disk, but a server did not apply it (a resumed run continues from commit ",
                manifest_.commit(), ")")
          : absl::StrCat("pass ", open_, " was trained, but not committed on every server");
  CISTERN_RETURN_IF_ERROR(AddContext(told, state));
  committed_ = open_;
  clock_ = pass.clock();
  days_ = open_days_;
  evicted_rows_ = evicted;
  expired_rows_ = expired;
  open_ = 0;
  if (durable) changes_ = 0;
  return absl::OkStatus();
}

absl::Status ParameterClient::Decide(const std::vector<v1::PreparePassReply>& prepared,
                                     const CommitOptions& commit) {
  v1::DecideRequest request;
  *request.mutable_identity() = identity();
  v1::Manifest& manifest = *request.mutable_manifest();
  manifest = MakeManifest(prepared);
  manifest.set_worker(commit.worker_state);
  if (commit.clock.step() > 0) *manifest.mutable_clock() = commit.clock;
  if (!open_days_.days().empty()) *manifest.mutable_days() = open_days_;
  v1::DecideReply reply;
  absl::Duration waited;
  const absl::Status decided = WithRetry(
      options_.retry_limit, options_.worker,
      [&] { return servers_[0].control->Decide(request, &reply); }, &waited);
  if (waited >= kOutage) restarted_.push_back(OutageText(0, servers_[0], waited));
  CISTERN_RETURN_IF_ERROR(AddContext(decided, ServerName(0, servers_[0])));
  manifest_ = manifest;
  manifest_.set_created(reply.created());
  manifest_xxh3_ = reply.self_xxh3();
  return absl::OkStatus();
}

v1::Manifest ParameterClient::MakeManifest(
    const std::vector<v1::PreparePassReply>& prepared) const {
  v1::Manifest manifest;
  manifest.set_cluster(options_.cluster);
  manifest.set_commit(manifest_.commit() + 1);
  manifest.set_previous(manifest_xxh3_);
  manifest.set_pass(open_);
  manifest.set_epoch(term_);
  if (!options_.run.empty()) manifest.set_run(options_.run);
  manifest.set_server_num(map_.server_num());
  manifest.set_shard_num(map_.shard_num());
  *manifest.mutable_schema() = schema_;
  std::set<std::string> named;  // after a change of the server count, servers share files
  for (const v1::PreparePassReply& reply : prepared) {
    for (const v1::RowFile& file : reply.prepared().files()) {
      if (named.insert(file.name()).second) *manifest.add_files() = file;
    }
    AddTables(reply.prepared().tables(), manifest.mutable_tables());
    AddTables(reply.prepared().dense_tables(), manifest.mutable_dense_tables());
  }
  return manifest;
}

absl::Status ParameterClient::AbortPass() {
  v1::PassRequest request;
  *request.mutable_identity() = identity();
  request.set_pass(open_ != 0 ? open_ : committed_ + 1);
  open_ = 0;
  return Repeat([&](size_t, ControlPlane& server) {
    v1::PassReply reply;
    return server.AbortPass(request, &reply);
  });
}

absl::Status ParameterClient::Clear(PassId pass) {
  v1::ClearRequest request;
  *request.mutable_identity() = identity();
  request.set_pass(pass);
  request.set_changes(changes_++);
  CISTERN_RETURN_IF_ERROR(Repeat([&](size_t, ControlPlane& server) {
    v1::PassReply reply;
    return server.Clear(request, &reply);
  }));
  committed_ = pass;
  clock_.Clear();
  days_.Clear();
  open_ = 0;
  return absl::OkStatus();
}

absl::Status ParameterClient::Load(const v1::LoadRequest& what, v1::LoadReply* reply) {
  v1::LoadRequest request = what;
  *request.mutable_identity() = identity();
  request.set_changes(changes_++);
  std::vector<v1::LoadReply> replies(servers_.size());
  CISTERN_RETURN_IF_ERROR(ForEachServer(
      [&](size_t rank, ControlPlane& server) { return server.Load(request, &replies[rank]); }));
  *reply = replies[0];  // every server reports the same omitted tables
  for (size_t rank = 1; rank < replies.size(); ++rank) {
    reply->set_rows(reply->rows() + replies[rank].rows());
  }
  committed_ = reply->committed_pass();
  clock_.Clear();
  days_ = reply->days();
  open_ = 0;
  // Loading may have created the tables.
  v1::HelloReply hello;
  CISTERN_RETURN_IF_ERROR(servers_[0].control->Hello({}, &hello));
  CISTERN_RETURN_IF_ERROR(SetSchema(hello.schema()));
  if (!durable_) return absl::OkStatus();
  // The commit carries no position: none matches these rows. No row was seen on its day, so it has
  // that of the model's last pass.
  CISTERN_RETURN_IF_ERROR(BeginPass());
  if (!reply->days().days().empty()) open_days_ = reply->days();
  return CommitPass(CommitOptions());
}

absl::Status ParameterClient::CommitChange() {
  if (!durable_) return absl::OkStatus();
  CISTERN_RETURN_IF_ERROR(BeginPass());
  CommitOptions commit;
  commit.worker_state = manifest_.worker();
  commit.clock = clock_;
  return CommitPass(commit);
}

absl::Status ParameterClient::ChangeOnce(const Change& call) {
  const uint64_t changes = changes_++;
  CISTERN_RETURN_IF_ERROR(ForEachServer(
      [&](size_t rank, ControlPlane& server) { return call(rank, server, changes); }));
  return CommitChange();
}

absl::Status ParameterClient::ChangeInPlace(const Change& call) {
  const uint64_t commit = manifest_.commit(), previous = manifest_xxh3_;
  absl::Status changed = ChangeOnce(call);
  for (int tries = 1; durable_ && WasLost(changed) && tries < kMaxTries; ++tries) {
    const uint64_t term = term_;
    CISTERN_RETURN_IF_ERROR(AddContext(ClaimTerm(), std::string(changed.message())));
    if (manifest_.commit() == commit + 1 && manifest_.previous() == previous &&
        manifest_.epoch() == term) {
      return absl::OkStatus();  // the commit was decided; only the reply was lost
    }
    if (manifest_.commit() != commit) {
      return absl::FailedPreconditionError(
          absl::StrCat("another writer has committed meanwhile: the newest commit is ",
                       manifest_.commit(), ", it was ", commit, "; the tables were not changed"));
    }
    changed = ChangeOnce(call);
  }
  return changed;
}

absl::Status ParameterClient::Repeat(
    const std::function<absl::Status(size_t, ControlPlane&)>& call) {
  std::vector<absl::Duration> waited(servers_.size());
  const absl::Status status = ForEachServer([&](size_t rank, ControlPlane& server) {
    return WithRetry(
        options_.retry_limit, static_cast<uint32_t>(rank), [&] { return call(rank, server); },
        &waited[rank]);
  });
  for (size_t rank = 0; rank < waited.size(); ++rank) {
    if (waited[rank] < kOutage) continue;
    restarted_.push_back(OutageText(rank, servers_[rank], waited[rank]));
  }
  return status;
}

}  // namespace cistern
