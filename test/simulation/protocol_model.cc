#include "test/simulation/protocol_model.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace cistern {
namespace {

constexpr uint32_t kAttempts = 2;

Content ChunkOf(uint32_t coordinator) {
  return 1 + coordinator;
}

Content WithChunk(Content staged, uint32_t coordinator) {
  if (staged <= kEmpty) return ChunkOf(coordinator);
  return staged == ChunkOf(coordinator) ? kTwice : kMixed;
}

int FileShift(uint32_t commit, uint32_t file) {
  return static_cast<int>(3 * ((commit - 1) * 3 * kAttempts + (file - kAttempts)));
}

Content FileAt(const State& state, uint32_t server, uint32_t commit, uint32_t file) {
  return file == 0 ? 0 : state.files[server] >> FileShift(commit, file) & 7;
}

void SetFile(State& state, uint32_t server, uint32_t commit, uint32_t file, Content content) {
  const int shift = FileShift(commit, file);
  state.files[server] &= ~(uint64_t{7} << shift);
  state.files[server] |= uint64_t{content} << shift;
}

uint32_t FileOf(const ManifestState& manifest, uint32_t server) {
  return server == 0 ? manifest.file0 : manifest.file1;
}

uint32_t Newest(const State& state) {
  uint32_t commit = 0;
  while (commit < kPasses && state.manifests[commit].owner != 0) ++commit;
  return commit;
}

enum class Answer { kOk, kRefused, kNone };

// The state after a step, and what the actors do in it.
class Machine {
 public:
  Machine(const Rules& rules, State& state) : rules_(rules), s_(state) {}

  // The message that coordinator `k` may send to `server` now; kind kIdle if none.
  Message Next(uint32_t k, uint32_t server) const {
    const CoordinatorState& c = s_.coordinators[k - 1];
    Message message{};
    const bool waits = c.phase == kIdle || c.phase == kLook || c.phase >= kDone ||
                       (c.done >> server & 1) != 0 ||
                       (c.phase == kDecide && (server != 0 || !rules_.server_decides));
    if (waits) return message;
    message.kind = c.phase;
    message.coordinator = k & 3;
    message.server = server & 1;
    message.epoch = c.epoch;
    message.pass = (c.base + 1) & 3;
    if (c.phase == kDecide) {
      message.file0 = c.file0;
      message.file1 = c.file1;
      message.previous = c.previous;
    }
    return message;
  }

  // A server acts on a message. reply: what it says beside OK (a committed pass, a file).
  // kNone: nobody is there, or the answer is not yet known.
  Answer Deliver(const Message& m, bool answers, uint32_t* reply) {
    ServerState& server = s_.servers[m.server];
    if (server.up == 0) return Answer::kNone;
    if (m.kind == kClaim) return Claim(m, reply);
    if (server.epoch != m.epoch && rules_.epoch_fence) return Answer::kRefused;
    switch (m.kind) {
      case kBegin:
        if (m.pass != server.committed + 1) return Answer::kRefused;
        server.open = m.pass;
        return Answer::kOk;
      case kPush:
        return Push(m, server);
      case kSeal:
        if (server.open != m.pass) return Answer::kRefused;
        if (rules_.sequence_numbers && server.staged == 0) return Answer::kRefused;
        server.sealed = 1;
        return Answer::kOk;
      case kPrepare:
        return Prepare(m, server, reply);
      case kDecide:
        return Decide(m, answers);
      default:
        return Commit(m, server);
    }
  }

  // A coordinator hears the answer to its message of (its phase, server).
  void Hear(uint32_t k, uint32_t server, Answer answer, uint32_t reply) {
    CoordinatorState& c = s_.coordinators[k - 1];
    if (answer == Answer::kNone) return;
    if (answer == Answer::kRefused) return Enter(c, kFailed);
    if (c.phase == kClaim || c.phase == kPrepare) {
      if (server == 0) c.file0 = reply & 7;
      if (server == 1) c.file1 = reply & 7;
    }
    c.done |= 1u << server;
    if (c.phase != kDecide && c.done != 3) return;
    if (c.phase == kDecide) c.previous = k & 3;  // its own manifest is the newest it knows
    if (c.phase != kCommit) return Enter(c, c.phase + 1);
    ++c.base;
    s_.manifests[c.base - 1].acknowledged = k & 3;
    Enter(c, c.base == static_cast<uint32_t>(rules_.passes) ? kDone : kBegin);
  }

  // After a claim: the passes must agree, and server 0 has the manifest to go on from.
  void LookUp(uint32_t k) {
    CoordinatorState& c = s_.coordinators[k - 1];
    if (c.file0 != c.file1 || c.file0 != s_.servers[0].committed) return Enter(c, kFailed);
    c.base = c.file0 & 3;
    c.previous = c.base == 0 ? 0 : s_.manifests[c.base - 1].owner;
    Enter(c, c.base == static_cast<uint32_t>(rules_.passes) ? kDone : kBegin);
  }

  // The second half of a decision, once it was checked. Between the two server 0 lets no claim in.
  Answer Publish() {
    const Message m = s_.deciding;
    s_.deciding = Message{};
    return CreateManifest(m) ? Answer::kOk : Answer::kRefused;
  }

  // Without server 0: the coordinator looks at the newest manifest and creates its own name.
  Answer DecideAlone(uint32_t k) {
    const CoordinatorState& c = s_.coordinators[k - 1];
    Message m{};
    m.coordinator = k & 3;
    m.pass = (c.base + 1) & 3;
    m.file0 = c.file0;
    m.file1 = c.file1;
    m.previous = c.previous;
    if (IsDecided(m)) return Answer::kOk;
    if (rules_.check_previous && !Follows(m)) return Answer::kRefused;
    if (!HasFiles(m)) return Answer::kRefused;
    return CreateManifest(m) ? Answer::kOk : Answer::kRefused;
  }

  void Crash(uint32_t server) {
    s_.servers[server] = ServerState{};
    if (server == 0) s_.deciding = Message{};
    ++s_.crashes;
  }
  void Restart(uint32_t server) {
    s_.servers[server].up = 1;
    s_.servers[server].epoch = s_.newest_epoch;
    Recover(server);
  }
  // Memory becomes what the newest manifest says.
  void Recover(uint32_t server) {
    ServerState& at = s_.servers[server];
    DropPass(at);
    at.committed = Newest(s_) & 3;
    at.tables = 0;
    for (uint32_t p = 1; p <= at.committed; ++p) {
      at.tables |= FileAt(s_, server, p, FileOf(s_.manifests[p - 1], server)) << (3 * (p - 1));
    }
    CollectGarbage(server);
  }
  void RollBack() {
    s_.manifests[Newest(s_) - 1] = ManifestState{};
    s_.rolled_back = 1;
  }

 private:
  static void Enter(CoordinatorState& c, uint32_t phase) {
    c.phase = phase & 15;
    c.done = 0;
    if (phase != kDecide && phase != kCommit && phase != kLook) c.file0 = c.file1 = 0;
    if (phase >= kDone) c.base = c.previous = c.epoch = 0;
  }
  static void DropPass(ServerState& server) {
    server.open = server.staged = server.sealed = server.prepared = server.prepared_file = 0;
  }

  Answer Claim(const Message& m, uint32_t* reply) {
    ServerState& server = s_.servers[m.server];
    if (m.server == 0 && s_.deciding.kind != kIdle) return Answer::kNone;  // waits
    if (m.epoch <= server.epoch || (m.server == 0 && m.epoch <= s_.newest_epoch)) {
      return Answer::kRefused;
    }
    server.epoch = m.epoch;
    if (m.server == 0) s_.newest_epoch = m.epoch;
    if (!rules_.keep_prepared && server.prepared_file != 0) {
      SetFile(s_, m.server, server.committed + 1, server.prepared_file, 0);
    }
    DropPass(server);
    if (server.committed < Newest(s_)) Recover(m.server);
    *reply = server.committed;
    return Answer::kOk;
  }

  Answer Push(const Message& m, ServerState& server) const {
    if (server.open != m.pass) return Answer::kRefused;
    if (rules_.sequence_numbers && server.staged != 0) {
      return server.staged == ChunkOf(m.coordinator) ? Answer::kOk : Answer::kRefused;
    }
    if (server.prepared != 0 || server.sealed != 0) return Answer::kRefused;
    server.staged = WithChunk(server.staged, m.coordinator) & 7;
    return Answer::kOk;
  }

  Answer Prepare(const Message& m, ServerState& server, uint32_t* reply) {
    if (server.open != m.pass) return Answer::kRefused;
    if (server.prepared == 0) {
      const bool seal_needed = rules_.prepare_needs_seal || server.staged != 0;
      if (seal_needed && server.sealed == 0) return Answer::kRefused;
      uint32_t file = kAttempts * m.epoch;
      if (FileAt(s_, m.server, m.pass, file) != 0) ++file;
      if (FileAt(s_, m.server, m.pass, file) != 0) return Answer::kRefused;
      SetFile(s_, m.server, m.pass, file, server.staged == 0 ? kEmpty : server.staged);
      server.prepared = 1;
      server.prepared_file = file & 7;
    }
    *reply = server.prepared_file;
    return Answer::kOk;
  }

  bool IsDecided(const Message& m) const {
    const ManifestState& there = s_.manifests[m.pass - 1];
    return Newest(s_) == m.pass && there.owner == m.coordinator && there.file0 == m.file0 &&
           there.file1 == m.file1 && there.previous == m.previous;
  }
  bool Follows(const Message& m) const {
    const uint32_t newest = Newest(s_);
    if (rules_.exclusive_manifest && m.pass != newest + 1) return false;
    return m.previous == (m.pass == 1 ? 0 : s_.manifests[m.pass - 2].owner);
  }

  bool HasFiles(const Message& m) const {
    return FileAt(s_, 0, m.pass, m.file0) != 0 && FileAt(s_, 1, m.pass, m.file1) != 0;
  }

  // The first half: everything that can be looked at.
  Answer Decide(const Message& m, bool answers) {
    if (s_.deciding.kind != kIdle) return Answer::kNone;  // one at a time
    if (IsDecided(m)) return Answer::kOk;
    if (m.pass != Newest(s_) + 1) return Answer::kRefused;
    if (rules_.check_previous && !Follows(m)) return Answer::kRefused;
    if (!HasFiles(m)) return Answer::kRefused;
    s_.deciding = m;
    s_.answers_decision = answers;
    return Answer::kNone;
  }

  bool CreateManifest(const Message& m) {
    ManifestState& manifest = s_.manifests[m.pass - 1];
    if (rules_.exclusive_manifest && manifest.owner != 0) return false;
    manifest.owner = m.coordinator;
    manifest.file0 = m.file0;
    manifest.file1 = m.file1;
    manifest.previous = m.previous;
    if (manifest.first == 0) manifest.first = m.coordinator;
    return true;
  }

  Answer Commit(const Message& m, ServerState& server) {
    if (server.committed >= m.pass) return Answer::kOk;
    const ManifestState& manifest = s_.manifests[m.pass - 1];
    if (manifest.owner == 0) return Answer::kRefused;
    const bool mine = server.committed + 1 == m.pass && server.open == m.pass &&
                      server.prepared != 0 && FileOf(manifest, m.server) == server.prepared_file;
    if (!mine) {
      Recover(m.server);
      return Answer::kOk;
    }
    server.tables |= (server.staged == 0 ? kEmpty : server.staged) << (3 * (m.pass - 1)) & 63;
    server.committed = m.pass;
    DropPass(server);
    CollectGarbage(m.server);
    return Answer::kOk;
  }

  // The server's own files up to its commit that no manifest names.
  void CollectGarbage(uint32_t server) {
    for (uint32_t commit = 1; commit <= s_.servers[server].committed; ++commit) {
      const uint32_t named = FileOf(s_.manifests[commit - 1], server);
      for (uint32_t file = kAttempts; file < 4 * kAttempts; ++file) {
        if (file != named) SetFile(s_, server, commit, file, 0);
      }
    }
  }

  const Rules& rules_;
  State& s_;
};

// Collects the states that steps lead to.
class Steps {
 public:
  Steps(const Rules& rules, const State& state, std::vector<std::pair<Step, State>>* out)
      : rules_(rules), state_(state), out_(out) {}

  void OfCoordinator(uint32_t k) {
    const CoordinatorState& c = state_.coordinators[k - 1];
    if (c.phase == kIdle) Start(k);
    if (c.phase == kLook && state_.servers[0].up != 0) {
      To({Step::kLookUp, Byte(k)}, [&](Machine& machine, State&) { machine.LookUp(k); });
    }
    if (c.phase == kDecide && !rules_.server_decides) {
      To({Step::kCall, Byte(k), 0, kDecide},
         [&](Machine& machine, State&) { machine.Hear(k, 0, machine.DecideAlone(k), 0); });
    }
    for (uint32_t server = 0; server < kServers; ++server) Calls(k, server);
  }

  void OfServer(uint32_t s) {
    const ServerState& server = state_.servers[s];
    const Step step{Step::kCrash, 0, Byte(s)};
    if (server.up == 0) {
      To({Step::kRestart, 0, Byte(s)}, [&](Machine& machine, State&) { machine.Restart(s); });
      return;
    }
    if (static_cast<int>(state_.crashes) < rules_.crashes) {
      To(step, [&](Machine& machine, State&) { machine.Crash(s); });
    }
    if (server.open == 0 && server.committed < Newest(state_)) {
      To({Step::kCatchUp, 0, Byte(s)}, [&](Machine& machine, State&) { machine.Recover(s); });
    }
  }

  void OfOthers() {
    if (state_.late.kind != kIdle && state_.servers[state_.late.server].up != 0) {
      const Message m = state_.late;
      To({Step::kDeliver, Byte(m.coordinator), Byte(m.server), Byte(m.kind)},
         [&](Machine& machine, State& next) {
           uint32_t reply = 0;
           next.late = Message{};
           machine.Deliver(m, /*answers=*/false, &reply);
         });
    }
    if (state_.deciding.kind != kIdle) {
      const uint32_t k = state_.deciding.coordinator;
      To({Step::kPublishLost, Byte(k)}, [&](Machine& machine, State&) { machine.Publish(); });
      if (state_.answers_decision != 0 && state_.coordinators[k - 1].phase == kDecide) {
        To({Step::kPublish, Byte(k)},
           [&](Machine& machine, State&) { machine.Hear(k, 0, machine.Publish(), 0); });
      }
    }
    if (rules_.rollback && state_.rolled_back == 0 && state_.servers[0].up == 0 &&
        state_.servers[1].up == 0 && Newest(state_) > 0) {
      To({Step::kRollBack}, [&](Machine& machine, State&) { machine.RollBack(); });
    }
  }

 private:
  static uint8_t Byte(uint32_t number) { return static_cast<uint8_t>(number); }

  template <class Act>
  void To(const Step& step, const Act& act) {
    State next = state_;
    Machine machine(rules_, next);
    act(machine, next);
    if (next.deciding.kind == kIdle) next.answers_decision = 0;
    if (rules_.epoch_fence && rules_.server_decides) ForgetFenced(next);
    if (std::memcmp(&next, &state_, sizeof(State)) != 0) out_->emplace_back(step, next);
  }

  // Epochs on disk and in memory only grow, so what every server refuses is refused for ever: those
  // coordinators are over and those messages are lost, whatever they were about to do.
  static void ForgetFenced(State& state) {
    const auto fenced = [&state](uint32_t epoch, uint32_t server) {
      const ServerState& at = state.servers[server];
      return epoch < state.newest_epoch && (at.up == 0 || at.epoch > epoch);
    };
    for (CoordinatorState& c : state.coordinators) {
      if (c.phase == kIdle || c.phase >= kDone || !fenced(c.epoch, 0) || !fenced(c.epoch, 1)) {
        continue;
      }
      c = CoordinatorState{};
      c.phase = kFailed;
    }
    if (state.late.kind != kIdle && fenced(state.late.epoch, state.late.server)) {
      state.late = Message{};
    }
  }

  // In turn, when both servers answer Hello: an epoch above all that they have seen.
  void Start(uint32_t k) {
    if (static_cast<int>(k) > rules_.coordinators ||
        (k > 1 && state_.coordinators[k - 2].phase == kIdle) || state_.servers[0].up == 0 ||
        state_.servers[1].up == 0) {
      return;
    }
    const uint32_t epoch = std::max(state_.servers[0].epoch, state_.servers[1].epoch) + 1u;
    if (epoch > 3) return;
    To({Step::kStart, Byte(k)}, [&](Machine&, State& next) {
      next.coordinators[k - 1].epoch = epoch & 3;
      next.coordinators[k - 1].phase = kClaim;
    });
  }

  void Calls(uint32_t k, uint32_t server) {
    const Message m = Machine(rules_, const_cast<State&>(state_)).Next(k, server);
    if (m.kind == kIdle) return;
    for (const bool lost : {false, true}) {
      To({lost ? Step::kCallLost : Step::kCall, Byte(k), Byte(server), Byte(m.kind)},
         [&](Machine& machine, State&) {
           uint32_t reply = 0;
           const Answer answer = machine.Deliver(m, !lost, &reply);
           if (!lost) machine.Hear(k, server, answer, reply);
         });
    }
    if (!rules_.late_message || state_.late_used != 0) return;
    To({Step::kTakeDown, Byte(k), Byte(server), Byte(m.kind)}, [&](Machine&, State& next) {
      next.late = m;
      next.late_used = 1;
    });
  }

  const Rules& rules_;
  const State& state_;
  std::vector<std::pair<Step, State>>* const out_;
};

}  // namespace

State FirstState() {
  State state;
  std::memset(static_cast<void*>(&state), 0, sizeof(state));
  for (ServerState& server : state.servers) server.up = 1;
  return state;
}

void AddSteps(const Rules& rules, const State& state, std::vector<std::pair<Step, State>>* steps) {
  Steps add(rules, state, steps);
  for (uint32_t k = 1; k <= kCoordinators; ++k) add.OfCoordinator(k);
  for (uint32_t server = 0; server < kServers; ++server) add.OfServer(server);
  add.OfOthers();
}

std::string BrokenInvariant(const State& state) {
  for (uint32_t p = 1; p <= kPasses; ++p) {
    const ManifestState& manifest = state.manifests[p - 1];
    if (manifest.owner == 0) {
      if (manifest.acknowledged != 0) return absl::StrCat("5: acknowledged pass ", p, " is gone");
      continue;
    }
    if (manifest.owner != manifest.first) {
      return absl::StrCat("1: commit ", p, " was decided by coordinator ", manifest.first,
                          " and by coordinator ", manifest.owner);
    }
    if (manifest.acknowledged != 0 && manifest.acknowledged != manifest.owner) {
      return absl::StrCat("5: pass ", p, " was acknowledged to coordinator ", manifest.acknowledged,
                          " and is that of ", manifest.owner);
    }
    if (manifest.previous != (p == 1 ? 0 : state.manifests[p - 2].owner)) {
      return absl::StrCat("1: manifest ", p, " does not follow manifest ", p - 1);
    }
    for (uint32_t s = 0; s < kServers; ++s) {
      const Content content = FileAt(state, s, p, FileOf(manifest, s));
      if (content == 0) {
        return absl::StrCat("2: manifest ", p, " names a file of server ", s, " that is gone");
      }
      if (content == kTwice) return absl::StrCat("3: a push of pass ", p, " is in it twice");
      if (content == kEmpty) return absl::StrCat("3: a push of pass ", p, " is not in it");
      if (content != ChunkOf(manifest.owner)) {
        return absl::StrCat("3: a push of another attempt is in pass ", p);
      }
      const ServerState& server = state.servers[s];
      if (server.committed >= p && server.table(p) != content) {
        return absl::StrCat("4: server ", s, " has another pass ", p, " than manifest ", p);
      }
    }
  }
  for (uint32_t s = 0; s < kServers; ++s) {
    if (state.servers[s].committed > Newest(state)) {
      return absl::StrCat("4: server ", s, " is ahead of the manifests");
    }
  }
  return "";
}

std::string Describe(const Step& step) {
  static constexpr const char* kVerbs[] = {"",     "Claim",   "",       "Begin", "Push",
                                           "Seal", "Prepare", "Decide", "Commit"};
  const std::string who = absl::StrCat("coordinator ", step.who);
  const std::string call = absl::StrCat(kVerbs[step.verb % 9], " to server ", step.server);
  const std::string server = absl::StrCat("server ", step.server);
  switch (step.kind) {
    case Step::kStart:
      return who + " starts";
    case Step::kCall:
      return absl::StrCat(who, ": ", call);
    case Step::kCallLost:
      return absl::StrCat(who, ": ", call, ", the answer is lost");
    case Step::kTakeDown:
      return absl::StrCat(who, ": ", call, " is under way, for long");
    case Step::kDeliver:
      return absl::StrCat("the late ", call, " of ", who, " arrives");
    case Step::kPublish:
      return absl::StrCat("server 0 names the manifest of ", who);
    case Step::kPublishLost:
      return absl::StrCat("server 0 names the manifest of ", who, ", the answer is lost");
    case Step::kLookUp:
      return who + " reads the newest manifest";
    case Step::kCrash:
      return server + " crashes";
    case Step::kRestart:
      return server + " restarts";
    case Step::kCatchUp:
      return server + " catches up";
    case Step::kRollBack:
      return "the operator goes back by a commit";
  }
  return "";
}

}  // namespace cistern
