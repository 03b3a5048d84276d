// Attacks on `cistern serve` behind TLS, by strangers without a certificate: its memory must stay
// below its bound, and it must answer others meanwhile.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "test/siege/attacks.h"
#include "test/siege/relay.h"
#include "test/siege/wire.h"
#include "test/support/certificates.h"

namespace cistern {
namespace {

constexpr char kService[] = "/inference.GRPCInferenceService/";
// Of the reply of ServerLive: a message of two bytes, `live: true`.
const absl::string_view kLive("\0\0\0\0\2\x08\x01", 7);

// Whether a new client's ServerLive is answered.
bool IsLive(int port) {
  const absl::Time end = absl::Now() + kPatience;
  do {
    Wire wire(port);
    wire.Send(http2::Preface() + http2::Call(1, absl::StrCat(kService, "ServerLive"), ""));
    std::string answer;
    for (const absl::Time soon = absl::Now() + absl::Seconds(2); absl::Now() < soon;) {
      answer += wire.Receive(absl::Milliseconds(10));
      if (absl::StrContains(answer, kLive)) return true;
    }
  } while (absl::Now() < end);
  return false;
}

}  // namespace

void AttackServing(const Siege& siege) {
  const TestAuthority authority;
  const TlsFiles own = authority.Issue("serving", {Role::kServer});
  SiegeFleet fleet;
  absl::StatusOr<std::unique_ptr<SiegeServer>> served = SiegeServer::Serve(
      siege.programs, siege.folder, {"--tls-cert=" + own.cert, "--tls-key=" + own.key});
  siege.report->Expect(served.ok(), absl::StrCat("serving starts: ", served.status().ToString()));
  if (!served.ok()) return;
  fleet.servers.push_back(*std::move(served));
  SiegeServer& server = *fleet.servers[0];
  const Relay relay(server.port(), KeyedCertificate());
  Siege behind = siege;
  behind.fleet = &fleet;
  behind.doors = {relay.port()};
  behind.where = " to serving behind TLS";
  behind.methods = {absl::StrCat(kService, "ServerLive"), absl::StrCat(kService, "ServerMetadata"),
                    absl::StrCat(kService, "ModelMetadata"), absl::StrCat(kService, "ModelInfer")};
  behind.ask = [&](size_t) { return IsLive(relay.port()); };
  siege.report->Expect(IsLive(relay.port()), "serving behind TLS answers");
  const ProcessUse before = server.Use();
  AttackWire(behind);
  AttackCalls(behind);
  CheckUse(*siege.report, "serving behind TLS", server, before);
  siege.report->Expect(server.StopCleanly(), "serving ends on SIGTERM with exit code 0");
}

}  // namespace cistern
