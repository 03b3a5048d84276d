#include "test/siege/stranger.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "common/value/schema.h"
#include "common/value/value_layout.h"

namespace cistern {
namespace {

using google::protobuf::Message;

RemoteOptions Impatient() {
  RemoteOptions options;
  options.call_timeout = absl::Seconds(20);
  options.long_call_timeout = absl::Seconds(30);
  return options;
}

}  // namespace

Stranger::Stranger(const std::string& address) : Stranger(address, Impatient()) {}

Stranger::Stranger(const std::string& address, const RemoteOptions& options)
    : server_(RemoteServer::Create(address, options)) {}

absl::Status Stranger::Look() {
  v1::HelloReply hello;
  CISTERN_RETURN_IF_ERROR(server_->Hello({}, &hello));
  hello_ = hello;
  v1::GetManifestRequest request;
  *request.mutable_identity() = hello_.identity();
  v1::GetManifestReply newest;
  const absl::Status got = server_->GetManifest(request, &newest);
  if (got.ok()) newest_ = newest;
  return absl::IsNotFound(got) ? absl::OkStatus() : got;
}

v1::Manifest Stranger::NextManifest() const {
  v1::Manifest manifest = newest_.manifest();
  manifest.set_commit(manifest.commit() + 1);
  manifest.set_previous(newest_.self_xxh3());
  manifest.set_pass(hello_.committed_pass() + 1);
  manifest.set_epoch(hello_.identity().epoch());
  return manifest;
}

std::unique_ptr<Message> Stranger::RequestOf(const Verb& verb) const {
  std::unique_ptr<Message> request(verb.request->New());
  const uint64_t next = hello_.committed_pass() + 1;
  const auto set = [&](const char* name, auto setter, auto value) {
    const auto* field = request->GetDescriptor()->FindFieldByName(name);
    if (field != nullptr) (request->GetReflection()->*setter)(request.get(), field, value);
  };
  using R = google::protobuf::Reflection;
  set("pass", &R::SetUInt64, next);
  set("worker_num", &R::SetUInt32, uint32_t{1});
  set("commit", &R::SetUInt64, hello_.commit() + 1);
  const auto* identity = request->GetDescriptor()->FindFieldByName("identity");
  request->GetReflection()->MutableMessage(request.get(), identity)->CopyFrom(hello_.identity());
  if (auto* claim = dynamic_cast<v1::ClaimEpochRequest*>(request.get())) {
    claim->mutable_identity()->set_epoch(hello_.identity().epoch() + 1);
    claim->set_writer("siege");
  } else if (auto* create = dynamic_cast<v1::CreateTablesRequest*>(request.get())) {
    *create->mutable_schema() = hello_.schema();
  } else if (auto* prepare = dynamic_cast<v1::PreparePassRequest*>(request.get())) {
    prepare->set_durable(hello_.durable());
  } else if (auto* decide = dynamic_cast<v1::DecideRequest*>(request.get())) {
    *decide->mutable_manifest() = NextManifest();
  } else if (auto* commit = dynamic_cast<v1::CommitPassRequest*>(request.get())) {
    *commit->mutable_clock() = hello_.clock();
  } else if (auto* save = dynamic_cast<v1::SaveRequest*>(request.get())) {
    save->set_name("strangers");
  } else if (auto* load = dynamic_cast<v1::LoadRequest*>(request.get())) {
    load->set_name("kept");
  } else if (auto* meet = dynamic_cast<v1::MeetRequest*>(request.get())) {
    meet->set_address("127.0.0.1:7");
  }
  return request;
}

FrameHeader Stranger::HeaderOf(FrameKind kind) const {
  const bool dense = kind == FrameKind::kPullDense || kind == FrameKind::kPushDense;
  FrameHeader header;
  header.kind = static_cast<uint16_t>(kind);
  header.cluster_id = hello_.identity().cluster_id();
  header.schema_hash = hello_.identity().schema_hash();
  header.shard_map_hash = hello_.identity().shard_map_hash();
  header.term = hello_.identity().epoch();
  header.shard = hello_.rank();
  header.count = kind == FrameKind::kScan ? 0 : 1;
  if (kind == FrameKind::kPush || kind == FrameKind::kPushDense) {
    header.pass = hello_.committed_pass() + 1;
  }
  if (dense) {
    if (hello_.schema().dense_tables_size() == 0) return header;
    const v1::DenseTableSpec& table = hello_.schema().dense_tables(0);
    header.stride = static_cast<uint32_t>(table.columns_size());
    header.start =
        hello_.server_num() == 0 ? 0 : table.rows() * hello_.rank() / hello_.server_num();
  } else if (hello_.schema().tables_size() > 0) {
    const absl::StatusOr<ValueLayout> layout = ValueLayout::Create(hello_.schema().tables(0));
    if (layout.ok()) header.stride = layout->full_floats();
  }
  return header;
}

std::string Stranger::BodyOf(FrameHeader* header) const {
  std::string body;
  const auto add = [&](const auto& value) {
    body.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  const auto kind = static_cast<FrameKind>(header->kind);
  const bool keys = kind == FrameKind::kPull || kind == FrameKind::kPush;
  const bool values = kind == FrameKind::kPush || kind == FrameKind::kPushDense;
  const uint64_t count = header->count;
  // Keys of this server: shard = key % shard_num, and the shard with its rank as index is its own.
  for (uint64_t i = 0; keys && i < count; ++i) {
    add(uint64_t{header->shard} + i * std::max(1u, hello_.shard_num()));
  }
  for (uint64_t i = 0; values && i < count * header->stride; ++i) add(0.5f);
  if (kind == FrameKind::kPush) body.append(count, '\1');
  if (values) {
    Frame frame = StartFrame(*header);
    frame.AppendBytes(body.data(), body.size());
    header->body_hash = BodyHash(frame);
  }
  return body;
}

bool MayBeGranted(const Stranger& stranger, const Verb& verb, const Message& request) {
  if (const auto* shrink = dynamic_cast<const v1::ShrinkRequest*>(&request)) {
    return shrink->dry_run();
  }
  if (const auto* create = dynamic_cast<const v1::CreateTablesRequest*>(&request)) {
    return SchemaHash(create->schema()) == SchemaHash(stranger.hello().schema());
  }
  for (const char* harmless :
       {"Hello", "Meet", "Save", "GetManifest", "ReadState", "Scrub", "Stats", "GetRow"}) {
    if (verb.name == harmless) return true;
  }
  return false;
}

bool IsMeant(const absl::Status& answer) {
  return !absl::IsUnknown(answer) && !absl::IsInternal(answer) &&
         !absl::IsDeadlineExceeded(answer) && !absl::IsUnimplemented(answer);
}

bool AnswersHello(const std::string& address, absl::Duration limit) {
  const absl::Time end = absl::Now() + limit;
  do {
    RemoteOptions options;
    options.call_timeout = std::max(end - absl::Now(), absl::Milliseconds(100));
    const auto server = RemoteServer::Create(address, options);
    v1::HelloReply reply;
    if (server->Hello({}, &reply).ok()) return true;
    absl::SleepFor(absl::Milliseconds(20));
  } while (absl::Now() < end);
  return false;
}

}  // namespace cistern
