// This server's part of a dense table: an Eigen matrix with one row per parameter.
//
// common/value/dense_range.h defines which rows a server owns.
#pragma once

#include <Eigen/Core>
#include <memory>

#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/value/dense_range.h"
#include "proto/schema.pb.h"

namespace cistern::server {

// Threads: any thread; readers share the lock.
class DenseTable {
 public:
  DenseTable(const v1::DenseTableSpec& spec, uint32_t rank, uint32_t server_num);

  const v1::DenseTableSpec& spec() const { return spec_; }
  DenseRange range() const { return range_; }
  uint32_t columns() const { return static_cast<uint32_t>(spec_.columns_size()); }

  // Copies rows [start, start + count) of the whole table, row-major.
  // kOutOfRange unless all of them are in range(); kNotFound before the first Write.
  absl::Status Read(uint64_t start, uint64_t count, float* out) const;
  absl::Status Write(uint64_t start, uint64_t count, const float* values);
  bool written() const;
  // A copy of the table with its values.
  std::unique_ptr<DenseTable> Copy() const;
  void Clear();
  // The sum over all cells of XXH3-64 of {row u64, column u32, bits u32}, little-endian, where row
  // counts in the whole table. The digests of all servers add up. 0 before the first Write.
  uint64_t Digest() const;

  // OK if rows [start, start + count) are in range(), else kOutOfRange.
  absl::Status CheckRange(uint64_t start, uint64_t count) const;

 private:
  DenseTable(const v1::DenseTableSpec& spec, DenseRange range) : spec_(spec), range_(range) {}

  const v1::DenseTableSpec spec_;
  const DenseRange range_;
  mutable absl::Mutex mutex_;
  Eigen::MatrixXf values_ ABSL_GUARDED_BY(mutex_);
  bool written_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace cistern::server
