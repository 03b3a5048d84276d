#include "test/fuzz/fuzzed_node.h"

#include "common/base/check.h"
#include "common/value/value_layout.h"

namespace cistern {
namespace {

constexpr Key kKeys[] = {0, 1, 2, 3, 4, 1000003, ~uint64_t{1}};

void Succeed(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::abort();
}

template <class T>
void Append(std::string* body, const T& value) {
  body->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

v1::Schema FuzzedSchema() {
  v1::Schema schema;
  v1::TableSpec* ctr = schema.add_tables();
  ctr->set_name("ctr");
  ctr->set_accessor(v1::TableSpec::CTR);
  ctr->set_dim(2);
  ctr->mutable_rule()->set_kind(v1::UpdateRule::ADAGRAD_SHARED);
  ctr->mutable_rule()->set_initial_g2sum(3);
  ctr->mutable_ctr()->set_click_coeff(1);
  ctr->mutable_ctr()->set_embedx_threshold(10);
  v1::TableSpec* deep = schema.add_tables();
  deep->set_name("deep");
  deep->set_dim(2);
  deep->mutable_rule()->set_kind(v1::UpdateRule::ADAM);
  deep->mutable_rule()->set_beta1(0.9f);
  deep->mutable_rule()->set_beta2(0.999f);
  deep->mutable_rule()->set_epsilon(1e-7f);
  deep->mutable_rule()->set_missed(v1::UpdateRule::GLOBAL);
  v1::DenseTableSpec* dense = schema.add_dense_tables();
  dense->set_name("mlp");
  dense->set_rows(16);
  dense->add_columns(std::string(1, 'w'));
  dense->mutable_rule()->set_kind(v1::DenseRule::SUM);
  return schema;
}

FuzzedNode::FuzzedNode(Kind kind) {
  server::ServerOptions options;
  options.shard_num = 4;
  options.threads = 1;
  options.staged_limit_bytes = 16 << 20;
  options.files = &disk_;
  if (kind != Kind::kEmpty) options.data_dir = "/data";
  options.durable = kind == Kind::kDurable;
  absl::StatusOr<std::unique_ptr<server::ServerNode>> node = server::ServerNode::Create(options);
  Succeed(node.status());
  node_ = *std::move(node);
  if (kind != Kind::kEmpty) Create(kind);
}

void FuzzedNode::Create(Kind kind) {
  v1::CreateTablesRequest create;
  *create.mutable_identity() = identity();
  *create.mutable_schema() = FuzzedSchema();
  v1::CreateTablesReply created;
  Succeed(control().CreateTables(create, &created));
  v1::ClaimEpochRequest claim;
  *claim.mutable_identity() = identity();
  claim.mutable_identity()->set_epoch(1);
  claim.set_writer("fuzz");
  v1::PassReply claimed;
  Succeed(control().ClaimEpoch(claim, &claimed));
  CommitPass();
}

absl::Status FuzzedNode::Call(FrameKind kind, Frame request) {
  absl::Status answer = absl::InternalError("no answer");
  node_->data().Call(kind, std::move(request), absl::Seconds(1), [&](absl::StatusOr<Frame> reply) {
    answer = reply.status();
    if (!reply.ok()) return;
    FrameReader reader(*reply);
    Succeed(ReadHeader(reader, kind, /*reply=*/true).status());
  });
  return answer;
}

v1::Identity FuzzedNode::identity() {
  v1::HelloReply hello;
  if (!control().Hello({}, &hello).ok()) return {};
  hello.mutable_identity()->set_secret(kSecret);
  return hello.identity();
}

uint64_t FuzzedNode::committed() {
  v1::HelloReply hello;
  return control().Hello({}, &hello).ok() ? hello.committed_pass() : 0;
}

std::vector<uint64_t> FuzzedNode::Digests() {
  v1::StatsRequest request;
  *request.mutable_identity() = identity();
  request.set_digest(true);
  v1::StatsReply reply;
  if (!control().Stats(request, &reply).ok()) return {};
  std::vector<uint64_t> digests = {reply.committed_pass(), reply.commit()};
  for (const v1::TableStats& table : reply.tables()) digests.push_back(table.digest());
  for (const v1::TableStats& table : reply.dense_tables()) digests.push_back(table.digest());
  return digests;
}

Frame FuzzedNode::PushFrame(bool dense, uint64_t sequence) {
  const v1::Identity own = identity();
  FrameHeader header;
  header.kind = static_cast<uint16_t>(dense ? FrameKind::kPushDense : FrameKind::kPush);
  header.cluster_id = own.cluster_id();
  header.schema_hash = own.schema_hash();
  header.shard_map_hash = own.shard_map_hash();
  header.term = own.epoch();
  header.pass = committed() + 1;
  header.sequence = sequence;
  std::string body;
  if (dense) {
    header.count = 16;
    header.stride = 1;
    for (int row = 0; row < 16; ++row) Append(&body, 0.25f * static_cast<float>(row));
  } else {
    const uint32_t stride = ValueLayout::Create(FuzzedSchema().tables(0)).value().full_floats();
    header.count = std::size(kKeys);
    header.stride = stride;
    for (const Key key : kKeys) Append(&body, key);
    for (size_t i = 0; i < std::size(kKeys) * stride; ++i) Append(&body, 0.5f);
    body.append(std::size(kKeys), '\1');
  }
  Frame frame = StartFrame(header);
  frame.AppendBytes(body.data(), body.size());
  header.body_hash = BodyHash(frame, kSecret);
  Frame hashed = StartFrame(header);
  hashed.AppendBytes(body.data(), body.size());
  return hashed;
}

void FuzzedNode::FollowNewest(v1::Manifest* manifest) {
  v1::GetManifestRequest request;
  *request.mutable_identity() = identity();
  v1::GetManifestReply newest;
  control().GetManifest(request, &newest).IgnoreError();
  manifest->set_commit(newest.manifest().commit() + 1);
  manifest->set_previous(newest.self_xxh3());
  manifest->set_pass(committed() + 1);
  manifest->set_epoch(identity().epoch());
}

v1::Manifest FuzzedNode::NextManifest(const v1::PreparedPart& part) {
  v1::Manifest manifest;
  FollowNewest(&manifest);
  manifest.set_cluster("cistern");
  manifest.set_server_num(1);
  manifest.set_shard_num(4);
  *manifest.mutable_schema() = FuzzedSchema();
  *manifest.mutable_files() = part.files();
  *manifest.mutable_tables() = part.tables();
  *manifest.mutable_dense_tables() = part.dense_tables();
  return manifest;
}

std::vector<FuzzedNode::Step> FuzzedNode::CommitPass() {
  std::vector<Step> steps;
  const v1::Identity own = identity();
  const uint64_t pass = committed() + 1;
  v1::HelloReply hello;
  Succeed(control().Hello({}, &hello));
  const auto keep = [&](const char* verb, const auto& request) {
    steps.push_back({verb, std::make_unique<std::decay_t<decltype(request)>>(request)});
  };
  v1::PassReply reply;
  v1::PassRequest begin;
  *begin.mutable_identity() = own;
  begin.set_pass(pass);
  begin.set_worker_num(1);
  keep("BeginPass", begin);
  Succeed(control().BeginPass(begin, &reply));
  Succeed(Call(FrameKind::kPush, PushFrame(false, 0)));
  Succeed(Call(FrameKind::kPushDense, PushFrame(true, 1)));
  v1::SealPassRequest seal;
  *seal.mutable_identity() = own;
  seal.set_pass(pass);
  seal.set_push_count(2);
  keep("SealPass", seal);
  Succeed(control().SealPass(seal, &reply));
  v1::PreparePassRequest prepare;
  *prepare.mutable_identity() = own;
  prepare.set_pass(pass);
  prepare.set_durable(hello.durable());
  keep("PreparePass", prepare);
  v1::PreparePassReply prepared;
  Succeed(control().PreparePass(prepare, &prepared));
  v1::CommitPassRequest commit;
  *commit.mutable_identity() = own;
  commit.set_pass(pass);
  if (hello.durable()) {
    v1::DecideRequest decide;
    *decide.mutable_identity() = own;
    *decide.mutable_manifest() = NextManifest(prepared.prepared());
    keep("Decide", decide);
    v1::DecideReply decided;
    Succeed(control().Decide(decide, &decided));
    commit.set_commit(decide.manifest().commit());
  }
  keep("CommitPass", commit);
  Succeed(control().CommitPass(commit, &reply));
  return steps;
}

}  // namespace cistern
