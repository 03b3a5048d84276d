// Attacks on a fleet behind TLS during a training: connections without a certificate or with a
// wrong one, handshakes that are cut, never end or are not TLS, recorded connections that are sent
// again, roles that do not fit, the port where the workers meet, and the pages of figures. The
// tables must equal those of an undisturbed training.
#include <grpcpp/security/credentials.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/http/metrics_page.h"
#include "common/rpc/channel_security.h"
#include "test/siege/attacks.h"
#include "test/siege/handshake.h"
#include "test/siege/relay.h"
#include "test/siege/wire.h"
#include "test/support/certificates.h"

namespace cistern {
namespace {

constexpr char kCertificates[] = "certificates";
constexpr absl::Duration kSecureLimit = absl::Minutes(5);
constexpr uint64_t kUntilKilled = 1'000'000;  // epochs
constexpr int kAtOnce = 16;                   // connections

// What a connection shows and trusts, without the checks of a well-behaved client.
std::shared_ptr<const ChannelSecurity> Showing(const KeyedCertificate& own, const std::string& ca) {
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = ca;
  options.pem_cert_chain = own.cert;
  options.pem_private_key = own.key;
  auto security = std::make_shared<ChannelSecurity>();
  security->credentials = grpc::SslCredentials(options);
  return security;
}

RemoteOptions ShowingOptions(std::shared_ptr<const ChannelSecurity> security) {
  RemoteOptions options;
  options.call_timeout = options.long_call_timeout = absl::Seconds(20);
  options.security = std::move(security);
  return options;
}

// Two servers behind TLS that show figures, and two workers that train on them.
class SecureFleet {
 public:
  SecureFleet(const Siege& siege, const TestAuthority& authority, const std::string& name)
      : siege_(siege),
        name_(name),
        peers_port_(FreePort()),
        worker_(authority.Issue("worker", {Role::kWorker})) {
    const TlsFiles server = authority.Issue("server", {Role::kServer});
    for (uint32_t rank = 0; rank < 2; ++rank) {
      SiegeServer::Options options;
      options.programs = siege.programs;
      options.log = absl::StrCat(siege.folder, "/", name, "-server-", rank, ".log");
      options.rank = rank;
      options.server_num = 2;
      options.data_dir = absl::StrCat(siege.folder, "/", name, "-data");
      options.flags = {"--tls_ca=" + server.ca, "--tls_cert=" + server.cert,
                       "--tls_key=" + server.key, "--metrics_socket=" + metrics_socket(rank)};
      std::filesystem::create_directories(options.data_dir);
      absl::StatusOr<std::unique_ptr<SiegeServer>> started = SiegeServer::Start(options);
      if (!started.ok()) {
        status_ = started.status();
        return;
      }
      fleet_.servers.push_back(*std::move(started));
    }
  }

  const absl::Status& status() const { return status_; }
  SiegeFleet& fleet() { return fleet_; }
  SiegeServer& server(size_t rank) { return *fleet_.servers[rank]; }
  int peers_port() const { return peers_port_; }
  std::string metrics_socket(size_t rank) const {
    return absl::StrCat(siege_.folder, "/", name_, rank, ".sock");
  }
  std::string audit(size_t rank) const {
    return absl::StrCat(siege_.folder, "/", name_, "-data/audit-", rank, ".jsonl");
  }

  absl::Status Train(uint64_t epochs, bool resumes) {
    Training::Options options;
    options.programs = siege_.programs;
    options.folder = siege_.folder;
    options.name = name_;
    options.servers = fleet_.addresses();
    options.epochs = epochs;
    options.workers = 2;
    options.peers = absl::StrCat("127.0.0.1:", peers_port_);
    options.flags = {"--no-save-model", "--tls-ca=" + worker_.ca, "--tls-cert=" + worker_.cert,
                     "--tls-key=" + worker_.key};
    if (resumes) options.flags.push_back("--resume");
    CISTERN_ASSIGN_OR_RETURN(training_, Training::Start(options));
    return absl::OkStatus();
  }
  Training& training() { return *training_; }
  absl::StatusOr<FleetDigests> Digests() const {
    RemoteOptions options;
    options.tls = worker_;
    return DigestsOf(fleet_.addresses(), options);
  }

 private:
  const Siege& siege_;
  const std::string name_;
  const int peers_port_;
  const TlsFiles worker_;
  absl::Status status_;
  SiegeFleet fleet_;
  std::unique_ptr<Training> training_;
};

class Attacker {
 public:
  Attacker(const Siege& siege, const TestAuthority& authority, SecureFleet& fleet)
      : siege_(siege),
        authority_(authority),
        // Expires while the other attacks run.
        expired_(authority.Sign(Role::kAdmin, "cistern", absl::Seconds(1))),
        expired_at_(absl::Now() + absl::Seconds(3)),
        fleet_(fleet) {}

  void Run() {
    BreakHandshakes();
    ForgeCertificates();
    ExceedRoles();
    Replay();
    KnockAtWorkers();
    FloodFigures();
  }

 private:
  void Tried(const std::string& name, bool repelled, absl::string_view request,
             absl::string_view answer) {
    siege_.report->Tried(kCertificates, name, repelled, request, answer);
  }
  // Whether both servers answer a caller who belongs.
  bool Answers() {
    for (size_t rank = 0; rank < 2; ++rank) {
      Stranger reader(
          fleet_.server(rank).address(),
          ShowingOptions(Showing(authority_.Sign(Role::kReader), authority_.pair().cert)));
      if (!reader.Look().ok()) return false;
    }
    return true;
  }

  // Every connection that is not a whole handshake, several of each at once.
  void BreakHandshakes() {
    const std::string hello = RecordedHandshake();
    std::vector<std::pair<std::string, std::string>> beginnings = {
        {"silence", ""},
        {"HTTP/2 in plain text", http2::Preface() + http2::Call(1, kHello, "")},
        {"a record of 16 KiB that does not come", std::string("\x16\x03\x01\x40\x00\x01", 6)},
        {"a hello that says it is 16 MB", std::string("\x16\x03\x01\x40\x00\x01\xff\xff\xff", 9)},
        {"an alert", std::string("\x15\x03\x03\x00\x02\x02\x28", 7)},
        {"application data", std::string("\x17\x03\x03\x00\x05hello", 10)},
        {"SSL 2", std::string("\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10", 11)},
        {"a client hello, twice", hello + hello},
        {"a client hello, and 1 MB of zeros", hello + std::string(1 << 20, '\0')}};
    for (size_t bytes = 1; bytes < hello.size(); bytes += siege_.is_long ? 1 : 61) {
      beginnings.emplace_back(absl::StrCat(bytes, " bytes of a client hello"),
                              hello.substr(0, bytes));
    }
    std::mt19937_64 random(7);
    for (int seed = 0; seed < (siege_.is_long ? 300 : 20); ++seed) {
      std::string changed = hello;
      for (int i = 0; i < 3 && !changed.empty(); ++i) {
        changed[random() % changed.size()] = static_cast<char>(random());
      }
      beginnings.emplace_back(absl::StrCat("a changed client hello, seed ", seed), changed);
    }
    for (const auto& [name, bytes] : beginnings) {
      std::vector<Wire> open;
      for (int i = 0; i < kAtOnce; ++i) {
        open.emplace_back(fleet_.server(i % 2).port());
        open.back().Send(bytes, absl::Milliseconds(20));
      }
      Tried(name, Answers(), absl::StrCat(kAtOnce, " connections"),
            "a reader with a certificate gets no answer");
    }
  }

  // The first bytes of a client with a certificate: its hello.
  std::string RecordedHandshake() {
    Relay relay(fleet_.server(0).port());
    Stranger reader(relay.address(), ShowingOptions(Showing(authority_.Sign(Role::kReader),
                                                            authority_.pair().cert)));
    Tried("a relay that only listens", reader.Look().ok(), "", "its caller is refused");
    const std::string sent = relay.sent();
    const size_t record =
        sent.size() < 5 ? 0
                        : 5 + (static_cast<uint8_t>(sent[3]) << 8 | static_cast<uint8_t>(sent[4]));
    Tried("the first record of a connection is a hello", record > 100 && record <= sent.size(), "",
          absl::StrCat(sent.size(), " bytes"));
    return sent.substr(0, record);
  }

  void ForgeCertificates() {
    const KeyedCertificate own = authority_.Sign(Role::kAdmin);
    const KeyedCertificate self_signed = MakeAuthority("admin", absl::Hours(1)).value();
    absl::SleepFor(expired_at_ - absl::Now());
    const std::vector<std::pair<std::string, KeyedCertificate>> forged = {
        {"no certificate", {}},
        {"a certificate of a foreign authority", foreign_.Sign(Role::kAdmin)},
        {"a certificate that signs itself", self_signed},
        {"the authority's certificate with another key", {authority_.pair().cert, self_signed.key}},
        {"an expired certificate", expired_},
        {"another's certificate with an own key", {own.cert, self_signed.key}}};
    for (size_t rank = 0; rank < 2; ++rank) {
      const int port = fleet_.server(rank).port();
      for (const auto& [name, shown] : forged) {
        for (const char* version : {"1.2", "1.3"}) Refused(name, port, {shown, version, false});
      }
      Refused("TLS 1.0", port, {own, "1.0", false});
      Refused("TLS 1.1", port, {own, "1.1", false});
      // A second handshake in a connection, which TLS 1.3 does not have.
      Refused("renegotiation", port, {own, "1.2", true});
      // These handshakes fail for their certificates only.
      for (const char* version : {"1.2", "1.3"}) {
        const absl::Status answer = TryHandshake(port, {own, version, false});
        siege_.report->Expect(answer.ok(), "a certificate of the authority is accepted with TLS " +
                                               std::string(version) + ": " + answer.ToString());
      }
    }
    // By gRPC's own client.
    Stranger stranger(fleet_.server(0).address(),
                      ShowingOptions(Showing(foreign_.Sign(Role::kAdmin), authority_.pair().cert)));
    const absl::Status answer = stranger.Look();
    Tried("a call with a foreign certificate", absl::IsUnavailable(answer), "Hello",
          answer.ToString());
  }

  void Refused(const std::string& name, int port, const HandshakeOptions& options) {
    const absl::Status answer = TryHandshake(port, options);
    Tried(name, !answer.ok(), absl::StrCat("TLS ", options.version), answer.ToString());
  }

  // Each role, and one of another cluster, calls everything that it must not.
  void ExceedRoles() {
    const auto refused = [](const absl::Status& answer) {
      return absl::IsPermissionDenied(answer);
    };
    struct Held {
      std::string name;
      KeyedCertificate certificate;
      bool (*may)(Role needed);
    };
    const std::vector<Held> all = {
        {"server", authority_.Sign(Role::kServer), [](Role) { return false; }},
        {"reader", authority_.Sign(Role::kReader),
         [](Role needed) { return needed == Role::kReader; }},
        {"worker", authority_.Sign(Role::kWorker),
         [](Role needed) { return needed != Role::kAdmin; }},
        {"admin elsewhere", authority_.Sign(Role::kAdmin, "other"), [](Role) { return false; }}};
    Stranger known(fleet_.server(0).address(),
                   ShowingOptions(Showing(authority_.Sign(Role::kReader), authority_.pair().cert)));
    known.Look().IgnoreError();
    for (const Held& held : all) {
      Stranger caller(fleet_.server(0).address(),
                      ShowingOptions(Showing(held.certificate, authority_.pair().cert)));
      for (const Verb& verb : Verbs()) {
        if (held.may(verb.role)) continue;
        const absl::Status answer = verb.Call(caller.control(), *known.RequestOf(verb));
        Tried(absl::StrCat(held.name, " calls ", verb.name), refused(answer), "",
              answer.ToString());
      }
      for (const FrameKind kind : {FrameKind::kPull, FrameKind::kPush, FrameKind::kPullDense,
                                   FrameKind::kPushDense, FrameKind::kScan}) {
        const bool pushes = kind == FrameKind::kPush || kind == FrameKind::kPushDense;
        if (held.may(pushes ? Role::kWorker : Role::kReader)) continue;
        FrameHeader header = known.HeaderOf(kind);
        const std::string body = known.BodyOf(&header);
        Frame frame = StartFrame(header);
        frame.AppendBytes(body.data(), body.size());
        const absl::Status answer = CallData(caller.data(), kind, std::move(frame));
        Tried(absl::StrCat(held.name, " sends ", FrameKindName(kind)), refused(answer), "",
              answer.ToString());
      }
    }
    const std::string audit = ReadBytes(fleet_.audit(0));
    for (const char* method : {"Clear", "Load", "ClaimEpoch"}) {
      const std::string named = absl::StrCat("\"method\":\"", method, "\"");
      Tried(absl::StrCat("a refused ", method, " without a line in the audit log"),
            absl::StrContains(audit, named) && absl::StrContains(audit, "PERMISSION_DENIED"), "",
            "no such line");
    }
  }

  // A whole connection, recorded and sent again: no call of it must be answered a second time. Its
  // call is one that is refused, and therefore has a line in the audit log.
  void Replay() {
    const uint64_t before = RefusedClears();
    Relay relay(fleet_.server(0).port());
    {
      Stranger reader(relay.address(), ShowingOptions(Showing(authority_.Sign(Role::kReader),
                                                              authority_.pair().cert)));
      VerbOf("Clear").Call(reader.control(), v1::ClearRequest()).IgnoreError();
    }
    const std::string sent = relay.sent();
    siege_.report->Expect(RefusedClears() == before + 1,
                          "a refused Clear through a relay is a line of the audit log");
    for (int i = 0; i < 16; ++i) {
      Wire wire(fleet_.server(0).port());
      wire.Send(sent, absl::Milliseconds(100));
      wire.CloseSending();
      wire.Receive(absl::Milliseconds(50));
      Tried("a recorded connection is sent again", RefusedClears() == before + 1,
            absl::StrCat(sent.size(), " bytes"), "its call was handled");
    }
  }

  // Lines of the audit log for refused Clears.
  uint64_t RefusedClears() const {
    uint64_t lines = 0;
    std::ifstream file(fleet_.audit(0));
    for (std::string line; std::getline(file, line);) {
      lines += absl::StrContains(line, "\"method\":\"Clear\"");
    }
    return lines;
  }

  // The port where the workers met, if one listens there still, and handshakes with it.
  void KnockAtWorkers() {
    for (const std::string& bytes : {std::string(), std::string("GET / HTTP/1.1\r\n\r\n"),
                                     std::string("CISTPEE2") + std::string(20, '\0'),
                                     std::string("\x16\x03\x01\x40\x00\x01", 6)}) {
      std::vector<Wire> open;
      for (int i = 0; i < 32; ++i) {
        open.emplace_back(fleet_.peers_port());
        open.back().Send(bytes, absl::Milliseconds(20));
      }
      Tried(absl::StrCat(bytes.size(), " bytes to the workers"), fleet_.training().Running(), "",
            "the training has ended");
    }
    Refused("a foreign worker", fleet_.peers_port(), {foreign_.Sign(Role::kWorker), "1.3", false});
  }

  // More readers of the figures than there are places, all of whom are slow.
  void FloodFigures() {
    for (int round = 0; round < 4; ++round) {
      std::vector<Wire> slow;
      for (int i = 0; i < 100; ++i) {
        slow.push_back(Wire::ToPath(fleet_.metrics_socket(round % 2)));
        slow.back().Send(round < 2 ? "GET /metr" : "GET /" + std::string(40'000, 'x'));
      }
      const absl::StatusOr<std::string> page =
          ReadMetricsPage(fleet_.metrics_socket(round % 2), kPatience);
      Tried("100 slow readers of figures", page.ok() && absl::StrContains(*page, "cistern_server"),
            "", page.status().ToString());
    }
  }

  const Siege& siege_;
  const TestAuthority& authority_;
  const TestAuthority foreign_{"foreign"};
  const KeyedCertificate expired_;
  const absl::Time expired_at_;
  SecureFleet& fleet_;
};

// What the holder of a reader's certificate can make the servers hold.
void AttackAsReader(const Siege& siege, const TestAuthority& authority, SecureFleet& fleet) {
  const KeyedCertificate reader = authority.Sign(Role::kReader);
  std::vector<std::unique_ptr<Relay>> relays;
  Siege behind = siege;
  behind.fleet = &fleet.fleet();
  behind.where = " behind TLS";
  for (const auto& server : behind.fleet->servers) {
    relays.push_back(std::make_unique<Relay>(server->port(), reader));
    behind.doors.push_back(relays.back()->port());
  }
  AttackWire(behind);
  AttackCalls(behind);
}

// The digests after `epochs`, which the fleet trains, or resumes.
absl::StatusOr<FleetDigests> DigestsAfter(SecureFleet& fleet, uint64_t epochs, bool resumes) {
  CISTERN_RETURN_IF_ERROR(fleet.status());
  CISTERN_RETURN_IF_ERROR(fleet.Train(epochs, resumes));
  CISTERN_RETURN_IF_ERROR(fleet.training().Finish(kSecureLimit));
  return fleet.Digests();
}

// Attacks a fleet that trains until the attacks are over. Its workers are then killed, and others
// resume the run and end it. epochs: that the run has then.
absl::StatusOr<FleetDigests> BesiegedSecure(const Siege& siege, const TestAuthority& authority,
                                            uint64_t* epochs) {
  SecureFleet fleet(siege, authority, "secure-besieged");
  CISTERN_RETURN_IF_ERROR(fleet.status());
  CISTERN_RETURN_IF_ERROR(fleet.Train(kUntilKilled, /*resumes=*/false));
  CISTERN_RETURN_IF_ERROR(fleet.training().AwaitEpochs(2, kSecureLimit));
  std::vector<ProcessUse> before;
  for (size_t rank = 0; rank < 2; ++rank) before.push_back(fleet.server(rank).Use());
  Attacker(siege, authority, fleet).Run();
  AttackAsReader(siege, authority, fleet);
  const absl::Status trains =
      fleet.training().AwaitEpochs(fleet.training().epochs() + 1, kSecureLimit);
  siege.report->Expect(trains.ok(), "the training continues: " + trains.ToString());
  for (size_t rank = 0; rank < 2; ++rank) {
    CheckUse(*siege.report, absl::StrCat("server ", rank, " behind TLS"), fleet.server(rank),
             before[rank]);
  }
  // Counted once it has ended; a commit or two may not be in its log.
  fleet.training().End();
  *epochs = fleet.training().epochs() + 4;
  absl::StatusOr<FleetDigests> digests = DigestsAfter(fleet, *epochs, /*resumes=*/true);
  for (size_t rank = 0; rank < 2; ++rank) {
    siege.report->Expect(fleet.server(rank).StopCleanly(),
                         "a besieged server behind TLS ends on SIGTERM with exit code 0");
  }
  return digests;
}

}  // namespace

void AttackWithCertificates(const Siege& siege) {
  const TestAuthority authority;
  uint64_t epochs = 0;
  const absl::StatusOr<FleetDigests> found = BesiegedSecure(siege, authority, &epochs);
  siege.report->Tried(kCertificates, "a training behind TLS among strangers", found.ok(), "",
                      found.status().ToString());
  if (!found.ok()) return;
  SecureFleet undisturbed(siege, authority, "secure-undisturbed");
  const absl::StatusOr<FleetDigests> expected =
      DigestsAfter(undisturbed, epochs, /*resumes=*/false);
  siege.report->Expect(expected.ok(),
                       absl::StrCat("a training behind TLS: ", expected.status().ToString()));
  if (!expected.ok()) return;
  siege.report->Tried(
      kCertificates,
      absl::StrCat("the tables equal those of an undisturbed run, ", epochs, " epochs"),
      *found == *expected, DigestText(*expected), DigestText(*found));
}

}  // namespace cistern
