// Decides who may write: the writer with the newest claim, identified by its secret.
//
// A writer is at work while its connection is open (HoldTerm) or, if it keeps none, until it has
// made no call for a while. Another claim is then refused unless it takes over: a training started
// by mistake on a busy fleet ends itself and not the other one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/status.h"

namespace cistern::server {

// A caller's name for itself, reduced to one line of plain text.
std::string PlainWriterName(absl::string_view name);

// Threads: any thread. Its lock is the innermost: no other lock is taken under it.
class WriterLease {
 public:
  // silence: how long after its last call a writer without a connection counts as at work. Zero:
  // never, so any caller may claim at any time.
  explicit WriterLease(absl::Duration silence) : silence_(silence) {}

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
  // Restores the newest claim from disk after a restart (no secret: the claim cannot be read). Its
  // writer counts as at work after its next call.
  void Restore(std::optional<uint64_t> secret, absl::string_view writer);

  // kAborted if the server does not know the secret (claim again); kFailedPrecondition if it
  // differs from `secret`. Success counts as a call of the writer.
  absl::Status Check(uint64_t secret) const;
  // The secret that calls must show; kAborted as in Check.
  absl::StatusOr<uint64_t> secret() const;

  // A connection of the writer with `secret` opens (kFailedPrecondition: the caller is not the
  // writer) or ends.
  absl::Status BeginHold(uint64_t secret);
  void EndHold(uint64_t secret);

 private:
  bool IsAtWork(absl::Span<const uint64_t> own) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const absl::Duration silence_;
  mutable absl::Mutex mutex_;
  bool known_ ABSL_GUARDED_BY(mutex_) = true;     // whether secret_ is known
  uint64_t secret_ ABSL_GUARDED_BY(mutex_) = 0;   // 0 before the first claim
  std::string writer_ ABSL_GUARDED_BY(mutex_);    // empty: no claim yet
  int holds_ ABSL_GUARDED_BY(mutex_) = 0;         // open connections of the writer
  bool has_left_ ABSL_GUARDED_BY(mutex_) = true;  // its last connection has ended
  // The time of the writer's last call or connection; in the past if there was none since a
  // restart.
  mutable absl::Time heard_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace cistern::server
