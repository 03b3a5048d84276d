// The groups of attacks. Each function tries all of its group against running servers, notes every
// one in the report, and returns; what servers have to be like afterwards is checked by the caller
// (siege_main.cc).
#pragma once

#include <string>
#include <vector>

#include "test/siege/report.h"
#include "test/siege/siege_fleet.h"
#include "test/siege/stranger.h"
#include "test/siege/training.h"

namespace cistern {

struct Siege {
  std::string programs;  // folder of the programs
  std::string folder;    // for files of this siege
  bool is_long = false;
  SiegeReport* report = nullptr;
  SiegeFleet* fleet = nullptr;
  // An address by rank.
  std::string address(size_t rank) const { return fleet->servers[rank]->address(); }
};

// Calls `verb` and notes the outcome: got through if it was granted and MayBeGranted says no, or
// if the answer is none that the server means to give. Returns the answer's text, "OK" if granted.
std::string TryVerb(const Siege& siege, const std::string& group, const std::string& name,
                    Stranger& stranger, const Verb& verb, const google::protobuf::Message& request);

// Every field of every control message (control_attacks.cc).
void AttackControl(const Siege& siege);
// Every field of every frame, and bodies that are not what the header says (frame_attacks.cc).
void AttackFrames(const Siege& siege);
// Bytes that are no calls: TCP and HTTP/2 (wire_attacks.cc, call_attacks.cc).
void AttackWire(const Siege& siege);
void AttackCalls(const Siege& siege);
// More connections than a server has descriptors for (descriptor_attacks.cc).
void AttackDescriptors(const Siege& siege);
// Verbs in orders that make no sense, from several clients at once (order_attacks.cc).
void AttackOrders(const Siege& siege);
// The same, and tables that are too large, on servers that nobody trains on (idle_attacks.cc).
void AttackIdleServers(const Siege& siege);
// What has worked before, by name (named_attacks.cc).
void AttackByName(const Siege& siege);
// Digests that fill a server's threads, then Hello and SIGTERM (descriptor_attacks.cc).
void AttackThreads(const Siege& siege);
// The port where the workers of a run meet (rendezvous_attacks.cc).
void AttackRendezvous(const Siege& siege);
// A writer that is wrong: manifests that lie, ranks and clocks that cannot be (writer_attacks.cc).
void AttackAsWriter(const Siege& siege);
// A claim with take_over, which ends a training: what is allowed as long as nobody has to show who
// he is. The training has to go on from its last commit (named_attacks.cc). Returns who has taken
// over: as long as they are connected they are writers at work.
std::vector<std::unique_ptr<Stranger>> TakeOver(const Siege& siege);

}  // namespace cistern
