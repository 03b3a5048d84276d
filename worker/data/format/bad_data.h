// Data that a run leaves out (cistern.on_bad_data: skip), counted by cause.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/synchronization/mutex.h"
#include "common/base/status.h"

namespace cistern::data {

// Whether `status` means that a file is bad, so that it can be left out: missing, cut short,
// corrupt or too new. Everything else ends a run in any case: options that do not fit the data,
// refused access, a server that does not answer.
bool IsBadData(const absl::Status& status);
// "missing", "cut short", "corrupt" or "too new".
std::string CauseOfBadData(const absl::Status& status);

// A file that is left out in every epoch counts once. The first time is logged.
//
// Threads: any thread.
class BadData {
 public:
  using Counts = std::map<std::string, uint64_t>;  // by cause

  void Add(const std::string& path, const absl::Status& status);
  // The number of files that were left out, wholly or in part.
  Counts counts() const;

 private:
  mutable absl::Mutex mutex_;
  std::map<std::string, std::set<std::string>> paths_ ABSL_GUARDED_BY(mutex_);  // by cause
};

}  // namespace cistern::data
