// Statistics of converted samples.
#pragma once

#include <vector>

#include "worker/data/format/sample_block.h"
#include "worker/data/prepare/convert.h"
#include "worker/data/prepare/key_counter.h"
#include "worker/data/recipe/row_encoder.h"

namespace cistern::data {

// Threads: one at a time.
class ConversionCounts {
 public:
  explicit ConversionCounts(const Recipe& recipe);

  // Adds the samples of `block`, which has one sparse input.
  void Add(const SampleBlock& block);
  // Fills labels, positives, weights, dense, dense_sums, slots and max_keys. work: that of the
  // encoder of all samples.
  void Summarize(const EncoderWork& work, ConvertSummary* summary) const;

 private:
  struct Slot {
    KeyCounter keys;
    uint32_t max_keys = 0;
    uint64_t occurrences = 0;  // of keys, stand-ins included
  };
  const Recipe& recipe_;
  std::vector<Slot> slots_;
  std::vector<ConvertSummary::Label> labels_;
  double weight_ = 0, positive_weight_ = 0, weight_squares_ = 0;
  DenseSums dense_;
  uint32_t max_keys_ = 0;
};

}  // namespace cistern::data
