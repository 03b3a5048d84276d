// Where records begin in data files whose records have any length, as far as readers came by them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/synchronization/mutex.h"

namespace cistern::data {

// Readers of Norm and tar files find a record by stepping over those before it. Streams that are
// ranges of one file (data_streams.h) share their places, so that a file is stepped over once in a
// run, and not once for each stream and epoch.
//
// Threads: any thread.
class RecordPlaces {
 public:
  struct Place {
    uint64_t record = 0, byte = 0;  // of the contents of the file
  };
  void Add(const std::string& path, const Place& place);
  // The last known place of `path` at or before `record`.
  std::optional<Place> AtOrBefore(const std::string& path, uint64_t record) const;

 private:
  mutable absl::Mutex mutex_;
  // By path and record.
  std::map<std::string, std::map<uint64_t, uint64_t>> bytes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cistern::data
