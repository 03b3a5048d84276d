// Writes the initial files of corpus/frame and corpus/control, using the replies of a server: every
// verb alone, a complete pass, and every kind of frame. Files that a fuzzer finds are added to the
// same folders.
//
//   make_rpc_corpus test/fuzz/corpus
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/value/value_layout.h"
#include "test/fuzz/fuzzed_node.h"
#include "test/fuzz/rpc_targets.h"
#include "test/siege/verbs.h"

namespace cistern {
namespace {

using google::protobuf::Message;

void Put(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::string CallOf(const std::string& name, uint8_t flags, const Message& request) {
  const std::vector<Verb>& verbs = Verbs();
  size_t place = 0;
  while (verbs[place].name != name) ++place;
  std::string message;
  request.SerializeToString(&message);
  const size_t length = message.size();
  return std::string{static_cast<char>(place), static_cast<char>(flags),
                     static_cast<char>(length & 0xff), static_cast<char>(length >> 8)} +
         message;
}

// A request with valid values in the usual fields.
std::unique_ptr<Message> Filled(const Verb& verb, const v1::Identity& identity) {
  std::unique_ptr<Message> request(verb.request->New());
  const auto* own = request->GetDescriptor()->FindFieldByName("identity");
  request->GetReflection()->MutableMessage(request.get(), own)->CopyFrom(identity);
  if (auto* create = dynamic_cast<v1::CreateTablesRequest*>(request.get())) {
    *create->mutable_schema() = FuzzedSchema();
  } else if (auto* save = dynamic_cast<v1::SaveRequest*>(request.get())) {
    save->set_name("model");
    save->mutable_format()->set_kind(v1::SaveFormat::BINARY);
  } else if (auto* load = dynamic_cast<v1::LoadRequest*>(request.get())) {
    load->set_name("model");
    load->add_tables("deep");
  } else if (auto* meet = dynamic_cast<v1::MeetRequest*>(request.get())) {
    meet->set_address("127.0.0.1:7790");
    meet->set_secret(7);
  } else if (auto* row = dynamic_cast<v1::GetRowRequest*>(request.get())) {
    row->set_key(3);
  } else if (auto* stats = dynamic_cast<v1::StatsRequest*>(request.get())) {
    stats->set_digest(true);
  } else if (auto* claim = dynamic_cast<v1::ClaimEpochRequest*>(request.get())) {
    claim->set_take_over(true);
    claim->set_writer("fuzz");
  }
  return request;
}

void PutControl(const std::filesystem::path& folder) {
  FuzzedNode durable(FuzzedNode::Kind::kDurable), empty(FuzzedNode::Kind::kEmpty);
  constexpr uint8_t kWriter = kRightIdentity | kRightSecret | kNextPass;
  for (const Verb& verb : Verbs()) {
    const std::unique_ptr<Message> request = Filled(verb, durable.identity());
    Put(folder / (verb.name + "_memory"), CallOf(verb.name, kWriter, *request));
    Put(folder / (verb.name + "_durable"), CallOf(verb.name, kWriter | kOnDurable, *request));
    Put(folder / (verb.name + "_stranger"), CallOf(verb.name, kRightIdentity, *request));
    Put(folder / (verb.name + "_empty"),
        CallOf(verb.name, kWriter | kOnEmpty, *Filled(verb, empty.identity())));
  }
  // Pushes are frames, not control-plane calls, so this pass has none.
  std::string pass, save;
  for (const FuzzedNode::Step& step : durable.CommitPass()) {
    if (auto* seal = dynamic_cast<v1::SealPassRequest*>(step.request.get())) {
      seal->set_push_count(0);
    }
    pass += CallOf(step.verb, kWriter | kOnDurable, *step.request);
  }
  Put(folder / "a_pass", pass);
  for (const char* name : {"Save", "Clear", "Load", "Shrink", "UpdateAfterSave", "Scrub"}) {
    save += CallOf(name, kWriter, *Filled(VerbOf(name), durable.identity()));
  }
  Put(folder / "save_and_load", save);
}

void PutFrames(const std::filesystem::path& folder) {
  FuzzedNode node(FuzzedNode::Kind::kInMemory);
  const auto put = [&](const std::string& name, FrameKind kind, FrameHeader header,
                       const std::string& body) {
    header.kind = static_cast<uint16_t>(kind);
    const auto flags = static_cast<char>(kRightCaller | kRightPass | (static_cast<int>(kind) - 1));
    const std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
    Put(folder / name, std::string(1, flags) + bytes + body);
    Put(folder / (name + "_hashed"),
        std::string(1, static_cast<char>(flags | kRightHash)) + bytes + body);
    Put(folder / (name + "_pieces"),
        std::string(1, static_cast<char>(flags | kRightHash | kInPieces)) + bytes + body);
  };
  for (const bool dense : {false, true}) {
    const Frame frame = node.PushFrame(dense, 0);
    std::string bytes(frame.size(), '\0');
    FrameReader(frame).Read(bytes.data(), bytes.size());
    FrameHeader header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    const std::string body = bytes.substr(sizeof(header));
    put(dense ? "push_dense" : "push", dense ? FrameKind::kPushDense : FrameKind::kPush, header,
        body);
    if (!dense) {
      put("pull", FrameKind::kPull, header, body.substr(0, 8 * header.count));
      header.count = 0;
      put("scan", FrameKind::kScan, header, "");
    } else {
      put("pull_dense", FrameKind::kPullDense, header, "");
      header.flags = kGradient;
      put("push_gradient", FrameKind::kPushDense, header, body);
    }
  }
}

}  // namespace
}  // namespace cistern

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  cistern::PutControl(std::filesystem::path(argv[1]) / "control");
  cistern::PutFrames(std::filesystem::path(argv[1]) / "frame");
  return 0;
}
