// The pass protocol in the small: what servers, coordinators and the disk are in it, and which
// steps each state allows. Every state that can be reached is visited by protocol_search.h.
//
// Two servers, two passes of one push a server, three coordinators, each of which claims one epoch.
// A call has two outcomes: it acts and is answered, or it acts and the answer is lost (the
// coordinator may ask again). One message is taken down, of any kind, and delivered at any later
// time: a duplicate, or a late original. Servers crash as often as Rules says. Coordinators need no
// crash: nothing makes one go on, and nothing ever stops an old one (a zombie). A coordinator that
// is refused is over; one that claims again is, here, another coordinator.
//
// Left out: tables of more than one row, several workers, bases, passes that are not durable,
// changes in place, more than two commits (so garbage is what no manifest names).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cistern {

inline constexpr int kServers = 2, kPasses = 2, kCoordinators = 3;

// How the protocol works, and ways in which it could be weaker.
struct Rules {
  int coordinators = kCoordinators, passes = kPasses, crashes = 2;
  bool late_message = true;

  bool sequence_numbers = true;    // a push that comes twice counts once
  bool prepare_needs_seal = true;  // a server that nobody sealed has nothing to prepare
  bool exclusive_manifest = true;  // a manifest is created, and never written over
  bool keep_prepared = true;       // a dropped pass leaves its file until a manifest is there
  bool epoch_fence = true;         // older epochs are refused
  bool check_previous = true;      // a manifest names the one before it
  // Server 0 names manifests, one after the other, having checked them. Without it the coordinator
  // creates the name itself, as the protocol of the literature does.
  bool server_decides = true;
  // An operator may, once and with all servers stopped, go back by a commit.
  bool rollback = false;
};

// What was staged, written or applied: 0 nothing, kEmpty, the chunk of coordinator k once (1 + k),
// a chunk twice, chunks of two coordinators.
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

// One file of a (commit, server) is named by the epoch and an attempt: 2 * epoch + attempt; 0 none.
struct ServerState {
  uint32_t up : 1, epoch : 2, committed : 2, open : 2, staged : 3, sealed : 1, prepared : 1,
      prepared_file : 3, tables : 6;
  Content table(uint32_t pass) const { return tables >> (3 * (pass - 1)) & 7; }
};
struct CoordinatorState {
  uint32_t phase : 4, epoch : 2, base : 2, previous : 2, done : 2, file0 : 3, file1 : 3;
};
// owner: the coordinator that made it, 0 none. first: whoever made the first of this commit.
struct ManifestState {
  uint16_t owner : 2, file0 : 3, file1 : 3, previous : 2, first : 2, acknowledged : 2;
};
// kind: the phase whose call it is. claimed epochs and passes are the coordinator's of that time.
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

// A step, for people: "coordinator 2: Push to server 1, answer lost".
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
// Every step that `state` allows, and where it leads.
void AddSteps(const Rules& rules, const State& state, std::vector<std::pair<Step, State>>* steps);
// The invariant of the protocol that `state` breaks; empty if it holds all of them.
std::string BrokenInvariant(const State& state);

}  // namespace cistern
