#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "test/siege/attacks.h"

namespace cistern {
namespace {

constexpr int kClients = 4;

// A verb or a push as from a confused writer: its passes and commits are close to the correct ones.
void TryAny(const Siege& siege, Stranger& stranger, std::mt19937_64& random,
            const std::string& name) {
  const Verb& verb = Verbs()[random() % Verbs().size()];
  const std::unique_ptr<google::protobuf::Message> request = stranger.RequestOf(verb);
  const auto* pass = request->GetDescriptor()->FindFieldByName("pass");
  if (pass != nullptr) {
    request->GetReflection()->SetUInt64(request.get(), pass,
                                        stranger.hello().committed_pass() + random() % 4);
  }
  const auto* worker = request->GetDescriptor()->FindFieldByName("worker");
  if (worker != nullptr &&
      worker->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_UINT32) {
    request->GetReflection()->SetUInt32(request.get(), worker,
                                        static_cast<uint32_t>(random() % 10));
  }
  TryVerb(siege, "orders", absl::StrCat(name, ": ", verb.name), stranger, verb, *request);
  if (random() % 4 != 0) return;
  const FrameKind kind = random() % 2 == 0 ? FrameKind::kPush : FrameKind::kPushDense;
  FrameHeader header = stranger.HeaderOf(kind);
  header.worker = static_cast<uint32_t>(random() % 10);
  header.sequence = random() % 3;
  const std::string body = stranger.BodyOf(&header);
  Frame frame = StartFrame(header);
  frame.AppendBytes(body.data(), body.size());
  const absl::Status answer = CallData(stranger.data(), kind, frame);
  siege.report->Tried(
      "orders", absl::StrCat(name, ": ", FrameKindName(kind)), !answer.ok() && IsMeant(answer),
      absl::StrCat("pass ", header.pass, ", worker ", header.worker), answer.ToString());
}

}  // namespace

void AttackOrders(const Siege& siege) {
  std::vector<std::thread> clients;
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([&siege, client] {
      // Half of the clients use only the last server, which decides nothing.
      const size_t rank = client % 2 == 0 ? siege.fleet->servers.size() - 1 : 0;
      Stranger stranger(siege.address(rank));
      std::mt19937_64 random(static_cast<uint64_t>(client));
      for (int seed = 0; seed < (siege.is_long ? 5000 : 250); ++seed) {
        stranger.Look().IgnoreError();
        TryAny(siege, stranger, random, client % 2 == 0 ? "to the last server" : "to server 0");
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

}  // namespace cistern
