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

// F features of B samples: all values of feature 0, sample after sample, then those of feature 1,
// and so on; value v of (feature f, sample b) stands at offsets[f * B + b] + v.
struct KeyedJagged {
  std::vector<std::string> keys;  // [F]: cat_0, cat_1, ...
  size_t stride = 0;              // B
  std::vector<Key> values;
  std::vector<uint32_t> lengths;         // [F * B]
  std::vector<uint64_t> offsets;         // [F * B + 1]
  std::vector<uint64_t> length_per_key;  // [F]: values of the feature
  std::vector<uint64_t> offset_per_key;  // [F + 1]: where they begin

  // Every feature by its key.
  std::map<std::string, JaggedFeature> ToDict() const;
};

// Lays out the slots of all inputs of `block`, one feature each, in their order.
KeyedJagged MakeKeyedJagged(const SampleBlock& block);

enum class MultiHotDistribution {
  kUniform,  // over all rows of the table
  kPareto,   // floor of a Lomax number of shape 0.25, modulo the rows
};

struct MultiHotOptions {
  uint64_t min_table_size = 0;  // features of fewer rows stay as they are
  uint32_t size = 1;            // values that one becomes
  MultiHotDistribution distribution = MultiHotDistribution::kUniform;
  // Counts values before and after.
  bool count_frequencies = false;
};

// Turns one value of a large table into `size` of them: itself, then those of its row of a matrix
// that never changes. Entry (row, column) of the matrix of feature f is a pure function of seed f,
// so the matrix is not stored.
//
// Threads: one at a time where frequencies are counted.
class MultiHot {
 public:
  // num_embeddings: rows of each feature's table. kInvalidArgument: a size of 0, or a table of
  // none.
  static absl::StatusOr<MultiHot> Create(const MultiHotOptions& options,
                                         std::vector<uint64_t> num_embeddings);

  // Whether the values of the feature become several.
  bool applies(size_t feature) const { return num_embeddings_[feature] >= options_.min_table_size; }
  // Appends what `value` of the feature becomes. value: below the feature's rows.
  void Append(size_t feature, Key value, std::vector<Key>* values);

  // A batch of one value a feature and sample. kInvalidArgument: another number of features or
  // values; kOutOfRange: a value that the table has no row for.
  absl::StatusOr<KeyedJagged> Apply(const KeyedJagged& batch);

  // How often each value of a feature was seen, by value.
  using Frequencies = std::vector<std::map<Key, uint64_t>>;
  const Frequencies& frequencies_before() const { return before_; }
  const Frequencies& frequencies_after() const { return after_; }
  // Writes them as text: "feature<TAB>before or after<TAB>value<TAB>times" lines, in this order.
  absl::Status SaveFrequencies(FileSystem& files, const std::string& path) const;

 private:
  MultiHot(const MultiHotOptions& options, std::vector<uint64_t> num_embeddings);
  Key Weight(size_t feature, Key row, uint32_t column) const;

  MultiHotOptions options_;
  std::vector<uint64_t> num_embeddings_;
  Frequencies before_, after_;
};

}  // namespace cistern
