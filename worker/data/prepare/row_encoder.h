// Encodes rows of text as samples.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/format/sample_block.h"
#include "worker/data/prepare/column_plan.h"
#include "worker/data/prepare/key_counter.h"
#include "worker/data/prepare/text_table.h"
#include "worker/data/prepare/vocabulary.h"

namespace cistern {

// Threads: one at a time.
class RowEncoder {
 public:
  // options: without kAuto values. vocabulary: Count fills it, Encode looks values up in it;
  // outlives this; null: all values are kept.
  RowEncoder(const ConvertOptions& options, const ColumnPlan& plan,
             const std::vector<std::string>& columns, Vocabulary* vocabulary);

  // The shape of the samples: one sparse input with all slots.
  SampleShape shape() const;

  // Adds the row's values to the vocabulary. Errors name the column.
  absl::Status Count(const TextRow& row);
  // Appends the row's sample to `block`. Errors name the column and leave `block` invalid.
  absl::Status Encode(const TextRow& row, SampleBlock* block);

  // Fills the statistics of the encoded rows: positives, dense, slots, max_keys.
  void Summarize(ConvertSummary* summary) const;

 private:
  struct Slot {
    ColumnPlan::Slot plan;
    bool repeated = false;                // an earlier slot has the same column
    std::string prefix;                   // "column="
    Key missing_key = 0, rare_key = 0;    // keys that replace missing and rare values
    Vocabulary::Counts* known = nullptr;  // the known values; null: all
    KeyCounter keys;
    ConvertSummary::Slot summary;
  };

  bool IsMissing(absl::string_view field) const;
  absl::Status AppendLabel(absl::string_view field, std::vector<float>* labels) const;
  absl::Status AppendDense(absl::string_view field, size_t place, std::vector<float>* dense);
  absl::Status AppendSlot(absl::string_view field, Slot* slot, std::vector<Key>* keys);
  void AppendKey(Key key, Slot* slot, std::vector<Key>* keys);
  // Calls visit(key) for each value of `field`.
  template <typename Visit>
  absl::Status ForEachKey(absl::string_view field, const Slot& slot, const Visit& visit);
  absl::StatusOr<Key> KeyOf(absl::string_view value, const Slot& slot);
  absl::StatusOr<Key> RawKey(absl::string_view value) const;
  absl::Status BucketText(absl::string_view value);
  Key HashedKey(absl::string_view prefix, absl::string_view value);
  absl::Status InColumn(const absl::Status& status, size_t column) const;

  const ConvertOptions options_;
  const ColumnPlan plan_;
  const std::vector<std::string> columns_;
  std::vector<Slot> slots_;
  std::vector<uint64_t> dense_missing_;
  uint64_t positives_ = 0;
  uint32_t max_keys_ = 0;
  std::string text_, bucket_;  // buffers to build the text of a value
};

}  // namespace cistern
