// Who may write: the one that has made the newest claim, known by its secret.
//
// A writer is at work while its connection is open (HoldTerm), or, where it keeps none, until it
// has not been heard of for a while. Another claim is refused then, unless it says that it takes
// over: a training that is started by mistake on a busy fleet ends itself, and not the other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/status.h"

namespace cistern {

// A caller's name for itself, cut down to a line of plain text.
std::string PlainWriterName(absl::string_view name);

// Threads: any thread. Its lock is the innermost: nothing else is taken under it.
class WriterLease {
 public:
  // silence: how long after its last call a writer without a connection counts as at work; zero:
  // not at all, so that anyone may claim at any time.
  explicit WriterLease(absl::Duration silence) : silence_(silence) {}

  // OK if no other writer is at work; else kFailedPrecondition that names it and says what to do.
  // own: secrets that the caller has claimed with before; 0 stands for none. (It does not wait for
  // the connection of a writer that has just ended: callers ask again.)
  absl::Status CheckFree(absl::Span<const uint64_t> own) const;
  // Who has made the newest claim; empty: nobody, or before a restart.
  std::string writer() const;
  // The writer that is at work, other than the caller; empty if there is none.
  std::string WriterAtWork(absl::Span<const uint64_t> own) const;

  // A new claim: only calls with its secret write from now on.
  void Take(uint64_t secret, absl::string_view writer);
  // After a restart: the newest claim, as it is on disk (no secret: it cannot be read). Its writer
  // counts as at work once it is heard of.
  void Restore(std::optional<uint64_t> secret, absl::string_view writer);

  // kAborted if the secret is not known (claim again); kFailedPrecondition if it is not `secret`. A
  // writer that passes was heard of.
  absl::Status Check(uint64_t secret) const;
  // The secret that calls must show; kAborted as Check.
  absl::StatusOr<uint64_t> secret() const;

  // A connection of the writer with `secret` opens (kFailedPrecondition: it is not the writer) and
  // ends.
  absl::Status BeginHold(uint64_t secret);
  void EndHold(uint64_t secret);

 private:
  bool IsAtWork(absl::Span<const uint64_t> own) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const absl::Duration silence_;
  mutable absl::Mutex mutex_;
  bool known_ ABSL_GUARDED_BY(mutex_) = true;     // the secret
  uint64_t secret_ ABSL_GUARDED_BY(mutex_) = 0;   // 0 before the first claim
  std::string writer_ ABSL_GUARDED_BY(mutex_);    // empty: nobody has claimed
  int holds_ ABSL_GUARDED_BY(mutex_) = 0;         // open connections of the writer
  bool has_left_ ABSL_GUARDED_BY(mutex_) = true;  // its last connection has ended
  // Of the writer's last call or connection; in the past: not heard of since a restart.
  mutable absl::Time heard_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace cistern
