// The rows of one table that a training loop has read since the last commit, with the values that
// its steps have given them: what the pass table is to the trainer, for a loop that is not ours.
//
//   CISTERN_RETURN_IF_ERROR(rows.LookUp(keys, &batch));   // pulls what is missing
//   ... weights of batch.rows, gradients of them ...
//   CISTERN_RETURN_IF_ERROR(rows.AddGradients(batch.rows, grads));
//   rows.Step(learning_rate, step);                       // the table's rule, as on the trainer
//   CISTERN_RETURN_IF_ERROR(rows.PushChanged());          // into the open pass
//   ... commit ...
//   rows.Committed();
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/base/types.h"
#include "python/rows/gradient_sums.h"
#include "worker/client/parameter_client.h"
#include "worker/data/source/key_index.h"

namespace cistern {

// The distinct rows of a batch, in the order in which its keys first name them.
struct LiveBatch {
  std::vector<Row> rows;         // [distinct], of LiveRows
  std::vector<uint32_t> places;  // [keys]: the index into `rows` of each key
  size_t pulled = 0;             // rows that the servers were asked for
};

// Threads: one at a time.
class LiveRows {
 public:
  // client: has the table, and outlives this object. kInvalidArgument: a ctr table, or one with
  // deferred updates; only the trainer knows their rules.
  static absl::StatusOr<LiveRows> Create(ParameterClient& client, TableId table);

  TableId table() const { return table_; }
  uint32_t dim() const { return layout_->dim(); }
  size_t value_floats() const { return floats_; }
  size_t size() const { return index_.size(); }
  size_t changed() const { return changed_; }
  // Memory of the values, in bytes.
  size_t bytes() const { return values_.size() * sizeof(float); }

  // Finds the rows of `keys`, which may repeat. Those that are not here yet are pulled; an absent
  // key has its first value. Errors: as FleetReader::Pull; nothing has changed then.
  absl::Status LookUp(absl::Span<const Key> keys, LiveBatch* batch);

  // The distinct ones of `keys` that are not here, to be pulled ahead of their LookUp, and added
  // with Add. So a caller can pull them while another thread uses this object.
  std::vector<Key> MissingOf(absl::Span<const Key> keys) const;
  // values: [keys, layout.full_floats()] as pulled, while this process was the only writer. Keys
  // that have come meanwhile stay as they are.
  void Add(absl::Span<const Key> keys, const float* values);

  // Reads the weights of `keys` without keeping rows: those here as they are, others as committed.
  // absent_is_zero: keys that the servers do not have read zero instead of their first value.
  // out: [keys, dim].
  absl::Status Read(absl::Span<const Key> keys, bool absent_is_zero, float* out);

  // out: [rows, dim].
  void CopyWeights(absl::Span<const Row> rows, float* out) const;

  // Adds to the gradients of the next step. rows: distinct. grads: [rows, dim]. kInvalidArgument: a
  // row that does not exist, or a gradient that is not finite (nothing is added then).
  absl::Status AddGradients(absl::Span<const Row> rows, const float* grads);
  // Forgets the gradients since the last step.
  void DropGradients();
  // Applies the table's rule to the rows that have a gradient. step: 1, 2, ...
  void Step(double learning_rate, uint64_t step);

  // Pushes the rows that have changed since the last commit into the client's open pass.
  absl::Status PushChanged();
  // Call after the commit of what PushChanged pushed.
  void Committed();
  // Forgets all rows and gradients; changed rows are as committed again.
  void Clear();

 private:
  LiveRows(ParameterClient& client, TableId table);
  float* value(Row row) { return values_.data() + size_t{row} * floats_; }
  const float* value(Row row) const { return values_.data() + size_t{row} * floats_; }
  absl::Status PullNew(size_t first);
  // Makes the vectors that have an element for each row as long as index_.
  void Grow();

  ParameterClient* client_;
  TableId table_;
  const ValueLayout* layout_;
  size_t floats_;  // of a whole value

  data::KeyIndex index_;
  std::vector<float> values_;        // [size, floats]
  std::vector<uint8_t> is_changed_;  // [size]
  size_t changed_ = 0;

  GradientSums gradients_;  // of the next step

  // The place of a row in the batch of LookUp: valid if batch_of_[row] is the number of the batch.
  std::vector<uint32_t> batch_of_, place_of_;
  uint32_t batch_ = 0;
};

}  // namespace cistern
