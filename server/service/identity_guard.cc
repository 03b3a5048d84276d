#include "server/service/identity_guard.h"

#include "common/base/hash.h"

namespace cistern::server {
namespace {

absl::Status Refuse(const std::string& message) {
  return absl::FailedPreconditionError(message);
}

}  // namespace

IdentityGuard::IdentityGuard(const std::string& cluster, const ShardMap& map)
    : cluster_(cluster), cluster_id_(HashBytes(cluster)), map_(map), shard_map_hash_(map.hash()) {}

v1::Identity IdentityGuard::Own(uint64_t schema_hash) const {
  v1::Identity identity;
  identity.set_cluster_id(cluster_id_);
  identity.set_schema_hash(schema_hash);
  identity.set_shard_map_hash(shard_map_hash_);
  identity.set_epoch(term_);
  return identity;
}

absl::Status IdentityGuard::CheckPlace(uint64_t cluster_id, uint64_t shard_map_hash) const {
  if (cluster_id != cluster_id_) {
    return WithOptions(
        Refuse(absl::StrCat(
            "cluster differs: this server belongs to '", cluster_,
            "', the caller to another; check the addresses and the name of the cluster")),
        {"servers", "cluster"});
  }
  if (shard_map_hash != shard_map_hash_) {
    return WithOptions(
        Refuse(absl::StrCat(
            "shard map differs: here ", map_.shard_num(), " shards are on ", map_.server_num(),
            map_.server_num() == 1 ? " server" : " servers",
            "; list all servers of one fleet, started with the same shard_num and server_num")),
        {"servers"});
  }
  return absl::OkStatus();
}

absl::Status IdentityGuard::LostState(const std::string& what) const {
  if (durable_) {
    return absl::AbortedError(
        absl::StrCat(what, ": it was restarted; claim a new term and resume from the last commit"));
  }
  return Refuse(absl::StrCat(what,
                             ": it was restarted and has lost its state; load a saved model or "
                             "train again"));
}

absl::Status IdentityGuard::CheckTerm(Term theirs) const {
  const Term mine = term_;
  if (theirs < mine) {
    return Refuse(absl::StrCat("term ", theirs, " is fenced: another run has since claimed term ",
                               mine, "; only the newest writer may continue"));
  }
  if (theirs > mine) {
    return LostState(absl::StrCat("this server is at term ", mine, " and the caller at ", theirs));
  }
  return absl::OkStatus();
}

absl::Status IdentityGuard::Check(const CallIdentity& theirs, uint64_t schema_hash) const {
  CISTERN_RETURN_IF_ERROR(CheckPlace(theirs.cluster_id, theirs.shard_map_hash));
  if (theirs.schema_hash == schema_hash) return CheckTerm(theirs.term);
  if (schema_hash == 0) {
    return WithKind(LostState("schema differs: this server has no tables"),
                    ErrorKind::kOtherSchema);
  }
  if (theirs.schema_hash == 0) {
    return WithKind(
        Refuse("schema differs: this server has tables, but had none when the caller connected; "
               "connect again"),
        ErrorKind::kOtherSchema);
  }
  return WithKind(
      Refuse("schema differs: this server holds the tables of another model; use that model's "
             "file, or start a fresh cluster"),
      ErrorKind::kOtherSchema);
}

absl::Status IdentityGuard::Claim(Term term) {
  const Term mine = term_, step = map_.server_num() == 1 ? 1 : kMaxClaimStep;
  if (term > mine && term - mine > step) {
    return Refuse(absl::StrCat("term ", term, " cannot be claimed: the newest is ", mine,
                               ", and the next is ", mine + 1));
  }
  return TakeGranted(term);
}

absl::Status IdentityGuard::TakeGranted(Term term) {
  Term mine = term_;
  do {
    if (term <= mine) {
      return Refuse(absl::StrCat("term ", term,
                                 " cannot be claimed: another run has already claimed term ", mine,
                                 "; claim the next one"));
    }
  } while (!term_.compare_exchange_weak(mine, term));
  return absl::OkStatus();
}

}  // namespace cistern::server
