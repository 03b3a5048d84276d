#include "worker/data/format/record_places.h"

#include <iterator>

namespace cistern::data {

void RecordPlaces::Add(const std::string& path, const Place& place) {
  absl::MutexLock lock(&mutex_);
  bytes_[path].emplace(place.record, place.byte);
}

std::optional<RecordPlaces::Place> RecordPlaces::AtOrBefore(const std::string& path,
                                                            uint64_t record) const {
  absl::MutexLock lock(&mutex_);
  const auto file = bytes_.find(path);
  if (file == bytes_.end()) return std::nullopt;
  const auto after = file->second.upper_bound(record);
  if (after == file->second.begin()) return std::nullopt;
  const auto& [at, byte] = *std::prev(after);
  return Place{at, byte};
}

}  // namespace cistern::data
