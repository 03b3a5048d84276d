// A small model of the pass protocol: the states of servers, coordinators and the disk, and the
// steps that each state allows. protocol_search.h visits every reachable state.
//
// The model has two servers, two passes with one push per server, and three coordinators, each of
// which claims one term. A call has two outcomes: it acts and is answered, or it acts and the
// answer is lost (the coordinator may retry). One message of any kind is copied and delivered at
// any later time, as a duplicate or a late original. Servers crash up to Rules::crashes times.
// Coordinators need no crashes: none is forced to continue, and nothing stops an old one (a
// zombie). A refused coordinator has ended; a coordinator that claims again is modelled as another
// coordinator.
//
// Not modelled: tables with several rows, several workers, bases, passes that are not durable,
// changes in place, more than two commits (hence garbage means files that no manifest names).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cistern {

inline constexpr int kServers = 2, kPasses = 2, kCoordinators = 3;

// The rules of the protocol, which tests can weaken.
struct Rules {
  int coordinators = kCoordinators, passes = kPasses, crashes = 2;
  bool late_message = true;

  bool sequence_numbers = true;    // a repeated push counts once
  bool prepare_needs_seal = true;  // an unsealed server refuses to prepare
  bool exclusive_manifest = true;  // a manifest is created exclusively, never overwritten
  bool keep_prepared = true;       // the file of a dropped pass stays until a manifest exists
  bool epoch_fence = true;         // older terms are refused
  bool check_previous = true;      // a manifest names its predecessor
  // Server 0 checks manifests and creates their names, one at a time. If false, the coordinator
  // creates the name itself, as in the literature.
  bool server_decides = true;
  // An operator may roll back one commit, once and with all servers stopped.
  bool rollback = false;
};

// Staged, written or applied content: 0 nothing, kEmpty, the chunk of coordinator k once (1 + k),
// a chunk twice, or chunks of two coordinators.
using Content = uint32_t;
inline constexpr Content kEmpty = 1, kTwice = 5, kMixed = 6;

enum Phase : uint32_t {
  kIdle,
  kClaim,
  kLook,
  kBegin,
  kPush,
  kSeal,
  kPrepare,
  kDecide,
  kCommit,
  kDone,
  kFailed
};

// The file of a (commit, server) is named by term and attempt: 2 * epoch + attempt; 0 none.
struct ServerState {
  uint32_t up : 1, epoch : 2, committed : 2, open : 2, staged : 3, sealed : 1, prepared : 1,
      prepared_file : 3, tables : 6;
  Content table(uint32_t pass) const { return tables >> (3 * (pass - 1)) & 7; }
};
struct CoordinatorState {
  uint32_t phase : 4, epoch : 2, base : 2, previous : 2, done : 2, file0 : 3, file1 : 3;
};
// owner: the coordinator that made the manifest, 0 none. first: the maker of this commit's first
// manifest.
struct ManifestState {
  uint16_t owner : 2, file0 : 3, file1 : 3, previous : 2, first : 2, acknowledged : 2;
};
// kind: the phase of the call. Terms and passes are those of the coordinator when it sent the call.
struct Message {
  uint32_t kind : 4, coordinator : 2, server : 1, epoch : 2, pass : 2, file0 : 3, file1 : 3,
      previous : 2;
};

struct State {
  ServerState servers[kServers];
  CoordinatorState coordinators[kCoordinators];
  ManifestState manifests[kPasses];
  Message late, deciding;  // kind kIdle: none
  uint64_t files[kServers];
  uint32_t newest_epoch : 2, crashes : 3, late_used : 1, rolled_back : 1, answers_decision : 1,
      unused : 24;
};

// A step in readable form: "coordinator 2: Push to server 1, the answer is lost".
struct Step {
  enum Kind : uint8_t {
    kStart,
    kCall,
    kCallLost,
    kTakeDown,
    kDeliver,
    kPublish,
    kPublishLost,
    kLookUp,
    kCrash,
    kRestart,
    kCatchUp,
    kRollBack
  };
  Kind kind = kStart;
  uint8_t who = 0, server = 0, verb = 0;
};
std::string Describe(const Step& step);

State FirstState();
// Appends every step that `state` allows, with the state that it leads to.
void AddSteps(const Rules& rules, const State& state, std::vector<std::pair<Step, State>>* steps);
// The protocol invariant that `state` violates; empty if none.
std::string BrokenInvariant(const State& state);

}  // namespace cistern
