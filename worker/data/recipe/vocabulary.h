// The vocabulary: for each column, the keys that are frequent enough to be kept.
//
// File format, so that test data can use the vocabulary of the training data:
//
//   cistern vocabulary 1 hash 64        version, key mode (raw, hash), bits of a key
//   C1<TAB>1234567890<TAB>17            column, key, count; sorted by column, then key
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/status.h"
#include "common/base/types.h"
#include "common/io/file_system.h"

namespace cistern::data {

// What new data holds of a column.
struct GrownColumn {
  std::string column;
  uint64_t keys = 0;  // that were added
  // Values of the data, and those among them that were not known before; by rows, not distinct.
  uint64_t values = 0, unknown = 0;
  double rare_before = 0;  // the share of rare values in earlier data
  // A sentence about values that are known in another way (SpellingCheck), or nothing.
  std::string spelling;
};

// Threads: const methods and lookups in Counts from any thread while no thread changes it.
class Vocabulary {
 public:
  // The keys of a column and their counts.
  using Counts = absl::flat_hash_map<Key, uint32_t>;

  // kind: key mode and width, such as "hash 64"; Read refuses files of another kind.
  explicit Vocabulary(std::string kind) : kind_(std::move(kind)) {}

  // Returns the counts of a column, creating them if needed. The pointer remains valid.
  Counts* Column(const std::string& name) { return &columns_[name]; }
  // The same without creating them: empty for a column that the vocabulary does not know.
  const Counts& Of(const std::string& name) const;
  const std::map<std::string, Counts>& columns() const { return columns_; }
  // Removes keys with a count below `min_count`. removed: gets them; null: nobody needs them.
  void Keep(uint64_t min_count, Vocabulary* removed = nullptr);
  // Adds the counts of `other`.
  void Add(const Vocabulary& other);
  // Adds the keys of `counted` that this lacks and that occur at least `min_count` times, those in
  // `earlier` data (its rare values) included. rare: gets the others of `counted`. Returns what was
  // found, by column of `counted`.
  std::vector<GrownColumn> Grow(const Vocabulary& counted, const Vocabulary& earlier,
                                uint64_t min_count, Vocabulary* rare);
  // The least count; 0 for an empty vocabulary.
  uint64_t LeastCount() const;
  uint64_t size() const;

  // Both return the XXH3 of the file.
  absl::StatusOr<uint64_t> Write(FileSystem& files, const std::string& path) const;
  // kDataLoss names file and line; kInvalidArgument: a file of another kind.
  absl::StatusOr<uint64_t> Read(const std::string& path);

 private:
  std::string kind_;
  std::map<std::string, Counts> columns_;
};

}  // namespace cistern::data
