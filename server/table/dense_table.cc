#include "server/table/dense_table.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/value/row_digest.h"

namespace cistern::server {
namespace {

// The wire and the files are row-major; Eigen's default is column-major.
using RowMajorMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

}  // namespace

DenseTable::DenseTable(const v1::DenseTableSpec& spec, uint32_t rank, uint32_t server_num)
    : spec_(spec), range_(DenseRangeOf(spec.rows(), rank, server_num)) {}

absl::Status DenseTable::CheckRange(uint64_t start, uint64_t count) const {
  if (start >= range_.begin && start <= range_.end && count <= range_.end - start) {
    return absl::OkStatus();
  }
  return absl::OutOfRangeError(absl::StrCat(
      "dense table '", spec_.name(), "': ", count, " rows from ", start, " on are not within rows ",
      range_.begin, " to ", range_.end, " (end excluded) that this server owns"));
}

absl::Status DenseTable::Read(uint64_t start, uint64_t count, float* out) const {
  CISTERN_RETURN_IF_ERROR(CheckRange(start, count));
  absl::ReaderMutexLock lock(&mutex_);
  if (!written_) {
    return absl::NotFoundError(
        absl::StrCat("dense table '", spec_.name(), "' has never been written on this server"));
  }
  Eigen::Map<RowMajorMatrix>(out, count, columns()) =
      values_.middleRows(start - range_.begin, count);
  return absl::OkStatus();
}

absl::Status DenseTable::Write(uint64_t start, uint64_t count, const float* values) {
  CISTERN_RETURN_IF_ERROR(CheckRange(start, count));
  absl::MutexLock lock(&mutex_);
  if (!written_) values_.setZero(range_.end - range_.begin, columns());
  written_ = true;
  values_.middleRows(start - range_.begin, count) =
      Eigen::Map<const RowMajorMatrix>(values, count, columns());
  return absl::OkStatus();
}

bool DenseTable::written() const {
  absl::ReaderMutexLock lock(&mutex_);
  return written_;
}

std::unique_ptr<DenseTable> DenseTable::Copy() const {
  std::unique_ptr<DenseTable> copy(new DenseTable(spec_, range_));
  absl::ReaderMutexLock lock(&mutex_);
  absl::MutexLock theirs(&copy->mutex_);  // uncontended: only the annotations require it
  copy->values_ = values_;
  copy->written_ = written_;
  return copy;
}

void DenseTable::Clear() {
  absl::MutexLock lock(&mutex_);
  values_.resize(0, 0);
  written_ = false;
}

uint64_t DenseTable::Digest() const {
  absl::ReaderMutexLock lock(&mutex_);
  uint64_t sum = 0;
  for (Eigen::Index column = 0; column < values_.cols(); ++column) {
    for (Eigen::Index row = 0; row < values_.rows(); ++row) {
      sum += DenseCellDigest(range_.begin + static_cast<uint64_t>(row),
                             static_cast<uint32_t>(column), values_(row, column));
    }
  }
  return sum;
}

}  // namespace cistern::server
