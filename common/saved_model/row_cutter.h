// Splits the bytes of a model file, which arrive in blocks, into rows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "proto/control_plane.pb.h"

namespace cistern {

// The maximum size of a row. The largest real one is below 300 KB (4096 weights with Adam's m and
// v, in text).
inline constexpr size_t kMaxRowBytes = size_t{1} << 20;

// Threads: one at a time.
class RowCutter {
 public:
  // Called with each row: a line without its newline, or a whole record. An error stops the
  // reading.
  using Row = std::function<absl::Status(absl::string_view row)>;

  // max_rows: more rows are an error, so that reading a small file that decompresses to an endless
  // stream stops.
  static std::unique_ptr<RowCutter> Create(v1::SaveFormat::Kind kind, const Row& row,
                                           uint64_t max_rows);
  virtual ~RowCutter() = default;

  // kDataLoss with the number of the line or record: a row that is too long, a record whose length
  // is below that of its head, more than max_rows rows. Also returns an error of the callback.
  virtual absl::Status Add(absl::string_view block) = 0;
  // kDataLoss if the bytes end in the middle of a row.
  virtual absl::Status Finish() const = 0;
  uint64_t rows() const { return rows_; }

 protected:
  RowCutter(const Row& row, uint64_t max_rows) : row_(row), max_rows_(max_rows) {}
  // Passes a row to the callback. name: "line" or "record".
  absl::Status Deliver(absl::string_view row, const char* name);

 private:
  const Row& row_;
  const uint64_t max_rows_;
  uint64_t rows_ = 0;
};

}  // namespace cistern
