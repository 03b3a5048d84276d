#include "server/checkpoint/repair_terms.h"

#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace cistern::server {
namespace {

// Every server that has a lock file or takes part in the newest commit.
absl::StatusOr<std::set<uint32_t>> ServersOf(const StateFolder& state) {
  std::set<uint32_t> servers = {0};
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> names, state.files().List(state.path()));
  for (absl::string_view name : names) {
    uint32_t server = 0;
    if (absl::ConsumePrefix(&name, "lock-") && absl::SimpleAtoi(name, &server)) {
      servers.insert(server);
    }
  }
  CISTERN_ASSIGN_OR_RETURN(const std::optional<ParsedManifest> newest, state.NewestManifest());
  const uint32_t server_num = newest.has_value() ? newest->manifest.server_num() : 0;
  for (uint32_t server = 0; server < server_num; ++server) servers.insert(server);
  return servers;
}

}  // namespace

absl::StatusOr<RepairedTerms> RepairTerms(FileSystem& files, const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(const auto looked_at, StateFolder::OpenToRead(files, path));
  CISTERN_ASSIGN_OR_RETURN(const std::set<uint32_t> servers, ServersOf(*looked_at));
  std::vector<std::unique_ptr<StateFolder>> locked;
  for (const uint32_t server : servers) {
    CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<StateFolder> folder,
                             StateFolder::Open(files, path, server));
    locked.push_back(std::move(folder));
  }
  RepairedTerms repaired;
  CISTERN_ASSIGN_OR_RETURN(repaired.removed, locked.front()->RepairTerms());
  CISTERN_ASSIGN_OR_RETURN(repaired.newest, locked.front()->NewestTerm());
  return repaired;
}

}  // namespace cistern::server
