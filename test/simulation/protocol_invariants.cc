// The invariants of the protocol model, and readable descriptions of steps.
#include "absl/strings/str_cat.h"
#include "test/simulation/protocol_machine.h"

namespace cistern {

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
                          ", but belongs to coordinator ", manifest.owner);
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
      return absl::StrCat(who, ": ", call, " is delayed");
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
      return "the operator rolls back a commit";
  }
  return "";
}

}  // namespace cistern
