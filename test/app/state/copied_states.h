// Servers, each with a state folder of its own, and one copy of their commits.
#pragma once

#include <string>
#include <vector>

#include "app/state/push_state.h"
#include "server/checkpoint/verify_state.h"
#include "test/app/state/saved_states.h"

namespace cistern::app {

class CopiedStates : public SavedStates {
 protected:
  RestartableFleet LocalFleet(uint32_t server_num, const std::string& name = "fleet") const {
    server::ServerOptions options;
    options.data_dir = folder_ / name;
    options.shard_num = 8;
    options.local_state = true;
    options.compact_min_bytes = 1;
    return RestartableFleet(server_num, options);
  }
  std::string Copy() const { return folder_ / "copy"; }
  // kDataLoss unless the newest commit of the copy, if there is one, is complete. Returns its
  // number.
  absl::StatusOr<uint64_t> WholeCommit() const {
    LocalFileSystem files;
    const auto state = server::StateFolder::OpenToRead(files, server::StateFolderOf(Copy()));
    if (absl::IsNotFound(state.status())) return 0;
    CISTERN_RETURN_IF_ERROR(state.status());
    CISTERN_ASSIGN_OR_RETURN(const std::vector<uint64_t> commits, (*state)->Commits());
    if (commits.empty()) return 0;
    ThreadPool pool(2);
    server::StateVerifier verifier(
        **state, pool, [](uint64_t) {}, [] {});
    const server::CommitCheck check = verifier.Check(commits.back());
    return check.faults.empty() ? absl::StatusOr<uint64_t>(commits.back()) : check.faults[0];
  }
  absl::StatusOr<PushedState> PushOf(const RestartableFleet& fleet, size_t rank,
                                     const JobCalls& calls = {}) const {
    return PushState({.state = fleet.data_dir(rank), .to = Copy()}, calls);
  }

  LocalFileSystem files_;
};

}  // namespace cistern::app
