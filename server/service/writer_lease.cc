#include "server/service/writer_lease.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace cistern::server {
std::string PlainWriterName(absl::string_view name) {
  constexpr size_t kMaxNameBytes = 200;
  std::string plain(name.substr(0, kMaxNameBytes));
  for (char& c : plain) {
    if (c < ' ' || c > '~') c = '?';
  }
  return plain.empty() ? "a writer without a name" : plain;
}

bool WriterLease::IsAtWork(absl::Span<const uint64_t> own) const {
  if (silence_ <= absl::ZeroDuration() || writer_.empty()) return false;
  for (const uint64_t secret : own) {
    if (known_ && secret != 0 && secret == secret_) return false;
  }
  if (holds_ > 0) return true;
  return !has_left_ && absl::Now() - heard_ < silence_;
}

std::string WriterLease::writer() const {
  absl::MutexLock lock(&mutex_);
  return writer_;
}

std::string WriterLease::WriterAtWork(absl::Span<const uint64_t> own) const {
  absl::MutexLock lock(&mutex_);
  return IsAtWork(own) ? writer_ : "";
}

absl::Status WriterLease::CheckFree(absl::Span<const uint64_t> own) const {
  absl::MutexLock lock(&mutex_);
  if (!IsAtWork(own)) return absl::OkStatus();
  return WithOptions(absl::FailedPreconditionError(
                         absl::StrCat("another writer is at work on this fleet: ", writer_,
                                      ", last call ", absl::ToInt64Seconds(absl::Now() - heard_),
                                      " s ago; wait until it ends, or stop it and take over")),
                     {"take_over"});
}

void WriterLease::Take(uint64_t secret, absl::string_view writer) {
  absl::MutexLock lock(&mutex_);
  known_ = true;
  secret_ = secret;
  writer_ = std::string(writer);
  holds_ = 0;
  has_left_ = false;
  heard_ = absl::Now();
}

void WriterLease::Restore(std::optional<uint64_t> secret, absl::string_view writer) {
  absl::MutexLock lock(&mutex_);
  known_ = secret.has_value();
  secret_ = secret.value_or(0);
  writer_ = std::string(writer);
  holds_ = 0;
  has_left_ = false;
  heard_ = absl::InfinitePast();
}

absl::Status WriterLease::Check(uint64_t secret) const {
  absl::MutexLock lock(&mutex_);
  if (!known_) {
    return absl::AbortedError(
        "this server was restarted and does not know its writer; claim a new term and resume "
        "from the last commit");
  }
  if (secret != secret_) {
    return absl::FailedPreconditionError(
        "the caller is not the writer of this term: it does not have the secret of the claim");
  }
  heard_ = absl::Now();
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> WriterLease::secret() const {
  absl::MutexLock lock(&mutex_);
  if (known_) return secret_;
  return absl::AbortedError(
      "this server was restarted and does not know its writer; claim a new term and resume "
      "from the last commit");
}

absl::Status WriterLease::BeginHold(uint64_t secret) {
  absl::MutexLock lock(&mutex_);
  if (!known_ || secret == 0 || secret != secret_) {
    return absl::FailedPreconditionError("only the writer with the newest claim can hold the term");
  }
  ++holds_;
  has_left_ = false;
  return absl::OkStatus();
}

void WriterLease::EndHold(uint64_t secret) {
  absl::MutexLock lock(&mutex_);
  if (!known_ || secret != secret_ || holds_ == 0) return;  // the connection of an older claim
  heard_ = absl::Now();
  has_left_ = --holds_ == 0;
}

}  // namespace cistern::server
