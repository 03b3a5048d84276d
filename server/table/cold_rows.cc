#include "server/table/cold_rows.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/value/value_layout.h"

namespace cistern {
namespace {

class ChangedRows : public ColdRows {
 public:
  ChangedRows(std::shared_ptr<const ColdRows> rows, RowChange change, size_t value_floats)
      : rows_(std::move(rows)), change_(std::move(change)), value_floats_(value_floats) {}

  absl::Status Read(absl::Span<const ColdRead> reads) const override {
    // Into buffers, because the value of an absent key must not change.
    std::vector<float> values(reads.size() * value_floats_);
    std::vector<uint8_t> has_embedx(reads.size());
    std::vector<ColdRead> buffered(reads.begin(), reads.end());
    for (size_t i = 0; i < reads.size(); ++i) {
      buffered[i].value = &values[i * value_floats_];
      buffered[i].has_embedx = &has_embedx[i];
    }
    CISTERN_RETURN_IF_ERROR(rows_->Read(buffered));
    for (size_t i = 0; i < reads.size(); ++i) {
      float* const value = buffered[i].value;
      if (has_embedx[i] == kAbsent ||
          change_(reads[i].key, value, has_embedx[i] != 0) == RowFate::kRemove) {
        *reads[i].has_embedx = kAbsent;
        continue;
      }
      std::copy_n(value, value_floats_, reads[i].value);
      *reads[i].has_embedx = has_embedx[i];
    }
    return absl::OkStatus();
  }

  bool MayHave(Key key) const override { return rows_->MayHave(key); }
  uint64_t part_num() const override { return rows_->part_num(); }
  Key part_begin(uint64_t part) const override { return rows_->part_begin(part); }

  absl::Status ReadPart(uint64_t part, const Visit& visit) const override {
    std::vector<float> changed(value_floats_);
    return rows_->ReadPart(part, [&](Key key, const float* value, bool has_embedx) {
      std::copy_n(value, value_floats_, changed.data());
      if (change_(key, changed.data(), has_embedx) == RowFate::kRemove) return absl::OkStatus();
      return visit(key, changed.data(), has_embedx);
    });
  }

  size_t memory_bytes() const override { return rows_->memory_bytes(); }

 private:
  const std::shared_ptr<const ColdRows> rows_;
  const RowChange change_;
  const size_t value_floats_;
};

}  // namespace

std::shared_ptr<const ColdRows> Changed(std::shared_ptr<const ColdRows> rows, RowChange change,
                                        size_t value_floats) {
  return std::make_shared<ChangedRows>(std::move(rows), std::move(change), value_floats);
}

}  // namespace cistern
