// Finds evaluation rows that are also in the training data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"

namespace cistern::data {

// Compares the hashes of whole rows; the first 2 million of the training data.
//
// Threads: one at a time.
class RowOverlap {
 public:
  void AddTraining(const std::vector<absl::string_view>& fields);
  void AddEvaluation(const std::vector<absl::string_view>& fields);
  // A sentence if at least half of the evaluation rows are training rows, though hardly any
  // training row is there twice; else "". (Rows of few columns are equal by chance.)
  std::string Warning() const;

 private:
  static constexpr size_t kMaxRows = 2000000;
  absl::flat_hash_set<uint64_t> rows_;
  uint64_t training_ = 0, evaluation_ = 0, both_ = 0;
};

}  // namespace cistern::data
