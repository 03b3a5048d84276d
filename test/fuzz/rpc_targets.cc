#include "test/fuzz/rpc_targets.h"

#include <algorithm>
#include <array>

#include "common/base/check.h"
#include "common/base/log.h"
#include "test/fuzz/fuzzed_node.h"
#include "test/siege/verbs.h"

namespace cistern {
namespace {

using google::protobuf::Message;

constexpr int kMaxCalls = 8;  // per input
constexpr int kRunsOfNode = 1000;
constexpr int kChangesOfNode = 64;  // inputs that change it

// Turns off the log of the server, and protobuf's messages about invalid UTF-8.
void BeQuiet() {
  SetLogLevel("off");
  google::protobuf::SetLogHandler(nullptr);
}

// One node per kind. Creating a node takes a hundred times as long as a typical input, so a node is
// reused until it has another writer or other tables, or kChangesOfNode inputs have changed it.
class Nodes {
 public:
  FuzzedNode& Get(FuzzedNode::Kind kind) {
    Entry& entry = entries_[static_cast<size_t>(kind)];
    if (entry.node == nullptr || ++entry.runs > kRunsOfNode || entry.changes > kChangesOfNode) {
      BeQuiet();
      entry.node.reset();
      entry = {.node = std::make_unique<FuzzedNode>(kind)};
    }
    return *entry.node;
  }
  void Changed(FuzzedNode::Kind kind) { ++entries_[static_cast<size_t>(kind)].changes; }
  void Spoil(FuzzedNode::Kind kind) {
    entries_[static_cast<size_t>(kind)].changes = kChangesOfNode + 1;
  }

 private:
  struct Entry {
    std::unique_ptr<FuzzedNode> node;
    int runs = 0, changes = 0;
  };
  std::array<Entry, 3> entries_;
};

bool IsUnforeseen(const absl::Status& answer) {
  return absl::IsUnknown(answer) || absl::IsUnimplemented(answer);
}

Frame InPieces(const std::string& bytes) {
  Frame frame;
  for (size_t at = 0; at < bytes.size(); at += 7) {
    frame.AppendBytes(bytes.data() + at, std::min<size_t>(7, bytes.size() - at));
  }
  return frame;
}

// Checks that a frame that ReadHeader accepts has a body of the declared size.
void CheckHeader(const Frame& frame, FrameKind kind, bool reply) {
  FrameReader reader(frame);
  const absl::StatusOr<FrameHeader> header = ReadHeader(reader, kind, reply);
  if (!header.ok()) return;
  CISTERN_CHECK(reader.left() == frame.size() - sizeof(FrameHeader));
  CISTERN_CHECK(reader.left() <= kMaxBodyBytes && header->stride <= kMaxStride);
  std::string rest(reader.left(), '\0');
  CISTERN_CHECK(reader.Read(rest.data(), rest.size()) && reader.left() == 0);
  CISTERN_CHECK(!reader.Read(rest.data(), 1));
}

void Right(uint8_t flags, FuzzedNode& node, std::string* bytes) {
  FrameHeader header;
  if (bytes->size() < sizeof(header)) return;
  std::memcpy(&header, bytes->data(), sizeof(header));
  if ((flags & kRightCaller) != 0) {
    const v1::Identity own = node.identity();
    header.magic = FrameHeader().magic;
    header.status = 0;
    header.cluster_id = own.cluster_id();
    header.schema_hash = own.schema_hash();
    header.shard_map_hash = own.shard_map_hash();
    header.term = own.epoch();
  }
  if ((flags & kRightPass) != 0) header.pass = node.committed() + 1;
  if ((flags & kRightHash) != 0) header.body_hash = BodyHash(Frame(*bytes), FuzzedNode::kSecret);
  std::memcpy(bytes->data(), &header, sizeof(header));
}

std::unique_ptr<FuzzedNode> NodeWithOpenPass() {
  BeQuiet();
  auto node = std::make_unique<FuzzedNode>(FuzzedNode::Kind::kInMemory);
  v1::PassRequest begin;
  *begin.mutable_identity() = node->identity();
  begin.set_pass(node->committed() + 1);
  begin.set_worker_num(1);
  v1::PassReply begun;
  CISTERN_CHECK(node->control().BeginPass(begin, &begun).ok());
  return node;
}

void RunFrame(absl::string_view input) {
  if (input.empty()) return;
  static std::unique_ptr<FuzzedNode> made;
  static std::vector<uint64_t> digests;
  static int runs = 0;
  const auto flags = static_cast<uint8_t>(input[0]);
  const auto kind = static_cast<FrameKind>(1 + (flags & 7) % 5);
  if (runs++ % kRunsOfNode == 0) made = NodeWithOpenPass();
  FuzzedNode& node = *made;
  if (runs % kRunsOfNode == 1) digests = node.Digests();
  std::string bytes(input.substr(1));
  Right(flags, node, &bytes);
  const Frame frame = (flags & kInPieces) != 0 ? InPieces(bytes) : Frame(bytes);
  CheckHeader(frame, kind, false);
  CheckHeader(frame, kind, true);
  CISTERN_CHECK(!IsUnforeseen(node.Call(kind, frame)));
  // Pulls and scans change nothing, and a push changes nothing before its pass commits.
  if (runs % 64 == 0) CISTERN_CHECK(node.Digests() == digests);
}

// Sets the fields of a request that the flags select.
void Right(uint8_t flags, FuzzedNode& node, Message* request) {
  const auto* field = request->GetDescriptor()->FindFieldByName("identity");
  const auto* reflection = request->GetReflection();
  auto& identity = static_cast<v1::Identity&>(*reflection->MutableMessage(request, field));
  if ((flags & kRightIdentity) != 0) {
    identity = node.identity();
    if (dynamic_cast<v1::ClaimEpochRequest*>(request) != nullptr) {
      identity.set_epoch(identity.epoch() + 1);
    }
    identity.clear_secret();
  }
  if ((flags & kRightSecret) != 0) {
    identity.set_secret(FuzzedNode::kSecret);
  } else if (identity.secret() == FuzzedNode::kSecret) {
    identity.clear_secret();
  }
  if ((flags & kNextPass) == 0) return;
  if (auto* decide = dynamic_cast<v1::DecideRequest*>(request)) {
    node.FollowNewest(decide->mutable_manifest());
  }
  for (const char* name : {"pass", "changes"}) {
    field = request->GetDescriptor()->FindFieldByName(name);
    if (field == nullptr) continue;
    reflection->SetUInt64(request, field, name[0] == 'p' ? node.committed() + 1 : 0);
  }
}

bool OnlyLooks(const std::string& verb) {
  for (const char* looking :
       {"Hello", "Meet", "GetManifest", "ReadState", "Scrub", "Stats", "GetRow"}) {
    if (verb == looking) return true;
  }
  return false;
}

// Whether only the writer may call the verb. A refused call must change nothing.
bool IsWriters(const std::string& verb) {
  for (const char* writing : {"BeginPass", "SealPass", "PreparePass", "Decide", "CommitPass",
                              "AbortPass", "Load", "Clear", "UpdateAfterSave"}) {
    if (verb == writing) return true;
  }
  return false;
}

// Verbs that give a node another writer or other tables.
bool MakesAnother(const std::string& verb) {
  for (const char* making : {"ClaimEpoch", "CreateTables", "Load", "Clear"}) {
    if (verb == making) return true;
  }
  return false;
}

enum class Effect { kNone, kChanged, kSpoiled };

// Runs one call; false if there are too few bytes left.
bool RunCall(FuzzedNode& node, bool has_tables, absl::string_view* input, Effect* effect) {
  if (input->size() < 4) return false;
  const auto at = [&](size_t i) { return static_cast<uint8_t>((*input)[i]); };
  const Verb& verb = Verbs()[at(0) % Verbs().size()];
  const uint8_t flags = at(1);
  const size_t length = std::min<size_t>(at(2) | at(3) << 8, input->size() - 4);
  const std::unique_ptr<Message> request(verb.request->New());
  const bool parsed = request->ParseFromArray(input->data() + 4, static_cast<int>(length));
  input->remove_prefix(4 + length);
  if (!parsed) return true;
  Right(flags, node, request.get());
  const bool watched = has_tables && IsWriters(verb.name) && (flags & kRightSecret) == 0;
  const std::vector<uint64_t> before = watched ? node.Digests() : std::vector<uint64_t>();
  const absl::Status answer = verb.Call(node.control(), *request);
  CISTERN_CHECK(!IsUnforeseen(answer));
  if (answer.ok() && !OnlyLooks(verb.name)) {
    *effect = std::max(*effect, MakesAnother(verb.name) ? Effect::kSpoiled : Effect::kChanged);
  }
  // A refused call can change the digests only while tables are being dropped, which only the
  // writer can cause.
  if (watched && !answer.ok()) CISTERN_CHECK(node.Digests() == before);
  return true;
}

void RunControl(absl::string_view input) {
  if (input.size() < 4) return;
  static Nodes nodes;
  const auto flags = static_cast<uint8_t>(input[1]);
  const auto kind = (flags & kOnEmpty) != 0     ? FuzzedNode::Kind::kEmpty
                    : (flags & kOnDurable) != 0 ? FuzzedNode::Kind::kDurable
                                                : FuzzedNode::Kind::kInMemory;
  FuzzedNode& node = nodes.Get(kind);
  Effect effect = Effect::kNone;
  for (int calls = 0; calls < kMaxCalls; ++calls) {
    if (!RunCall(node, kind != FuzzedNode::Kind::kEmpty, &input, &effect)) break;
  }
  if (effect == Effect::kChanged) nodes.Changed(kind);
  if (effect == Effect::kSpoiled) nodes.Spoil(kind);
}

}  // namespace

const std::vector<FuzzTarget>& RpcTargets() {
  static const std::vector<FuzzTarget> targets = {{"frame", RunFrame}, {"control", RunControl}};
  return targets;
}

}  // namespace cistern
