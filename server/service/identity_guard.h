// Who this server is, and the refusal of every call that means another one.
#pragma once

#include <atomic>
#include <string>

#include "common/base/status.h"
#include "common/base/types.h"
#include "common/value/shard_map.h"
#include "proto/control_plane.pb.h"

namespace cistern {

// The four identities that every call carries, as plain numbers.
struct CallIdentity {
  uint64_t cluster_id = 0, schema_hash = 0, shard_map_hash = 0;
  Epoch epoch = 0;
};
inline CallIdentity IdentityOf(const v1::Identity& identity) {
  return {identity.cluster_id(), identity.schema_hash(), identity.shard_map_hash(),
          identity.epoch()};
}

// Checks the identities of DESIGN section 4. A call that differs in any of them is refused, whole,
// with kFailedPrecondition: which one differs, why that may be, and what to do. Where the server's
// commits are durable, a call that only comes too early after its restart is kAborted: the caller
// claims a new epoch and goes on from the last commit.
//
// Threads: any thread; who must not be overtaken by a claim holds NodeState::tables_mutex.
class IdentityGuard {
 public:
  // Claims that were cut off before they reached this server: each leaves out a number.
  static constexpr Epoch kMaxClaimStep = Epoch{1} << 16;

  IdentityGuard(const std::string& cluster, const ShardMap& map);

  const std::string& cluster() const { return cluster_; }
  Epoch epoch() const { return epoch_; }
  // The server's own identity; schema_hash is the store's.
  v1::Identity Own(uint64_t schema_hash) const;

  // Cluster and shard map: all that can be asked before there are tables.
  absl::Status CheckPlace(uint64_t cluster_id, uint64_t shard_map_hash) const;
  absl::Status CheckPlace(const v1::Identity& theirs) const {
    return CheckPlace(theirs.cluster_id(), theirs.shard_map_hash());
  }
  // The epoch: an older one is fenced, a newer one means that this server has lost its state.
  absl::Status CheckEpoch(Epoch theirs) const;
  // All four.
  absl::Status Check(const CallIdentity& theirs, uint64_t schema_hash) const;

  // Commits of this server survive its process.
  void set_durable() { durable_ = true; }

  // Takes `epoch` if it is above every epoch seen, and by no more than kMaxClaimStep, so that no
  // claim uses the numbers up; else kFailedPrecondition that names both. One server knows of every
  // claim of its own: there the next number is the only one.
  absl::Status Claim(Epoch epoch);
  // Where the state folder says which epochs were granted, it is asked, and not kMaxClaimStep.
  absl::Status TakeGranted(Epoch epoch);

 private:
  absl::Status LostState(const std::string& what) const;

  const std::string cluster_;
  const uint64_t cluster_id_;
  const ShardMap map_;
  const uint64_t shard_map_hash_;
  bool durable_ = false;  // set before the first call
  std::atomic<Epoch> epoch_{0};
};

}  // namespace cistern
