#include "worker/data/prepare/table_profile.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "common/base/hash.h"
#include "worker/data/prepare/key_counter.h"
#include "worker/data/prepare/laid_out_table.h"
#include "worker/data/prepare/ordered_table.h"
#include "worker/data/recipe/table_files.h"
#include "worker/data/recipe/value_text.h"

namespace cistern {
namespace {

constexpr uint64_t kRowsPerReport = 4096;
constexpr size_t kCountedValues = size_t{1} << 22;  // over all columns
constexpr size_t kCountedLeast = 1024, kCountedMost = size_t{1} << 16;

// What one column holds so far.
class Column {
 public:
  explicit Column(size_t counted) : distinct_(counted) {}

  void AddMissing() { ++missing_; }
  void Add(absl::string_view text) {
    double x = 0;
    const NumberKind kind = number_ ? ReadNumber(text, &x) : NumberKind::kNone;
    if (kind == NumberKind::kNan) return AddMissing();
    if (kind == NumberKind::kInfinite && AddInfinite(text)) return;
    number_ = number_ && kind == NumberKind::kFinite;
    distinct_.Add(HashBytes(text.data(), text.size()));
    if (number_) {
      AddInteger(text);
    } else {
      integer_ = false;
    }
    times_.Add(text);
    if (number_) AddNumber(x);
    if (!many_) CountValue(text, 1);
    ++count_;
  }
  ColumnProfile Profile(const std::string& name);

 private:
  // An infinite number is missing among numbers, and a text among texts: which, is known at the
  // end. False if there are too many forms of them.
  bool AddInfinite(absl::string_view text) {
    constexpr size_t kFormsMost = 16;
    for (auto& [form, count] : infinite_) {
      if (form == text) return ++count > 0;
    }
    if (infinite_.size() == kFormsMost) return false;
    infinite_.emplace_back(std::string(text), 1);
    return true;
  }
  void AddInteger(absl::string_view text) {
    integer_ = integer_ && IsInteger(text);
    float_text_ = float_text_ || text.find_first_of(".eE") != absl::string_view::npos;
    exponent_ = exponent_ || text.find_first_of("eE") != absl::string_view::npos;
  }
  // Texts after all.
  void TakeInfinite() {
    for (const auto& [text, count] : infinite_) {
      distinct_.Add(HashBytes(text.data(), text.size()));
      if (!many_) CountValue(text, count);
      count_ += count;
    }
    infinite_.clear();
  }
  // Moments in one pass (Pebay 2008).
  void AddNumber(double x) {
    const double n = static_cast<double>(count_ + 1), delta = x - mean_, step = delta / n;
    const double term = delta * step * (n - 1);
    cubes_ += term * step * (n - 2) - 3 * step * squares_;
    squares_ += term;
    mean_ += step;
    min_ = count_ == 0 ? x : std::min(min_, x);
    max_ = count_ == 0 ? x : std::max(max_, x);
  }
  void CountValue(absl::string_view text, uint64_t more) {
    for (auto& [value, count] : values_) {
      if (value != text) continue;
      count += more;
      return;
    }
    many_ = values_.size() == ColumnProfile::kFewValues;
    if (many_) {
      values_.clear();
    } else {
      values_.emplace_back(std::string(text), more);
    }
  }

  KeyCounter distinct_;
  TimeForms times_;
  bool integer_ = true, number_ = true, many_ = false;
  bool float_text_ = false, exponent_ = false;
  std::vector<std::pair<std::string, uint64_t>> infinite_;  // by their text
  uint64_t count_ = 0, missing_ = 0;
  double mean_ = 0, squares_ = 0, cubes_ = 0, min_ = 0, max_ = 0;
  std::vector<std::pair<std::string, uint64_t>> values_;
};

ColumnProfile Column::Profile(const std::string& name) {
  if (!number_ || count_ == 0) TakeInfinite();
  ColumnProfile profile;
  profile.name = name;
  profile.type = count_ == 0    ? ColumnType::kEmpty
                 : integer_     ? ColumnType::kInteger
                 : number_      ? ColumnType::kNumber
                 : times_.any() ? ColumnType::kTime
                                : ColumnType::kText;
  if (profile.type == ColumnType::kTime) profile.time_form = times_.form();
  for (const auto& [text, count] : infinite_) profile.infinite += count;
  profile.missing = missing_ + profile.infinite;
  profile.float_text = float_text_;
  profile.distinct = distinct_.Distinct();
  profile.distinct_exact = distinct_.exact();
  profile.values = values_;
  if (count_ == 0 || !number_) return profile;
  const double n = static_cast<double>(count_);
  profile.min = min_;
  profile.max = max_;
  profile.mean = mean_;
  profile.deviation = std::sqrt(squares_ / n);
  // Measures such as 6.02e23 are integers only as they are written.
  constexpr double kMeasuresFrom = 1e15;
  if (integer_ && exponent_ && max_ > kMeasuresFrom && 2 * profile.distinct > count_) {
    profile.type = ColumnType::kNumber;
  }
  if (squares_ > 0) profile.skewness = std::sqrt(n) * cubes_ / std::pow(squares_, 1.5);
  return profile;
}

class Profiler {
 public:
  explicit Profiler(size_t columns)
      : columns_(columns,
                 Column(std::clamp(kCountedValues / columns, kCountedLeast, kCountedMost))),
        sample_rows_(std::min(TableProfile::kSampleRows,
                              std::max<size_t>(1, TableProfile::kSampleCells / columns))) {}

  void Add(const std::vector<absl::string_view>& fields) {
    present_.assign(fields.begin(), fields.end());
    for (size_t i = 0; i < fields.size(); ++i) {
      if (IsUsuallyMissing(fields[i])) {
        present_[i] = absl::string_view();
        columns_[i].AddMissing();
      } else {
        columns_[i].Add(fields[i]);
      }
    }
    Sample();
    ++rows_;
  }
  // unreadable: why, by column.
  void Finish(const std::vector<std::string>& unreadable, TableProfile* profile);

 private:
  // Reservoir sampling (Vitter 1985, algorithm R).
  void Sample() {
    size_t place = sample_.size();
    if (place < sample_rows_) {
      sample_.emplace_back();
    } else {
      place = draw_() % (rows_ + 1);
      if (place >= sample_rows_) return;
    }
    std::vector<std::string>& row = sample_[place];
    row.clear();
    for (const absl::string_view field : present_) {
      row.emplace_back(field.substr(0, TableProfile::kSampleText));
    }
  }

  std::vector<Column> columns_;
  const size_t sample_rows_;
  std::mt19937_64 draw_{1};
  uint64_t rows_ = 0;
  std::vector<absl::string_view> present_;
  std::vector<std::vector<std::string>> sample_;
};

void Profiler::Finish(const std::vector<std::string>& unreadable, TableProfile* profile) {
  profile->rows = rows_;
  for (size_t i = 0; i < columns_.size(); ++i) {
    profile->columns.push_back(columns_[i].Profile(profile->layout.columns[i]));
    profile->columns.back().unreadable = unreadable[i];
  }
  profile->sample = std::move(sample_);
}

}  // namespace

const char* Word(ColumnType type) {
  switch (type) {
    case ColumnType::kEmpty:
      return "empty";
    case ColumnType::kInteger:
      return "integer";
    case ColumnType::kNumber:
      return "number";
    case ColumnType::kTime:
      return "time";
    case ColumnType::kText:
      break;
  }
  return "text";
}

absl::StatusOr<TableProfile> ProfileTable(const std::string& path, const TableLayout& layout,
                                          const ProfileProgress& progress) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> files, TableFiles(path));
  TableProfile profile;
  profile.path = path;
  profile.layout = layout;
  Profiler profiler(layout.columns.size());
  std::vector<std::string> unreadable;
  TextRow row;
  uint64_t rows = 0, bytes = 0;
  for (const std::string& file : files) {
    CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<TextTable> table, OpenLaidOut(file, layout));
    if (unreadable.empty()) {
      for (const std::string& name : layout.columns) {
        unreadable.push_back(table->WhyUnreadable(name));
      }
    }
    CISTERN_ASSIGN_OR_RETURN(table, InOrder(std::move(table), file, layout.columns, files.front()));
    for (;; ++rows) {
      CISTERN_ASSIGN_OR_RETURN(const bool found, table->Next(&row));
      if (!found) break;
      profiler.Add(row.fields);
      if (rows % kRowsPerReport == 0 && progress && !progress(rows, bytes + table->bytes_read())) {
        return absl::CancelledError(absl::StrCat(path, ": the inspection was stopped"));
      }
    }
    bytes += table->bytes_read();
  }
  profiler.Finish(unreadable, &profile);
  if (profile.rows > 0) return profile;
  return absl::DataLossError(absl::StrCat(path, ": no row follows the header line"));
}

}  // namespace cistern
