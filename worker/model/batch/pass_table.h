// The rows of a pass on the device: whole values, weights and optimizer state together.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/base/types.h"
#include "common/value/value_layout.h"
#include "cuda/core/device_context.h"

namespace cistern {

// Row r is the value of the r-th key of the pass: layout.full_floats() cells from values() + r *
// stride(). Memory of the device: the host comes to it through a RowStage.
//
// Threads: one at a time; the next pass fills another table.
class PassTable {
 public:
  PassTable(const ValueLayout& layout, DeviceContext& device) : layout_(layout), device_(device) {}

  // Makes room for `rows`, all zero. kResourceExhausted as MemoryPool::Take. Not while the device
  // works on the rows there were.
  absl::Status Resize(size_t rows) {
    rows_ = 0;
    values_ = Memory();
    full_ = Memory();
    CISTERN_ASSIGN_OR_RETURN(values_, Take(rows * stride() * sizeof(float)));
    CISTERN_ASSIGN_OR_RETURN(full_, Take(rows));
    rows_ = rows;
    return absl::OkStatus();
  }

  const ValueLayout& layout() const { return layout_; }
  size_t rows() const { return rows_; }
  size_t stride() const { return layout_.full_floats(); }
  float* values() { return static_cast<float*>(values_.data()); }
  const float* values() const { return static_cast<const float*>(values_.data()); }
  uint8_t* full() { return static_cast<uint8_t*>(full_.data()); }  // [rows]: it holds its embedx
  const uint8_t* full() const { return static_cast<const uint8_t*>(full_.data()); }

  // The keys, by row. Borrowed.
  void set_keys(absl::Span<const Key> keys) { keys_ = keys; }
  absl::Span<const Key> keys() const { return keys_; }
  // Ctr tables: where the rule that creates embedx can read them, once BringKeys did.
  const Key* device_keys() const {
    return device_.kind() == DeviceKind::kCpu ? keys_.data()
                                              : static_cast<const Key*>(key_memory_.data());
  }
  absl::Status BringKeys(Stream& stream) {
    if (device_.kind() == DeviceKind::kCpu || !layout_.is_ctr()) return absl::OkStatus();
    CISTERN_ASSIGN_OR_RETURN(key_memory_, Take(keys_.size() * sizeof(Key)));
    CopyToDevice(keys_.data(), key_memory_.data(), keys_.size() * sizeof(Key), stream);
    return stream.status();
  }

 private:
  absl::StatusOr<Memory> Take(size_t bytes) {
    return device_.pool().Take(MemoryPlace::kDevice, bytes, "pass tables");
  }

  ValueLayout layout_;
  DeviceContext& device_;
  size_t rows_ = 0;
  Memory values_, full_;
  absl::Span<const Key> keys_;
  Memory key_memory_;  // keys_, on a GPU
};

}  // namespace cistern
