// DLRM's multi-hot transform: one value of a large table becomes several.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/types.h"
#include "common/io/file_system.h"

namespace cistern::data {

enum class MultiHotDistribution {
  kUniform,  // over all rows of the table
  kPareto,   // floor of a Lomax variate of shape 0.25, modulo the number of rows
};

struct MultiHotOptions {
  uint64_t min_table_size = 0;  // features with fewer rows are not changed
  uint32_t size = 1;            // number of values that one value becomes
  MultiHotDistribution distribution = MultiHotDistribution::kUniform;
  // Counts values before and after the transform.
  bool count_frequencies = false;
};

// Turns one value of a large table into `size` values: itself, then the values in its row of a
// fixed random matrix. Entry (row, column) of the matrix of feature f is a pure function of seed f,
// so the matrix is not stored.
//
// Threads: one at a time if frequencies are counted, otherwise any.
class MultiHot {
 public:
  // num_embeddings: number of rows of each feature's table. kInvalidArgument: size is 0, or a table
  // has no rows.
  static absl::StatusOr<MultiHot> Create(const MultiHotOptions& options,
                                         std::vector<uint64_t> num_embeddings);

  // Appends the values that `value` becomes. value: below the number of rows of the feature.
  void Append(size_t feature, Key value, std::vector<Key>* values);

  // Writes how often each value occurred before and after, as text: lines "feature<TAB>before or
  // after<TAB>value<TAB>times" in the order of these columns.
  absl::Status SaveFrequencies(FileSystem& files, const std::string& path) const;

 private:
  using Frequencies = std::vector<std::map<Key, uint64_t>>;  // by feature

  MultiHot(const MultiHotOptions& options, std::vector<uint64_t> num_embeddings);
  Key Weight(size_t feature, Key row, uint32_t column) const;

  MultiHotOptions options_;
  std::vector<uint64_t> num_embeddings_;
  Frequencies before_, after_;
};

}  // namespace cistern::data
