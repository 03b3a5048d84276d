// A misbehaving writer that has claimed a fleet: of another version, faulty, or malicious. Its
// wrong requests are refused, and its final, correct commit is complete.
#include "absl/strings/str_cat.h"
#include "common/value/schema.h"
#include "test/siege/attacks.h"

namespace cistern {
namespace {

constexpr char kAsWriter[] = "as the writer";
constexpr uint64_t kSecret = 4711;

// Threads: one.
class WrongWriter {
 public:
  WrongWriter(const Siege& siege, const std::string& address) : siege_(siege), stranger_(address) {}

  // Makes a claim, a table, and a prepared pass.
  absl::Status Begin() {
    v1::Schema schema;
    schema.add_tables()->set_name("wide");
    schema.mutable_tables(0)->set_dim(4);
    CISTERN_RETURN_IF_ERROR(stranger_.Look());
    v1::CreateTablesRequest create;
    *create.mutable_identity() = stranger_.hello().identity();
    *create.mutable_schema() = schema;
    CISTERN_RETURN_IF_ERROR(Send("CreateTables", create));
    CISTERN_RETURN_IF_ERROR(stranger_.Look());
    v1::ClaimEpochRequest claim;
    *claim.mutable_identity() = identity();
    claim.mutable_identity()->set_epoch(identity().epoch() + 1);
    claim.set_writer("siege");
    CISTERN_RETURN_IF_ERROR(Send("ClaimEpoch", claim));
    CISTERN_RETURN_IF_ERROR(stranger_.Look());
    CISTERN_RETURN_IF_ERROR(Send("BeginPass", Pass<v1::PassRequest>()));
    Try("SealPass", "a seal of rank 9",
        Pass<v1::SealPassRequest>([](auto& r) { r.set_worker(9); }));
    Try("SealPass", "a seal of pushes that were never made",
        Pass<v1::SealPassRequest>([](auto& r) { r.set_push_count(k63); }));
    Try("BeginPass", "a pass of 2^32 - 1 workers while another is open",
        Pass<v1::PassRequest>([](auto& r) { r.set_worker_num(~0u); }));
    CISTERN_RETURN_IF_ERROR(Send("SealPass", Pass<v1::SealPassRequest>()));
    const auto prepare = Pass<v1::PreparePassRequest>([](auto& r) { r.set_durable(true); });
    v1::PreparePassReply prepared;
    CISTERN_RETURN_IF_ERROR(stranger_.control().PreparePass(prepare, &prepared));
    part_ = prepared.prepared();
    return absl::OkStatus();
  }

  void Decide() {
    using M = v1::Manifest;
    TryManifest("without files", [](M& m) { m.clear_files(); });
    TryManifest("with a file of another size",
                [](M& m) { m.mutable_files(0)->set_bytes(m.files(0).bytes() + 1); });
    TryManifest("with a file of 2^64 - 1 bytes",
                [](M& m) { m.mutable_files(0)->set_bytes(~uint64_t{0}); });
    TryManifest("of another schema",
                [](M& m) { m.mutable_schema()->mutable_tables(0)->set_dim(5); });
    TryManifest("without a schema", [](M& m) { m.clear_schema(); });
    TryManifest("of a later commit", [](M& m) { m.set_commit(m.commit() + 1); });
    TryManifest("of commit 2^64 - 1", [](M& m) { m.set_commit(~uint64_t{0}); });
    TryManifest("of commit 0", [](M& m) { m.set_commit(0); });
    TryManifest("of another term", [](M& m) { m.set_epoch(m.epoch() + 1); });
    TryManifest("of nine servers", [](M& m) { m.set_server_num(9); });
    TryManifest("of nine shards", [](M& m) { m.set_shard_num(9); });
    TryManifest("of another cluster", [](M& m) { m.set_cluster("other"); });
    TryManifest("with another predecessor", [](M& m) { m.set_previous(m.previous() + 1); });
    TryManifest("with a clock of 2^63", [](M& m) { m.mutable_clock()->set_step(k63); });
    for (const char* name :
         {"/etc/passwd", "../manifest/x", "../../../etc/passwd", "", ".", "/", "no-such-file"}) {
      TryManifest(absl::StrCat("that names '", name, "'"),
                  [&](M& m) { m.mutable_files(0)->set_name(name); });
    }
  }

  // Commits the correct manifest after all these attacks.
  absl::Status Commit() {
    v1::DecideRequest decide;
    *decide.mutable_identity() = identity();
    *decide.mutable_manifest() = Manifest();
    CISTERN_RETURN_IF_ERROR(Send("Decide", decide));
    const uint64_t commit = decide.manifest().commit();
    Try("CommitPass", "a commit with a clock of 2^63", Pass<v1::CommitPassRequest>([&](auto& r) {
          r.set_commit(commit);
          r.mutable_clock()->set_step(k63);
        }));
    return Send("CommitPass", Pass<v1::CommitPassRequest>([&](auto& r) { r.set_commit(commit); }));
  }

 private:
  v1::Identity identity() const {
    v1::Identity own = stranger_.hello().identity();
    own.set_secret(kSecret);
    return own;
  }
  template <class Request>
  Request Pass(const std::function<void(Request&)>& change = [](Request&) {}) const {
    Request request;
    *request.mutable_identity() = identity();
    request.set_pass(stranger_.hello().committed_pass() + 1);
    change(request);
    return request;
  }
  absl::Status Send(const char* verb, const google::protobuf::Message& request) {
    return AddContext(VerbOf(verb).Call(stranger_.control(), request), verb);
  }
  void Try(const char* verb, const std::string& name, const google::protobuf::Message& request) {
    const absl::Status answer = Send(verb, request);
    siege_.report->Tried(kAsWriter, name, !answer.ok() && IsMeant(answer),
                         request.ShortDebugString(), answer.ToString());
  }

  v1::Manifest Manifest() const {
    v1::Manifest manifest;
    manifest.set_cluster(stranger_.hello().cluster());
    manifest.set_commit(1);
    manifest.set_pass(stranger_.hello().committed_pass() + 1);
    manifest.set_epoch(identity().epoch());
    manifest.set_server_num(stranger_.hello().server_num());
    manifest.set_shard_num(stranger_.hello().shard_num());
    *manifest.mutable_schema() = stranger_.hello().schema();
    *manifest.mutable_files() = part_.files();
    *manifest.mutable_tables() = part_.tables();
    return manifest;
  }
  template <class Change>
  void TryManifest(const std::string& what, const Change& change) {
    v1::DecideRequest decide;
    *decide.mutable_identity() = identity();
    *decide.mutable_manifest() = Manifest();
    if (decide.manifest().files_size() == 0) return;
    change(*decide.mutable_manifest());
    Try("Decide", absl::StrCat("a manifest ", what), decide);
  }

  const Siege& siege_;
  Stranger stranger_;
  v1::PreparedPart part_;
};

}  // namespace

void AttackAsWriter(const Siege& siege) {
  SiegeServer::Options options;
  options.programs = siege.programs;
  options.log = siege.folder + "/writer-server.log";
  options.data_dir = siege.folder + "/writer-data";
  absl::StatusOr<std::unique_ptr<SiegeServer>> server = SiegeServer::Start(options);
  siege.report->Expect(server.ok(), absl::StrCat("a server starts: ", server.status().ToString()));
  if (!server.ok()) return;
  WrongWriter writer(siege, (*server)->address());
  const absl::Status begun = writer.Begin();
  siege.report->Expect(begun.ok(), absl::StrCat("a writer begins: ", begun.ToString()));
  if (!begun.ok()) return;
  writer.Decide();
  const absl::Status committed = writer.Commit();
  siege.report->Expect(committed.ok(), absl::StrCat("its pass commits: ", committed.ToString()));
  siege.report->Expect((*server)->StopCleanly(), "the server ends on SIGTERM");
  server->reset();
  // The state on disk must be readable.
  server = SiegeServer::Start(options);
  siege.report->Expect(server.ok(), absl::StrCat("the server starts again from its commit: ",
                                                 server.status().ToString()));
}

}  // namespace cistern
