// The groups of attacks. Each function makes all attacks of its group against running servers,
// records each in the report, and returns. The caller (siege_main.cc) then checks the servers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "test/siege/report.h"
#include "test/siege/siege_fleet.h"
#include "test/siege/stranger.h"
#include "test/siege/training.h"

namespace cistern {

// The limit of other clients' calls during an attack.
inline constexpr absl::Duration kPatience = absl::Seconds(30);
inline constexpr char kHello[] = "/cistern.v1.ControlPlane/Hello";
inline constexpr uint64_t k63 = uint64_t{1} << 63;

// Methods of the server that is attacked, as gRPC's paths.
struct SiegeMethods {
  std::string hello = kHello;                            // without a message
  std::string stats = "/cistern.v1.ControlPlane/Stats";  // the same
  std::string small = "/cistern.v1.ControlPlane/Save";   // with a small message
  std::string large = "/cistern.v1.DataPlane/Push";      // with one of many MB
};

struct Siege {
  std::string programs;  // folder of the programs
  std::string folder;    // for files of this siege
  bool is_long = false;
  SiegeReport* report = nullptr;
  SiegeFleet* fleet = nullptr;
  // Where attackers connect, by rank; empty: to the servers themselves.
  std::vector<int> doors;
  // What the names of groups end with: " behind TLS", or nothing.
  std::string where;
  SiegeMethods methods;
  // How a server, by rank, is asked whether it answers others; null: by Hello.
  std::function<bool(size_t rank)> ask;

  int port(size_t rank) const { return doors.empty() ? fleet->servers[rank]->port() : doors[rank]; }
  std::string address(size_t rank) const { return absl::StrCat("127.0.0.1:", port(rank)); }
  // Whether a server answers other clients within kPatience.
  bool Answers(size_t rank) const {
    return ask != nullptr ? ask(rank) : AnswersHello(address(rank), kPatience);
  }
};

// Calls `verb` and records the outcome. The attack got through if the call was granted although
// MayBeGranted is false, or if the answer is not IsMeant. Returns the answer's text or "OK".
std::string TryVerb(const Siege& siege, const std::string& group, const std::string& name,
                    Stranger& stranger, const Verb& verb, const google::protobuf::Message& request);

// Every field of every control message (control_attacks.cc).
void AttackControl(const Siege& siege);
// Every field of every frame, and bodies that do not match their header (frame_attacks.cc).
void AttackFrames(const Siege& siege);
// Bytes below the level of calls: TCP and HTTP/2 (wire_attacks.cc, call_attacks.cc).
void AttackWire(const Siege& siege);
void AttackCalls(const Siege& siege);
// More connections than the server has descriptors (descriptor_attacks.cc).
void AttackDescriptors(const Siege& siege);
// Verbs in senseless orders, from several clients at once (order_attacks.cc).
void AttackOrders(const Siege& siege);
// The same, and oversized tables, on servers without a training (idle_attacks.cc).
void AttackIdleServers(const Siege& siege);
// Attacks that once worked, by name (named_attacks.cc).
void AttackByName(const Siege& siege);
// Digest calls that occupy a server's threads, then Hello and SIGTERM (descriptor_attacks.cc).
void AttackThreads(const Siege& siege);
// The rendezvous port of a run's workers (rendezvous_attacks.cc).
void AttackRendezvous(const Siege& siege);
// A fleet behind TLS: certificates, handshakes and roles that are wrong (certificate_attacks.cc).
void AttackWithCertificates(const Siege& siege);
// `cistern serve` behind TLS: strangers without a certificate of theirs (serving_attacks.cc).
void AttackServing(const Siege& siege);
// A misbehaving writer: false manifests, impossible ranks and clocks (writer_attacks.cc).
void AttackAsWriter(const Siege& siege);
// A claim with take_over, which ends a training. It is allowed, because callers are not
// authenticated; the training must be able to resume from its last commit (named_attacks.cc).
// Returns the strangers that took over: while connected, they count as active writers.
std::vector<std::unique_ptr<Stranger>> TakeOver(const Siege& siege);

}  // namespace cistern
