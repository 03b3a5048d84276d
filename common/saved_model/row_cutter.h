// Cuts the bytes of a model's file into its rows, as they come in blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "proto/control_plane.pb.h"

namespace cistern {

// The largest row: of any table it is below 300 KB (4096 weights with Adam's m and v, in text).
inline constexpr size_t kMaxRowBytes = size_t{1} << 20;

// Threads: one at a time.
class RowCutter {
 public:
  // Called with each row: a line without its end, or a whole record. An error ends the reading.
  using Row = std::function<absl::Status(absl::string_view row)>;

  // max_rows: one row more is an error, so that a small file which inflates without end is not read
  // to it.
  static std::unique_ptr<RowCutter> Create(v1::SaveFormat::Kind kind, const Row& row,
                                           uint64_t max_rows);
  virtual ~RowCutter() = default;

  // kDataLoss, or the row's error, with the number of the line or record: a row that is too long,
  // a record that says less than its own head, a row more than max_rows.
  virtual absl::Status Add(absl::string_view block) = 0;
  // kDataLoss if the bytes end within a row.
  virtual absl::Status Finish() const = 0;
  uint64_t rows() const { return rows_; }

 protected:
  RowCutter(const Row& row, uint64_t max_rows) : row_(row), max_rows_(max_rows) {}
  // Hands over a row; `name`: what the format calls one.
  absl::Status Deliver(absl::string_view row, const char* name);

 private:
  const Row& row_;
  const uint64_t max_rows_;
  uint64_t rows_ = 0;
};

}  // namespace cistern
