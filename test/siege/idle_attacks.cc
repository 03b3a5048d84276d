// Servers without a training grant more: anyone may claim them and create tables. They must survive
// every order of verbs and every schema, and then serve a correct writer.
#include "absl/strings/str_cat.h"
#include "common/rpc/fleet.h"
#include "test/siege/attacks.h"
#include "test/siege/lies.h"
#include "worker/client/parameter_client.h"

namespace cistern {
namespace {

constexpr uint64_t kTableBound = uint64_t{1}
                                 << 30;  // resident, whatever tables a stranger asks for

// A sparse table, a second one with the ctr accessor, and a dense table.
v1::Schema SmallSchema() {
  v1::Schema schema;
  v1::TableSpec* wide = schema.add_tables();
  wide->set_name("wide");
  wide->set_dim(4);
  wide->mutable_rule()->set_kind(v1::UpdateRule::ADAM);
  wide->mutable_rule()->set_beta1(0.9f);
  wide->mutable_rule()->set_beta2(0.999f);
  wide->mutable_rule()->set_epsilon(1e-7f);
  wide->mutable_initializer()->set_kind(v1::Initializer::UNIFORM);
  wide->mutable_initializer()->set_range(0.1f);
  v1::DenseTableSpec* dense = schema.add_dense_tables();
  dense->set_name("mlp");
  dense->set_rows(100);
  dense->add_columns(std::string(1, 'w'));
  return schema;
}

class IdleServer {
 public:
  IdleServer(const Siege& siege, const std::string& name, bool durable) : siege_(siege) {
    options_.programs = siege.programs;
    options_.log = absl::StrCat(siege.folder, "/", name, ".log");
    if (durable) options_.data_dir = absl::StrCat(siege.folder, "/", name);
    Restart();
  }
  bool Restart() {
    server_.reset();
    absl::StatusOr<std::unique_ptr<SiegeServer>> started = SiegeServer::Start(options_);
    siege_.report->Expect(started.ok(),
                          absl::StrCat("an idle server starts: ", started.status().ToString()));
    if (started.ok()) server_ = *std::move(started);
    return started.ok();
  }
  SiegeServer* get() { return server_.get(); }

 private:
  const Siege& siege_;
  SiegeServer::Options options_;
  std::unique_ptr<SiegeServer> server_;
};

// Records an attack on an idle server, which must be answered and survived.
void Note(const Siege& siege, SiegeServer& server, const std::string& name,
          const absl::Status& answer, bool may_be_granted = true) {
  const ProcessUse use = server.Use();
  const bool repelled = IsMeant(answer) && server.Running() && (may_be_granted || !answer.ok()) &&
                        use.resident_bytes < kTableBound;
  siege.report->Tried("idle servers", name, repelled, server.address(),
                      absl::StrCat(answer.ToString(), server.Running() ? "" : "; it died: ",
                                   server.Running() ? "" : server.LogEnd(), "; resident ",
                                   use.resident_bytes >> 20, " MB"));
}

// Every pair of verbs, in sequence.
void AttackPairs(const Siege& siege, IdleServer& idle, const std::string& where) {
  for (const Verb& first : Verbs()) {
    Stranger stranger(idle.get()->address()), other(idle.get()->address());
    for (const Verb& second : Verbs()) {
      stranger.Look().IgnoreError();
      const absl::Status one = first.Call(stranger.control(), *stranger.RequestOf(first));
      other.Look().IgnoreError();
      const absl::Status two = second.Call(other.control(), *other.RequestOf(second));
      Note(siege, *idle.get(), absl::StrCat(first.name, ", then ", second.name, where),
           IsMeant(one) ? two : one);
      if (!idle.get()->Running() && !idle.Restart()) return;
    }
  }
}

absl::Status Create(SiegeServer& server, const v1::Schema& schema) {
  Stranger stranger(server.address());
  CISTERN_RETURN_IF_ERROR(stranger.Look());
  v1::CreateTablesRequest request;
  *request.mutable_identity() = stranger.hello().identity();
  *request.mutable_schema() = schema;
  return VerbOf("CreateTables").Call(stranger.control(), request);
}

void TrySchema(const Siege& siege, IdleServer& idle, const std::string& name,
               const v1::Schema& schema, bool may_be_granted) {
  if (idle.get() == nullptr) return;
  const absl::Status created = Create(*idle.get(), schema);
  Note(siege, *idle.get(), name, created, may_be_granted);
  // Tables exist until the server ends.
  if (created.ok() || !idle.get()->Running()) idle.Restart();
}

void AttackSchemas(const Siege& siege, IdleServer& idle) {
  v1::Schema schema = SmallSchema();
  schema.mutable_dense_tables(0)->set_rows((uint64_t{1} << 63) + 1024);
  TrySchema(siege, idle, "a dense table of 2^63 + 1024 rows", schema, false);
  schema.mutable_dense_tables(0)->set_rows(uint64_t{1} << 34);
  TrySchema(siege, idle, "a dense table of 2^34 rows", schema, false);
  schema = SmallSchema();
  for (int i = 0; i < 5000; ++i) {
    v1::TableSpec* table = schema.add_tables();
    *table = schema.tables(0);
    table->set_name(absl::StrCat("table", i));
  }
  TrySchema(siege, idle, "5,000 tables", schema, false);
  v1::CreateTablesRequest request;
  *request.mutable_schema() = SmallSchema();
  int turn = 0;
  ForEachLie(request, [&](const std::string& what, const google::protobuf::Message& lie) {
    if (what.rfind("schema", 0) != 0 || (!siege.is_long && ++turn % 3 != 0)) return;
    TrySchema(siege, idle, absl::StrCat("tables with ", what),
              static_cast<const v1::CreateTablesRequest&>(lie).schema(), true);
  });
}

// The calls of a correct writer: a claim, tables, and a committed pass.
absl::Status TrainOnce(const std::string& address) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<Fleet> fleet, ConnectFleet(address));
  ClientOptions options;
  options.retry_limit = absl::Seconds(20);
  options.take_over = true;  // from the stranger with the last claim
  CISTERN_ASSIGN_OR_RETURN(auto client, ParameterClient::Connect(fleet->links(), options));
  const bool empty = client->schema().tables_size() == 0;
  if (empty) CISTERN_RETURN_IF_ERROR(client->CreateTables(SmallSchema()));
  CISTERN_RETURN_IF_ERROR(client->ClaimTerm());
  CISTERN_RETURN_IF_ERROR(client->BeginPass());
  const std::vector<Key> keys = {1, 2, 3};
  const std::vector<float> values(keys.size() * client->layout(0).full_floats(), 0.25f);
  const std::vector<uint8_t> has_embedx(keys.size(), 1);
  CISTERN_RETURN_IF_ERROR(client->Push(0, keys, values.data(), has_embedx.data()));
  return client->CommitPass();
}

}  // namespace

void AttackIdleServers(const Siege& siege) {
  for (const bool durable : {false, true}) {
    const std::string kind = durable ? "durable" : "in memory";
    IdleServer idle(siege, durable ? "idle-durable" : "idle", durable);
    if (idle.get() == nullptr) continue;
    AttackPairs(siege, idle, absl::StrCat(" (", kind, ", no tables)"));
    absl::Status served = TrainOnce(idle.get()->address());
    siege.report->Expect(served.ok(), absl::StrCat("an idle server (", kind,
                                                   ") serves a writer: ", served.ToString()));
    if (!durable || siege.is_long) AttackPairs(siege, idle, absl::StrCat(" (", kind, ", tables)"));
    if (!durable) continue;
    served = TrainOnce(idle.get()->address());
    siege.report->Expect(served.ok(), absl::StrCat("an idle server with tables serves a writer: ",
                                                   served.ToString()));
    siege.report->Expect(idle.get()->StopCleanly(), "an idle server ends on SIGTERM");
  }
  IdleServer idle(siege, "idle-tables", false);
  if (idle.get() != nullptr) AttackSchemas(siege, idle);
}

}  // namespace cistern
