// The actions of servers, coordinators and an operator in the protocol model (protocol_model.h);
// each is one step on a state.
#pragma once

#include <cstdint>

#include "test/simulation/protocol_model.h"

namespace cistern {

inline constexpr uint32_t kAttempts = 2;

inline Content ChunkOf(uint32_t coordinator) {
  return 1 + coordinator;
}

inline Content WithChunk(Content staged, uint32_t coordinator) {
  if (staged <= kEmpty) return ChunkOf(coordinator);
  return staged == ChunkOf(coordinator) ? kTwice : kMixed;
}

inline int FileShift(uint32_t commit, uint32_t file) {
  return static_cast<int>(3 * ((commit - 1) * 3 * kAttempts + (file - kAttempts)));
}

inline Content FileAt(const State& state, uint32_t server, uint32_t commit, uint32_t file) {
  return file == 0 ? 0 : state.files[server] >> FileShift(commit, file) & 7;
}

inline void SetFile(State& state, uint32_t server, uint32_t commit, uint32_t file,
                    Content content) {
  const int shift = FileShift(commit, file);
  state.files[server] &= ~(uint64_t{7} << shift);
  state.files[server] |= uint64_t{content} << shift;
}

inline uint32_t FileOf(const ManifestState& manifest, uint32_t server) {
  return server == 0 ? manifest.file0 : manifest.file1;
}

inline uint32_t Newest(const State& state) {
  uint32_t commit = 0;
  while (commit < kPasses && state.manifests[commit].owner != 0) ++commit;
  return commit;
}

enum class Answer { kOk, kRefused, kNone };

// A state and the actors' steps on it: the protocol itself.
//
// Threads: one.
class Machine {
 public:
  Machine(const Rules& rules, State& state) : rules_(rules), s_(state) {}

  // The message that coordinator `k` can send to `server` now; kind kIdle if none.
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

  // A server acts on a message. reply: the payload of an OK (a committed pass, a file).
  // kNone: the server is down, or the answer is not known yet.
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

  // A coordinator receives the answer to its message of (its phase, server).
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
    if (c.phase == kDecide) c.previous = k & 3;  // the newest manifest it knows is its own
    if (c.phase != kCommit) return Enter(c, c.phase + 1);
    ++c.base;
    s_.manifests[c.base - 1].acknowledged = k & 3;
    Enter(c, c.base == static_cast<uint32_t>(rules_.passes) ? kDone : kBegin);
  }

  // After a claim: the passes must agree, and server 0 has the manifest to continue from.
  void LookUp(uint32_t k) {
    CoordinatorState& c = s_.coordinators[k - 1];
    if (c.file0 != c.file1 || c.file0 != s_.servers[0].committed) return Enter(c, kFailed);
    c.base = c.file0 & 3;
    c.previous = c.base == 0 ? 0 : s_.manifests[c.base - 1].owner;
    Enter(c, c.base == static_cast<uint32_t>(rules_.passes) ? kDone : kBegin);
  }

  // The second half of a decision, after its check. Between the halves server 0 accepts no claim.
  Answer Publish() {
    const Message m = s_.deciding;
    s_.deciding = Message{};
    return CreateManifest(m) ? Answer::kOk : Answer::kRefused;
  }

  // Without server 0: the coordinator reads the newest manifest and creates its own name.
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
  // Restores memory from the newest manifest.
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

  // The first half of a decision: all checks.
  Answer Decide(const Message& m, bool answers) {
    if (s_.deciding.kind != kIdle) return Answer::kNone;  // one decision at a time
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

  // Removes the server's own files up to its commit that no manifest names.
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

}  // namespace cistern
