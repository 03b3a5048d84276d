#include "common/saved_model/row_cutter.h"

#include <algorithm>
#include <cstring>

#include "common/value/value_binary.h"

namespace cistern {
namespace {

class LineCutter : public RowCutter {
 public:
  LineCutter(const Row& row, uint64_t max_rows) : RowCutter(row, max_rows) {}

  absl::Status Add(absl::string_view block) override {
    while (true) {
      const size_t end = block.find('\n');
      const absl::string_view head = block.substr(0, end);
      if (rest_.size() + head.size() > kMaxRowBytes) {
        return absl::DataLossError(
            absl::StrCat("line ", rows() + 1, " is longer than ", kMaxRowBytes, " bytes"));
      }
      if (end == absl::string_view::npos) {
        rest_.append(head.data(), head.size());
        return absl::OkStatus();
      }
      if (rest_.empty()) {
        CISTERN_RETURN_IF_ERROR(Deliver(head, "line"));
      } else {
        rest_.append(head.data(), head.size());
        CISTERN_RETURN_IF_ERROR(Deliver(rest_, "line"));
        rest_.clear();
      }
      block.remove_prefix(end + 1);
    }
  }

  absl::Status Finish() const override {
    if (rest_.empty()) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(
        "line ", rows() + 1, " does not end with a newline: the file may be truncated"));
  }

 private:
  std::string rest_;  // the beginning of a line, from earlier blocks
};

class RecordCutter : public RowCutter {
 public:
  RecordCutter(const Row& row, uint64_t max_rows) : RowCutter(row, max_rows) {}

  absl::Status Add(absl::string_view block) override {
    while (!block.empty()) {
      CISTERN_ASSIGN_OR_RETURN(const size_t wanted, WantedBytes(block));
      if (rest_.empty() && block.size() >= wanted) {
        CISTERN_RETURN_IF_ERROR(Deliver(block.substr(0, wanted), "record"));
        block.remove_prefix(wanted);
        continue;
      }
      const size_t take = std::min(wanted - rest_.size(), block.size());
      rest_.append(block.data(), take);
      block.remove_prefix(take);
      // If only the four bytes of the length were wanted, they now determine how many more are.
      if (rest_.size() == wanted && wanted > sizeof(uint32_t)) {
        CISTERN_RETURN_IF_ERROR(Deliver(rest_, "record"));
        rest_.clear();
      }
    }
    return absl::OkStatus();
  }

  absl::Status Finish() const override {
    if (rest_.empty()) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("record ", rows() + 1, " is truncated"));
  }

 private:
  // The size of the record that begins in rest_ or, if that is empty, in `block`; the size of its
  // length field while the length is unknown.
  absl::StatusOr<size_t> WantedBytes(absl::string_view block) const {
    const absl::string_view head = rest_.empty() ? block : absl::string_view(rest_);
    uint32_t length = 0;
    if (head.size() < sizeof(length)) return sizeof(length);
    std::memcpy(&length, head.data(), sizeof(length));
    if (length >= kRecordHeadBytes && length <= kMaxRowBytes) return length;
    return absl::DataLossError(absl::StrCat("record ", rows() + 1, " states a length of ", length,
                                            " bytes; a record has ", kRecordHeadBytes, " to ",
                                            kMaxRowBytes));
  }

  std::string rest_;  // the beginning of a record, from earlier blocks
};

}  // namespace

std::unique_ptr<RowCutter> RowCutter::Create(v1::SaveFormat::Kind kind, const Row& row,
                                             uint64_t max_rows) {
  if (kind == v1::SaveFormat::BINARY) return std::make_unique<RecordCutter>(row, max_rows);
  return std::make_unique<LineCutter>(row, max_rows);
}

absl::Status RowCutter::Deliver(absl::string_view row, const char* name) {
  if (rows_ == max_rows_) {
    return absl::DataLossError(absl::StrCat("it has more than the ", max_rows_,
                                            " rows that were saved; restore the file from a copy"));
  }
  ++rows_;
  const absl::Status status = row_(row);
  return status.ok() ? status : AddContext(status, absl::StrCat(name, " ", rows_));
}

}  // namespace cistern
