#include "server/commit/dense_rows.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/commit/push_check.h"
#include "server/table/dense_rule.h"

namespace cistern::server {
namespace {

uint64_t RowsOf(const DenseTable& table, const StagedPush& push) {
  return push.values.size() / (push.gradient ? 1 : table.columns());
}

absl::Status BadRow(const DenseTable& table, uint64_t row, const char* why) {
  return absl::InvalidArgumentError(
      absl::StrCat("dense table '", table.spec().name(), "': row ", row, " ", why));
}

// The sum of the gradients of a table's rows on this server.
class GradientSum {
 public:
  explicit GradientSum(const DenseTable& table) : table_(table), begin_(table.range().begin) {}

  void Add(const StagedPush& push) {
    const size_t rows = table_.range().end - begin_;
    sums_.resize(rows, 0.0f);
    touched_.resize(rows, 0);
    for (size_t i = 0; i < push.values.size(); ++i) {
      sums_[push.start - begin_ + i] += push.values[i];
      touched_[push.start - begin_ + i] = 1;
    }
  }

  bool empty() const { return sums_.empty(); }
  bool HasRow(uint64_t row) const { return !empty() && touched_[row - begin_] != 0; }

  // Applies the rule to every run of rows with gradients, and appends the run to *rows.
  absl::Status AppendRows(std::vector<DenseRows>* rows) const {
    const auto end = touched_.end();
    for (auto at = std::find(touched_.begin(), end, 1); at != end; at = std::find(at, end, 1)) {
      const size_t first = static_cast<size_t>(at - touched_.begin());
      at = std::find(at, end, 0);
      const size_t count = static_cast<size_t>(at - touched_.begin()) - first;
      std::vector<float> values(count * table_.columns());
      CISTERN_RETURN_IF_ERROR(table_.Read(begin_ + first, count, values.data()));
      ApplyDenseRule(table_.spec().rule(), absl::MakeConstSpan(sums_).subspan(first, count),
                     values.data());
      const size_t cell = FiniteScan(table_.columns()).FirstBad(values);
      if (cell < values.size()) {
        return BadRow(table_, begin_ + first + cell / table_.columns(),
                      "becomes NaN or Inf with these gradients; training has diverged");
      }
      rows->emplace_back(begin_ + first, count, std::move(values));
    }
    return absl::OkStatus();
  }

 private:
  const DenseTable& table_;
  const uint64_t begin_;
  std::vector<float> sums_;
  std::vector<uint8_t> touched_;
};

}  // namespace

absl::StatusOr<std::vector<DenseRows>> NewDenseRows(const DenseTable& table,
                                                    absl::Span<const StagedPush* const> pushes) {
  std::vector<DenseRows> rows;
  GradientSum gradients(table);
  for (const StagedPush* push : pushes) {
    if (push->values.empty()) continue;
    if (push->gradient) {
      gradients.Add(*push);
    } else {
      rows.emplace_back(push->start, RowsOf(table, *push), push->values.data());
    }
  }
  std::sort(rows.begin(), rows.end(),
            [](const DenseRows& a, const DenseRows& b) { return a.start() < b.start(); });
  for (size_t i = 0; i < rows.size(); ++i) {
    const uint64_t end = rows[i].start() + rows[i].count();
    if (i + 1 < rows.size() && rows[i + 1].start() < end) {
      return BadRow(table, rows[i + 1].start(), "was pushed twice in this pass");
    }
    for (uint64_t row = rows[i].start(); !gradients.empty() && row < end; ++row) {
      if (gradients.HasRow(row)) {
        return BadRow(table, row, "was pushed as a value and as a gradient in this pass");
      }
    }
  }
  if (gradients.empty()) return rows;
  if (!table.written()) {
    return absl::FailedPreconditionError(
        absl::StrCat("dense table '", table.spec().name(),
                     "' got gradients but has no values yet; push its first values in an "
                     "earlier pass (PushDense)"));
  }
  CISTERN_RETURN_IF_ERROR(gradients.AppendRows(&rows));
  return rows;
}

}  // namespace cistern::server
