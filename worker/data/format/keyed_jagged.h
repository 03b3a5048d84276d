// Sparse features of a batch in the layout of TorchRec's KeyedJaggedTensor, and DLRM's multi-hot
// transform of them (spec/002).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/data/format/sample_block.h"

namespace cistern {

// The values of one feature, by sample.
struct JaggedFeature {
  std::vector<Key> values;
  std::vector<uint32_t> lengths;  // [stride]
  std::vector<uint64_t> offsets;  // [stride + 1], from 0
};

// F features of B samples: all values of feature 0, sample by sample, then all values of feature 1,
// and so on. Value v of (feature f, sample b) is at index offsets[f * B + b] + v.
struct KeyedJagged {
  std::vector<std::string> keys;  // [F]: cat_0, cat_1, ...
  size_t stride = 0;              // B
  std::vector<Key> values;
  std::vector<uint32_t> lengths;         // [F * B]
  std::vector<uint64_t> offsets;         // [F * B + 1]
  std::vector<uint64_t> length_per_key;  // [F]: number of values of each feature
  std::vector<uint64_t> offset_per_key;  // [F + 1]: index of each feature's first value

  // All features, by key.
  std::map<std::string, JaggedFeature> ToDict() const;
};

// Lays out the slots of all inputs of `block` as features, in order.
KeyedJagged MakeKeyedJagged(const SampleBlock& block);

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

  // Whether the transform applies to the feature.
  bool applies(size_t feature) const { return num_embeddings_[feature] >= options_.min_table_size; }
  // Appends the values that `value` becomes. value: below the number of rows of the feature.
  void Append(size_t feature, Key value, std::vector<Key>* values);

  // Transforms a batch with one value per feature and sample. kInvalidArgument: another number of
  // features or values; kOutOfRange: a value beyond the rows of its table.
  absl::StatusOr<KeyedJagged> Apply(const KeyedJagged& batch);

  // By feature: how often each value occurred.
  using Frequencies = std::vector<std::map<Key, uint64_t>>;
  const Frequencies& frequencies_before() const { return before_; }
  const Frequencies& frequencies_after() const { return after_; }
  // Writes the frequencies as text, with lines "feature<TAB>before or after<TAB>value<TAB>times" in
  // the order of these columns.
  absl::Status SaveFrequencies(FileSystem& files, const std::string& path) const;

 private:
  MultiHot(const MultiHotOptions& options, std::vector<uint64_t> num_embeddings);
  Key Weight(size_t feature, Key row, uint32_t column) const;

  MultiHotOptions options_;
  std::vector<uint64_t> num_embeddings_;
  Frequencies before_, after_;
};

}  // namespace cistern
