// The keys of each column that are frequent enough to stand for themselves.
//
// As a file, so that test data use the vocabulary of the training data:
//
//   cistern vocabulary 1 hash 64        version, key mode (raw, hash), bits of a key
//   C1<TAB>1234567890<TAB>17            column, key, times seen; sorted by column, then key
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "common/base/status.h"
#include "common/base/types.h"
#include "common/io/file_system.h"

namespace cistern {

// Threads: Contains from any thread while nobody changes it.
class Vocabulary {
 public:
  // Keys of a column and how often each was seen.
  using Counts = absl::flat_hash_map<Key, uint32_t>;

  // `kind`: "hash 64" and the like; a file of another kind is refused.
  explicit Vocabulary(std::string kind) : kind_(std::move(kind)) {}

  // The counts of a column, made where there are none yet; the pointer stays good.
  Counts* Column(const std::string& name) { return &columns_[name]; }
  // Forgets keys that were seen fewer than `min_count` times.
  void Keep(uint64_t min_count);
  uint64_t size() const;

  absl::Status Write(FileSystem& files, const std::string& path) const;
  // kDataLoss names file and line; kInvalidArgument: another kind.
  absl::Status Read(const std::string& path);

 private:
  std::string kind_;
  std::map<std::string, Counts> columns_;
};

}  // namespace cistern
