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

namespace cistern {
namespace {

constexpr absl::string_view kMissingTexts[] = {"NA",  "N/A",  "NaN", "nan",     "NULL", "null",
                                               "nil", "None", "?",   "missing", "\\N"};
constexpr uint64_t kRowsPerReport = 4096;
constexpr size_t kCountedValues = size_t{1} << 22;  // over all columns
constexpr size_t kCountedLeast = 1024, kCountedMost = size_t{1} << 16;

bool IsInteger(absl::string_view text) {
  int64_t number = 0;
  uint64_t large = 0;
  return absl::SimpleAtoi(text, &number) || absl::SimpleAtoi(text, &large);
}

bool IsDate(absl::string_view text) {
  if (text.size() < 10 || text.size() > 35) return false;
  for (size_t i = 0; i < 10; ++i) {
    const bool mark = i == 4 || i == 7;
    if (mark ? text[i] != '-' && text[i] != '/' : !absl::ascii_isdigit(text[i])) return false;
  }
  return text.size() == 10 || text[10] == ' ' || text[10] == 'T';
}

// What one column holds so far.
class Column {
 public:
  explicit Column(size_t counted) : distinct_(counted) {}

  void AddMissing() { ++missing_; }
  void Add(absl::string_view text) {
    distinct_.Add(HashBytes(text.data(), text.size()));
    integer_ = integer_ && IsInteger(text);
    date_ = date_ && IsDate(text);
    double x = 0;
    number_ = number_ && absl::SimpleAtod(text, &x) && std::isfinite(x);
    if (number_) AddNumber(x);
    if (!many_) CountValue(text);
    ++count_;
  }
  ColumnProfile Profile(const std::string& name) const;

 private:
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
  void CountValue(absl::string_view text) {
    for (auto& [value, count] : values_) {
      if (value != text) continue;
      ++count;
      return;
    }
    many_ = values_.size() == ColumnProfile::kFewValues;
    if (many_) {
      values_.clear();
    } else {
      values_.emplace_back(std::string(text), 1);
    }
  }

  KeyCounter distinct_;
  bool integer_ = true, number_ = true, date_ = true, many_ = false;
  uint64_t count_ = 0, missing_ = 0;
  double mean_ = 0, squares_ = 0, cubes_ = 0, min_ = 0, max_ = 0;
  std::vector<std::pair<std::string, uint64_t>> values_;
};

ColumnProfile Column::Profile(const std::string& name) const {
  ColumnProfile profile;
  profile.name = name;
  profile.type = count_ == 0 ? ColumnType::kEmpty
                 : integer_  ? ColumnType::kInteger
                 : number_   ? ColumnType::kNumber
                 : date_     ? ColumnType::kTime
                             : ColumnType::kText;
  profile.missing = missing_;
  profile.distinct = distinct_.Distinct();
  profile.distinct_exact = distinct_.exact();
  profile.values = values_;
  if (count_ == 0 || !number_) return profile;
  const double n = static_cast<double>(count_);
  profile.min = min_;
  profile.max = max_;
  profile.mean = mean_;
  profile.deviation = std::sqrt(squares_ / n);
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
      if (IsMissing(fields[i])) {
        present_[i] = absl::string_view();
        columns_[i].AddMissing();
      } else {
        columns_[i].Add(fields[i]);
      }
    }
    Sample();
    ++rows_;
  }
  void Finish(TableProfile* profile);

 private:
  bool IsMissing(absl::string_view field) {
    if (field.empty()) return true;
    const auto* const end = std::end(kMissingTexts);
    const auto* const found = std::find(std::begin(kMissingTexts), end, field);
    if (found == end) return false;
    seen_missing_[static_cast<size_t>(found - std::begin(kMissingTexts))] = true;
    return true;
  }
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
  bool seen_missing_[std::size(kMissingTexts)] = {};
};

void Profiler::Finish(TableProfile* profile) {
  profile->rows = rows_;
  for (size_t i = 0; i < columns_.size(); ++i) {
    profile->columns.push_back(columns_[i].Profile(profile->layout.columns[i]));
  }
  for (size_t i = 0; i < std::size(kMissingTexts); ++i) {
    if (seen_missing_[i]) profile->missing_values.emplace_back(kMissingTexts[i]);
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
  TextRow row;
  uint64_t rows = 0, bytes = 0;
  for (const std::string& file : files) {
    CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<TextTable> table, OpenLaidOut(file, layout));
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
  profiler.Finish(&profile);
  if (profile.rows > 0) return profile;
  return absl::DataLossError(absl::StrCat(path, ": no row follows the header line"));
}

std::optional<int64_t> TimeOrder(absl::string_view text) {
  int64_t number = 0;
  if (absl::SimpleAtoi(text, &number)) return number;
  if (!IsDate(text)) return std::nullopt;
  constexpr size_t kDigits = 14;  // YYYYMMDDhhmmss
  std::string digits;
  for (const char c : text) {
    if (c == '.' || c == '+' || c == 'Z' || digits.size() == kDigits) break;
    if (absl::ascii_isdigit(c)) digits.push_back(c);
  }
  digits.resize(kDigits, '0');
  return absl::SimpleAtoi(digits, &number) ? std::optional(number) : std::nullopt;
}

}  // namespace cistern
