#include "server/service/writer_lease.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

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
  return known_ && holds_.contains(secret_) && !absl::c_linear_search(own, secret_);
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
                                      "; wait until it ends, or stop it and take over")),
                     {"take_over"});
}

void WriterLease::Take(uint64_t secret, absl::string_view writer) {
  absl::MutexLock lock(&mutex_);
  known_ = true;
  secret_ = secret;
  writer_ = std::string(writer);
}

void WriterLease::Restore(std::optional<uint64_t> secret, absl::string_view writer) {
  absl::MutexLock lock(&mutex_);
  known_ = secret.has_value();
  secret_ = secret.value_or(0);
  writer_ = std::string(writer);
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
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> WriterLease::secret() const {
  absl::MutexLock lock(&mutex_);
  if (known_) return secret_;
  return absl::AbortedError(
      "this server was restarted and does not know its writer; claim a new term and resume "
      "from the last commit");
}

absl::Status WriterLease::BeginHold(uint64_t secret, bool claims) {
  absl::MutexLock lock(&mutex_);
  const bool is_writer = known_ && secret == secret_;
  if (secret == 0 || !(is_writer || claims)) {
    return absl::FailedPreconditionError("only the writer with the newest claim can hold the term");
  }
  int others = 0;
  for (const auto& [holder, count] : holds_) {
    if (!known_ || holder != secret_) others += count;
  }
  if (!is_writer && others >= kMaxClaimants) {
    return absl::ResourceExhaustedError(
        absl::StrCat(others, " other callers are about to claim a term"));
  }
  ++holds_[secret];
  return absl::OkStatus();
}

void WriterLease::EndHold(uint64_t secret) {
  absl::MutexLock lock(&mutex_);
  const auto hold = holds_.find(secret);
  if (hold != holds_.end() && --hold->second == 0) holds_.erase(hold);
}

}  // namespace cistern::server
