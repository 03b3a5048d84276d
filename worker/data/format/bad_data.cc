#include "worker/data/format/bad_data.h"

#include "common/base/log.h"

namespace cistern::data {

bool IsBadData(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsDataLoss(status) || absl::IsOutOfRange(status) ||
         absl::IsUnimplemented(status);
}

std::string CauseOfBadData(const absl::Status& status) {
  if (absl::IsNotFound(status)) return "missing";
  if (absl::IsUnimplemented(status)) return "too new";
  return KindOf(status) == ErrorKind::kCutShort ? "cut short" : "corrupt";
}

void BadData::Add(const std::string& path, const absl::Status& status) {
  const std::string cause = CauseOfBadData(status);
  {
    absl::MutexLock lock(&mutex_);
    if (!paths_[cause].insert(path).second) return;
  }
  LogWarning(absl::StrCat("left out, because cistern.on_bad_data is skip (", cause,
                          "): ", status.message()));
}

BadData::Counts BadData::counts() const {
  absl::MutexLock lock(&mutex_);
  Counts counts;
  for (const auto& [cause, paths] : paths_) counts[cause] = paths.size();
  return counts;
}

}  // namespace cistern::data
