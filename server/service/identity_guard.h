// This server's identity; refuses every call that is meant for another server.
#pragma once

#include <atomic>
#include <string>

#include "common/base/status.h"
#include "common/base/types.h"
#include "common/value/shard_map.h"
#include "proto/control_plane.pb.h"

namespace cistern::server {

// The four identities that every call carries, as plain numbers.
struct CallIdentity {
  uint64_t cluster_id = 0, schema_hash = 0, shard_map_hash = 0;
  Term term = 0;
};
inline CallIdentity IdentityOf(const v1::Identity& identity) {
  return {identity.cluster_id(), identity.schema_hash(), identity.shard_map_hash(),
          identity.epoch()};
}

// Checks the identities of DESIGN section 4. A call that differs in any of them is refused as a
// whole with kFailedPrecondition; the message names the difference, its likely cause and the fix.
// On a durable server, a call that only comes too early after a restart is kAborted: the caller
// claims a new term and resumes from the last commit.
//
// Threads: any thread. A caller that no claim may overtake holds NodeState::tables_mutex.
class IdentityGuard {
 public:
  // The most numbers that a claim may skip: every claim that was interrupted before it reached this
  // server uses up one.
  static constexpr Term kMaxClaimStep = Term{1} << 16;

  IdentityGuard(const std::string& cluster, const ShardMap& map);

  const std::string& cluster() const { return cluster_; }
  Term term() const { return term_; }
  // The server's own identity; schema_hash is the store's.
  v1::Identity Own(uint64_t schema_hash) const;

  // Checks cluster and shard map, all that can be checked before tables exist.
  absl::Status CheckPlace(uint64_t cluster_id, uint64_t shard_map_hash) const;
  absl::Status CheckPlace(const v1::Identity& theirs) const {
    return CheckPlace(theirs.cluster_id(), theirs.shard_map_hash());
  }
  // Checks the term: an older one is fenced; a newer one means that this server has lost its state.
  absl::Status CheckTerm(Term theirs) const;
  // Checks all four identities.
  absl::Status Check(const CallIdentity& theirs, uint64_t schema_hash) const;

  // Declares that commits of this server survive its process.
  void set_durable() { durable_ = true; }

  // Takes `term` if it is above every term seen by at most kMaxClaimStep, so that no claim
  // uses up the numbers; else kFailedPrecondition, which names both. A fleet of one server knows
  // all claims, so it accepts only the next number.
  absl::Status Claim(Term term);
  // Takes a term that the state folder has granted; kMaxClaimStep does not apply.
  absl::Status TakeGranted(Term term);

 private:
  absl::Status LostState(const std::string& what) const;

  const std::string cluster_;
  const uint64_t cluster_id_;
  const ShardMap map_;
  const uint64_t shard_map_hash_;
  bool durable_ = false;  // set before the first call
  std::atomic<Term> term_{0};
};

}  // namespace cistern::server
