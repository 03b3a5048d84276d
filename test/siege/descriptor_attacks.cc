// More connections than the server has descriptors, and digest calls that occupy its threads.
#include <fcntl.h>

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/rpc/fleet.h"
#include "test/siege/attacks.h"
#include "test/siege/wire.h"
#include "worker/client/parameter_client.h"

namespace cistern {
namespace {

constexpr uint64_t kDescriptors = 256;
constexpr absl::Duration kBusyHelloLimit = absl::Seconds(2);

std::unique_ptr<SiegeServer> StartAlone(const Siege& siege, const std::string& name,
                                        uint64_t descriptors, bool files) {
  SiegeServer::Options options;
  options.programs = siege.programs;
  options.log = absl::StrCat(siege.folder, "/", name, ".log");
  options.descriptor_limit = descriptors;
  if (files) options.data_dir = absl::StrCat(siege.folder, "/", name);
  absl::StatusOr<std::unique_ptr<SiegeServer>> server = SiegeServer::Start(options);
  siege.report->Expect(server.ok(), absl::StrCat(name, " starts: ", server.status().ToString()));
  return server.ok() ? *std::move(server) : nullptr;
}

// A table whose digest takes a while.
absl::Status FillTable(const std::string& address, size_t rows) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<Fleet> fleet, ConnectFleet(address));
  CISTERN_ASSIGN_OR_RETURN(auto client, ParameterClient::Connect(fleet->links(), {}));
  v1::Schema schema;
  schema.add_tables()->set_name("large");
  schema.mutable_tables(0)->set_dim(16);
  CISTERN_RETURN_IF_ERROR(client->CreateTables(schema));
  CISTERN_RETURN_IF_ERROR(client->ClaimTerm());
  CISTERN_RETURN_IF_ERROR(client->BeginPass());
  std::vector<Key> keys(rows);
  for (size_t i = 0; i < rows; ++i) keys[i] = i;
  const std::vector<float> values(rows * client->layout(0).full_floats(), 0.5f);
  const std::vector<uint8_t> has_embedx(rows, 1);
  CISTERN_RETURN_IF_ERROR(client->Push(0, keys, values.data(), has_embedx.data()));
  return client->CommitPass();
}

}  // namespace

void AttackDescriptors(const Siege& siege) {
  const auto server = StartAlone(siege, "few-descriptors", kDescriptors, true);
  if (server == nullptr) return;
  const ProcessUse before = server->Use();
  for (int round = 0; round < (siege.is_long ? 10 : 2); ++round) {
    std::vector<Wire> open;
    for (int i = 0; i < 2000; ++i) {
      open.emplace_back(server->port());
      if (i % 2 == 0) open.back().Send(http2::Preface());
    }
    open.clear();
    siege.report->Tried("connections",
                        absl::StrCat("2,000 connections to a server of ", kDescriptors,
                                     " descriptors, round ", round),
                        AnswersHello(server->address(), kPatience), server->address(),
                        "Hello is not answered after they are closed");
  }
  siege.report->Tried(
      "connections", "descriptors are released",
      server->Use().descriptors < before.descriptors + 32, server->address(),
      absl::StrCat(server->Use().descriptors, " descriptors, ", before.descriptors, " before"));
  siege.report->Expect(server->StopCleanly(), "the server with few descriptors ends on SIGTERM");
}

void AttackThreads(const Siege& siege) {
  const auto server = StartAlone(siege, "digests", 0, false);
  if (server == nullptr) return;
  const absl::Status filled = FillTable(server->address(), siege.is_long ? 8000000 : 2000000);
  siege.report->Expect(filled.ok(), absl::StrCat("a table is filled: ", filled.ToString()));
  std::atomic<bool> over{false};
  std::vector<std::thread> callers;
  for (int i = 0; i < 40; ++i) {
    callers.emplace_back([&] {
      Stranger stranger(server->address());
      stranger.Look().IgnoreError();
      v1::StatsRequest request;
      *request.mutable_identity() = stranger.hello().identity();
      request.set_digest(true);
      while (!over) {
        if (!VerbOf("Stats").Call(stranger.control(), request).ok()) {
          absl::SleepFor(absl::Milliseconds(1));
        }
      }
    });
  }
  Stranger visitor(server->address());
  for (int i = 0; i < (siege.is_long ? 100 : 10); ++i) {
    const absl::Time start = absl::Now();
    const absl::Status answer = visitor.Look();
    const absl::Duration took = absl::Now() - start;
    siege.report->Tried("threads", "Hello during forty digests",
                        answer.ok() && took < kBusyHelloLimit, server->address(),
                        absl::StrCat(answer.ToString(), " after ", absl::FormatDuration(took)));
  }
  const absl::Time start = absl::Now();
  const bool clean = server->StopCleanly();
  siege.report->Tried("threads", "SIGTERM during forty digests",
                      clean && absl::Now() - start < absl::Seconds(15), server->address(),
                      absl::StrCat(clean ? "ended after " : "did not end cleanly in ",
                                   absl::FormatDuration(absl::Now() - start)));
  over = true;
  for (std::thread& caller : callers) caller.join();
}

}  // namespace cistern
