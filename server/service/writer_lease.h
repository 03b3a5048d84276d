// Decides who may write: the writer with the newest claim, identified by its secret.
//
// A writer is at work while its connection is open (HoldTerm). Another claim is then refused unless
// it takes over: a training started by mistake on a busy fleet ends itself and not the other one.
//
// A caller opens that connection before it claims, so that a writer that is killed never counts as
// at work, at whatever point of its claim that was. A writer that keeps no connection, as within
// one process, gives way to any claim.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/base/status.h"

namespace cistern::server {

// A caller's name for itself, reduced to one line of plain text.
std::string PlainWriterName(absl::string_view name);

// Threads: any thread. Its lock is the innermost: no other lock is taken under it.
class WriterLease {
 public:
  // The most connections of callers that are not the writer, so that no stranger uses up those that
  // a server can keep.
  static constexpr int kMaxClaimants = 32;

  // OK if no other writer is at work; else kFailedPrecondition, which names it and says what to do.
  // It does not wait for the connection of a writer that has just ended: callers retry.
  // own: secrets that the caller has used for claims; 0 means none.
  absl::Status CheckFree(absl::Span<const uint64_t> own) const;
  // The writer with the newest claim; empty: none, or unknown after a restart.
  std::string writer() const;
  // The writer at work, unless it is the caller; empty if there is none.
  std::string WriterAtWork(absl::Span<const uint64_t> own) const;

  // Registers a new claim: from now on only calls with its secret write.
  void Take(uint64_t secret, absl::string_view writer);
  // Restores the newest claim from disk after a restart (no secret: the claim cannot be read).
  void Restore(std::optional<uint64_t> secret, absl::string_view writer);

  // kAborted if the server does not know the secret (claim again); kFailedPrecondition if it
  // differs from `secret`.
  absl::Status Check(uint64_t secret) const;
  // The secret that calls must show; kAborted as in Check.
  absl::StatusOr<uint64_t> secret() const;

  // A connection of the caller with `secret` opens or ends. claims: the caller is about to claim;
  // if not, and if it is not the writer, kFailedPrecondition. kResourceExhausted: too many callers
  // are about to claim.
  absl::Status BeginHold(uint64_t secret, bool claims);
  void EndHold(uint64_t secret);

 private:
  bool IsAtWork(absl::Span<const uint64_t> own) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  bool known_ ABSL_GUARDED_BY(mutex_) = true;                         // whether secret_ is known
  uint64_t secret_ ABSL_GUARDED_BY(mutex_) = 0;                       // 0 before the first claim
  std::string writer_ ABSL_GUARDED_BY(mutex_);                        // empty: no claim yet
  absl::flat_hash_map<uint64_t, int> holds_ ABSL_GUARDED_BY(mutex_);  // connections by secret
};

}  // namespace cistern::server
