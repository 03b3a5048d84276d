#include "server/service/run_secrets.h"

#include <algorithm>

namespace cistern::server {

absl::Status RunSecrets::Leave(const std::string& address, uint64_t secret) {
  if (address.empty() || address.size() > kMaxAddressBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the address of worker 0 has ", address.size(),
                                                   " characters; it must have 1 to ",
                                                   kMaxAddressBytes));
  }
  absl::MutexLock lock(&mutex_);
  if (runs_.count(address) == 0 && runs_.size() >= kMaxRuns) {
    runs_.erase(std::min_element(runs_.begin(), runs_.end(), [](const auto& a, const auto& b) {
      return a.second.age < b.second.age;
    }));
  }
  runs_[address] = {secret, ++clock_};
  return absl::OkStatus();
}

uint64_t RunSecrets::Find(const std::string& address) const {
  absl::MutexLock lock(&mutex_);
  const auto found = runs_.find(address);
  return found == runs_.end() ? 0 : found->second.secret;
}

}  // namespace cistern::server
