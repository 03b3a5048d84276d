#include "server/table/cold_rows.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/value/value_layout.h"

namespace cistern::server {
namespace {

// Memory for what one round reads.
constexpr size_t kRoundBytes = size_t{2} << 20;

// Reads rows into buffers, because the value of an absent key must not change.
class ChangedReading : public ColdReading {
 public:
  ChangedReading(const ColdRows& rows, absl::Span<const ColdRead> reads, const RowChange& change,
                 size_t value_floats)
      : reads_(reads),
        change_(change),
        value_floats_(value_floats),
        values_(reads.size() * value_floats),
        has_embedx_(reads.size()),
        buffered_(reads.begin(), reads.end()) {
    for (size_t i = 0; i < reads.size(); ++i) {
      buffered_[i].value = &values_[i * value_floats_];
      buffered_[i].has_embedx = &has_embedx_[i];
    }
    reading_ = rows.Begin(buffered_);
  }

  bool Want(FileReads* files) override {
    if (!reading_->Want(files)) return false;
    for (size_t i = 0; i < reads_.size(); ++i) {
      float* const value = buffered_[i].value;
      if (has_embedx_[i] == kAbsent ||
          change_(reads_[i].key, value, has_embedx_[i] != 0) == RowFate::kRemove) {
        *reads_[i].has_embedx = kAbsent;
        continue;
      }
      std::copy_n(value, value_floats_, reads_[i].value);
      *reads_[i].has_embedx = has_embedx_[i];
    }
    return true;
  }

  absl::Status Use(const FileReads& files) override { return reading_->Use(files); }

 private:
  const absl::Span<const ColdRead> reads_;
  const RowChange& change_;
  const size_t value_floats_;
  std::vector<float> values_;
  std::vector<uint8_t> has_embedx_;
  std::vector<ColdRead> buffered_;
  std::unique_ptr<ColdReading> reading_;
};

class ChangedRows : public ColdRows {
 public:
  ChangedRows(std::shared_ptr<const ColdRows> rows, RowChange change, size_t value_floats)
      : rows_(std::move(rows)), change_(std::move(change)), value_floats_(value_floats) {}

  std::unique_ptr<ColdReading> Begin(absl::Span<const ColdRead> reads) const override {
    return std::make_unique<ChangedReading>(*rows_, reads, change_, value_floats_);
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

absl::Status ColdRows::Read(absl::Span<const ColdRead> reads) const {
  const std::unique_ptr<ColdReading> reading = Begin(reads);
  return ReadTogether(absl::MakeConstSpan(&reading, 1));
}

absl::Status ReadTogether(absl::Span<const std::unique_ptr<ColdReading>> readings) {
  std::vector<ColdReading*> unfinished;
  for (const std::unique_ptr<ColdReading>& reading : readings) unfinished.push_back(reading.get());
  FileReads files(kRoundBytes);
  while (true) {
    files.Clear();
    unfinished.erase(std::remove_if(unfinished.begin(), unfinished.end(),
                                    [&](ColdReading* reading) { return reading->Want(&files); }),
                     unfinished.end());
    if (unfinished.empty()) return absl::OkStatus();
    CISTERN_RETURN_IF_ERROR(files.Read());
    for (ColdReading* reading : unfinished) CISTERN_RETURN_IF_ERROR(reading->Use(files));
  }
}

std::shared_ptr<const ColdRows> Changed(std::shared_ptr<const ColdRows> rows, RowChange change,
                                        size_t value_floats) {
  return std::make_shared<ChangedRows>(std::move(rows), std::move(change), value_floats);
}

}  // namespace cistern::server
