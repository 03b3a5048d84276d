#include "app/fleet/fleet_status.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_join.h"
#include "common/base/hash_text.h"

namespace cistern::app {
namespace {

using Fact = std::function<std::string(const ServerState&)>;

// Adds "NAME: A on ADDRESS, ADDRESS; B on ADDRESS" to `differences` unless all servers agree.
void Compare(const char* name, const std::vector<ServerState>& servers, const Fact& fact,
             std::vector<std::string>* differences) {
  std::vector<std::pair<std::string, std::vector<std::string>>> found;  // value -> addresses
  for (const ServerState& server : servers) {
    if (!server.reached.ok()) continue;
    const std::string value = fact(server);
    auto at = std::find_if(found.begin(), found.end(),
                           [&](const auto& entry) { return entry.first == value; });
    if (at == found.end()) at = found.insert(at, {value, {}});
    at->second.push_back(server.address);
  }
  if (found.size() < 2) return;
  std::vector<std::string> words;
  for (const auto& [value, addresses] : found) {
    words.push_back(absl::StrCat(value, " on ", absl::StrJoin(addresses, ", ")));
  }
  differences->push_back(absl::StrCat(name, ": ", absl::StrJoin(words, "; ")));
}

// The pass of a server once a commit in progress reaches it. Servers commit one after another, so
// some may still have the pass open that others have already committed.
uint64_t SettledPass(const ServerState& server, uint64_t newest) {
  const v1::StatsReply& stats = server.stats;
  return stats.open_pass() == newest && stats.committed_pass() + 1 == newest
             ? newest
             : stats.committed_pass();
}

void CompareRanks(const std::vector<ServerState>& servers, std::vector<std::string>* differences) {
  for (size_t i = 0; i < servers.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (!servers[i].reached.ok() || !servers[j].reached.ok()) continue;
      if (servers[i].stats.rank() != servers[j].stats.rank()) continue;
      differences->push_back(absl::StrCat("rank: both ", servers[j].address, " and ",
                                          servers[i].address, " are server ",
                                          servers[i].stats.rank()));
    }
  }
}

}  // namespace

std::vector<std::string> DifferencesOf(const std::vector<ServerState>& servers) {
  std::vector<std::string> differences;
  uint64_t newest = 0;
  for (const ServerState& server : servers) {
    newest = std::max(newest, server.stats.committed_pass());
  }
  const auto compare = [&](const char* name, const Fact& fact) {
    Compare(name, servers, fact, &differences);
  };
  compare("cluster",
          [](const ServerState& s) { return absl::StrCat("'", s.hello.cluster(), "'"); });
  compare("servers of the fleet",
          [](const ServerState& s) { return absl::StrCat(s.hello.server_num()); });
  compare("shards", [](const ServerState& s) { return absl::StrCat(s.hello.shard_num()); });
  CompareRanks(servers, &differences);
  compare("durable", [](const ServerState& s) { return s.hello.durable() ? "yes" : "no"; });
  compare("tables", [](const ServerState& s) {
    const uint64_t schema = s.hello.identity().schema_hash();
    return schema == 0 ? "none" : absl::StrCat("schema ", HashText(schema));
  });
  const size_t before = differences.size();
  compare("pass", [newest](const ServerState& s) { return absl::StrCat(SettledPass(s, newest)); });
  // Commits follow passes. If only the commits differ, the servers recovered different ones.
  const bool settled = std::all_of(servers.begin(), servers.end(), [newest](const auto& server) {
    return !server.reached.ok() || server.stats.committed_pass() == newest;
  });
  if (settled && differences.size() == before) {
    compare("commit", [](const ServerState& s) { return absl::StrCat(s.stats.commit()); });
  }
  // A server whose folder was restored from a copy has not seen the newest claims. The next
  // writer's term is above those of all servers.
  const bool local = std::all_of(servers.begin(), servers.end(), [](const ServerState& server) {
    return !server.reached.ok() || server.hello.local_state();
  });
  if (local && differences.empty()) return differences;
  compare("epoch", [](const ServerState& s) { return absl::StrCat(s.hello.identity().epoch()); });
  return differences;
}

}  // namespace cistern::app
