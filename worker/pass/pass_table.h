// The rows of a pass on the device: whole values, weights and optimizer state together.
#pragma once

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/value_layout.h"

namespace cistern {

// Row r is the value of the r-th key of the pass: layout.full_floats() cells from values() + r *
// stride(). Device memory; on the CPU device it is ordinary memory.
//
// Threads: one at a time; Pull of the next pass fills another table.
class PassTable {
 public:
  explicit PassTable(const ValueLayout& layout) : layout_(layout) {}

  // Makes room for `rows`, contents unset.
  void Resize(size_t rows) {
    rows_ = rows;
    values_.resize(rows * layout_.full_floats());
    full_.resize(rows);
  }

  const ValueLayout& layout() const { return layout_; }
  size_t rows() const { return rows_; }
  size_t stride() const { return layout_.full_floats(); }
  float* values() { return values_.data(); }
  const float* values() const { return values_.data(); }
  float* row(size_t r) { return values_.data() + r * stride(); }
  const float* row(size_t r) const { return values_.data() + r * stride(); }
  uint8_t* full() { return full_.data(); }  // [rows]: the value holds its embedx
  const uint8_t* full() const { return full_.data(); }
  // Ctr tables: the keys, by row, for the rule that creates embedx. Borrowed.
  void set_keys(absl::Span<const Key> keys) { keys_ = keys; }
  absl::Span<const Key> keys() const { return keys_; }

 private:
  ValueLayout layout_;
  size_t rows_ = 0;
  std::vector<float> values_;
  std::vector<uint8_t> full_;
  absl::Span<const Key> keys_;
};

}  // namespace cistern
