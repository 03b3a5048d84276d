#include "server/table/pulled_digests.h"

#include <algorithm>
#include <utility>

namespace cistern::server {
namespace {

constexpr size_t kMaxPulled = size_t{1} << 20;  // 16 MB

}  // namespace

uint64_t PulledDigests::commits() const {
  absl::MutexLock lock(&mutex_);
  return commits_;
}

void PulledDigests::Add(uint64_t commits, absl::Span<const ColdDigest> rows) {
  absl::MutexLock lock(&mutex_);
  if (commits_ != commits || now_.size() >= kMaxPulled) return;
  now_.insert(now_.end(), rows.begin(), rows.end());
}

void PulledDigests::EndCommit(std::vector<Key> written) {
  absl::MutexLock lock(&mutex_);
  ++commits_;
  before_.clear();
  if (now_.empty()) return;
  std::sort(written.begin(), written.end());
  for (const ColdDigest& row : now_) {
    if (!std::binary_search(written.begin(), written.end(), row.key)) before_.push_back(row);
  }
  now_.clear();
}

void PulledDigests::Clear() {
  absl::MutexLock lock(&mutex_);
  ++commits_;
  now_.clear();
  before_.clear();
}

std::vector<ColdDigest> PulledDigests::Find(absl::Span<const Key> keys) const {
  std::vector<ColdDigest> pulled, found;
  {
    absl::MutexLock lock(&mutex_);
    pulled = before_;
    pulled.insert(pulled.end(), now_.begin(), now_.end());
  }
  std::sort(pulled.begin(), pulled.end(),
            [](const ColdDigest& a, const ColdDigest& b) { return a.key < b.key; });
  size_t at = 0;
  for (const Key key : keys) {
    while (at < pulled.size() && pulled[at].key < key) ++at;
    if (at < pulled.size() && pulled[at].key == key) found.push_back(pulled[at]);
  }
  return found;
}

}  // namespace cistern::server
