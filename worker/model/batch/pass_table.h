// The rows of a pass in device memory: whole values, with weights and optimizer state.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/base/types.h"
#include "common/value/value_layout.h"
#include "cuda/core/device_context.h"

namespace cistern::model {

// Row r is the value of the r-th key of the pass: layout.full_floats() floats starting at
// values() + r * stride(). The memory belongs to the device; the host accesses it through a
// RowStage.
//
// Threads: one at a time. The next pass uses another table.
class PassTable {
 public:
  PassTable(const ValueLayout& layout, DeviceContext& device) : layout_(layout), device_(device) {}

  // Replaces the contents with `rows` rows of zeros, or of any values. The device must have
  // finished its work on the previous rows. kResourceExhausted as MemoryPool::Take.
  absl::Status Resize(size_t rows, MemoryFill fill = MemoryFill::kZeros) {
    rows_ = 0;
    values_ = Memory();
    has_embedx_ = Memory();
    CISTERN_ASSIGN_OR_RETURN(values_, Take(rows * stride() * sizeof(float), fill));
    CISTERN_ASSIGN_OR_RETURN(has_embedx_, Take(rows, fill));
    rows_ = rows;
    return absl::OkStatus();
  }

  const ValueLayout& layout() const { return layout_; }
  size_t rows() const { return rows_; }
  size_t stride() const { return layout_.full_floats(); }
  float* values() { return static_cast<float*>(values_.data()); }
  const float* values() const { return static_cast<const float*>(values_.data()); }
  // [rows]: 1 if the row has its embedx.
  uint8_t* has_embedx() { return static_cast<uint8_t*>(has_embedx_.data()); }
  const uint8_t* has_embedx() const { return static_cast<const uint8_t*>(has_embedx_.data()); }

  // The key of each row: [rows]. Borrowed.
  void set_keys(absl::Span<const Key> keys) { keys_ = keys; }
  absl::Span<const Key> keys() const { return keys_; }
  // Tables with an optional embedx or 16-bit rows: the keys in device memory, valid after
  // BringKeys. The rule that creates embedx reads them, and the rounding of rows.
  const Key* device_keys() const {
    return device_.kind() == DeviceKind::kCpu ? keys_.data()
                                              : static_cast<const Key*>(key_memory_.data());
  }
  absl::Status BringKeys(Stream& stream) {
    const bool needs_keys = layout_.embedx_is_optional() || layout_.rounds();
    if (device_.kind() == DeviceKind::kCpu || !needs_keys) return absl::OkStatus();
    CISTERN_ASSIGN_OR_RETURN(key_memory_, Take(keys_.size() * sizeof(Key), MemoryFill::kAny));
    CopyToDevice(keys_.data(), key_memory_.data(), keys_.size() * sizeof(Key), stream);
    return stream.status();
  }

 private:
  absl::StatusOr<Memory> Take(size_t bytes, MemoryFill fill) {
    return device_.pool().Take(MemoryPlace::kDevice, bytes, "pass tables", fill);
  }

  ValueLayout layout_;
  DeviceContext& device_;
  size_t rows_ = 0;
  Memory values_, has_embedx_;
  absl::Span<const Key> keys_;
  Memory key_memory_;  // copy of keys_ on a GPU
};

}  // namespace cistern::model
