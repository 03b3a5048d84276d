#include "worker/data/prepare/table_profile.h"

#include <algorithm>
#include <random>
#include <set>

#include "common/base/hash.h"
#include "worker/data/prepare/column_counter.h"
#include "worker/data/prepare/column_name.h"
#include "worker/data/prepare/key_counter.h"
#include "worker/data/prepare/laid_out_table.h"
#include "worker/data/recipe/ordered_table.h"
#include "worker/data/recipe/part_columns.h"
#include "worker/data/recipe/table_files.h"
#include "worker/data/recipe/value_text.h"

namespace cistern::data {
namespace {

constexpr uint64_t kRowsPerReport = 4096;
constexpr size_t kCountedValues = size_t{1} << 22;  // over all columns
constexpr size_t kMinCounted = 1024, kMaxCounted = size_t{1} << 16;

// Values of a column that are counted exactly.
size_t CountedOf(size_t columns) {
  return std::clamp(kCountedValues / columns, kMinCounted, kMaxCounted);
}

class Profiler {
 public:
  explicit Profiler(size_t columns)
      : columns_(columns, ColumnCounter(CountedOf(columns))),
        sample_rows_(std::min(TableProfile::kSampleRows,
                              std::max<size_t>(1, TableProfile::kSampleCells / columns))),
        hashed_rows_(std::min(TableProfile::kHashedRows,
                              std::max<size_t>(1, TableProfile::kHashedCells / columns))) {}

  void Add(const std::vector<absl::string_view>& fields) {
    distinct_.Add(HashOfRow(fields));
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
    SampleHashes();
    ++rows_;
  }
  // unreadable: why, by column.
  void Finish(const std::vector<std::string>& unreadable, TableProfile* profile);

 private:
  // Where the row goes in a sample of so many rows; that many: nowhere. Reservoir sampling (Vitter
  // 1985, algorithm R).
  size_t PlaceIn(size_t sample_rows, std::mt19937_64* draw) const {
    if (rows_ < sample_rows) return rows_;
    return std::min<size_t>((*draw)() % (rows_ + 1), sample_rows);
  }

  void Sample() {
    const size_t place = PlaceIn(sample_rows_, &draw_);
    if (place == sample_rows_) return;
    if (place == sample_.size()) sample_.emplace_back();
    std::vector<std::string>& row = sample_[place];
    row.clear();
    for (const absl::string_view field : present_) {
      row.emplace_back(field.substr(0, TableProfile::kSampleText));
    }
  }

  void SampleHashes() {
    const size_t place = PlaceIn(hashed_rows_, &draw_hashed_);
    if (place == hashed_rows_) return;
    const size_t first = place * present_.size();
    if (first == hashes_.size()) hashes_.resize(first + present_.size());
    for (size_t i = 0; i < present_.size(); ++i) hashes_[first + i] = HashOfField(present_[i]);
  }

  std::vector<ColumnCounter> columns_;
  KeyCounter distinct_;  // rows
  const size_t sample_rows_, hashed_rows_;
  std::mt19937_64 draw_{1}, draw_hashed_{2};
  uint64_t rows_ = 0;
  std::vector<absl::string_view> present_;
  std::vector<std::vector<std::string>> sample_;
  std::vector<uint32_t> hashes_;
};

void Profiler::Finish(const std::vector<std::string>& unreadable, TableProfile* profile) {
  profile->rows = rows_;
  profile->distinct_rows = distinct_.Distinct();
  for (size_t i = 0; i < columns_.size(); ++i) {
    profile->columns.push_back(columns_[i].Profile(profile->layout.columns[i]));
    profile->columns.back().unreadable = unreadable[i];
  }
  profile->sample = std::move(sample_);
  profile->field_hashes = std::move(hashes_);
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

namespace {

// A column of text, or of numbers with points, that may be one of numbers in another form than the
// plain one.
class WrittenNumbers {
 public:
  WrittenNumbers(size_t place, NumberForm form, size_t counted)
      : place_(place), form_(std::move(form)), counter_(counted) {
    form_.none.clear();  // those of all rows follow
  }

  void Add(absl::string_view field) {
    if (kinds_.size() > kMaxNoneTexts) return;
    if (IsUsuallyMissing(field)) return counter_.AddMissing();
    if (PlainNumber(field, form_, &plain_)) return counter_.Add(plain_);
    kinds_.insert(std::string(field));
    ++none_;
    counter_.AddMissing();
  }
  size_t place() const { return place_; }
  // Replaces the column of text, if nearly all rows fit.
  void Finish(TableProfile* profile);

 private:
  const size_t place_;
  NumberForm form_;
  ColumnCounter counter_;
  std::set<std::string> kinds_;  // of texts that stand for no number
  uint64_t none_ = 0;
  std::string plain_;
};

void WrittenNumbers::Finish(TableProfile* profile) {
  constexpr uint64_t kNumbersPerNone = 2;
  constexpr uint64_t kMinWritten = 50;  // distinct; fewer are as good as texts
  if (kinds_.size() > kMaxNoneTexts) return;
  ColumnProfile& column = profile->columns[place_];
  form_.none.assign(kinds_.begin(), kinds_.end());
  ColumnProfile numbers = counter_.Profile(column.name);
  const uint64_t present = profile->rows - numbers.missing;
  if (numbers.distinct <= kMinWritten || present < kNumbersPerNone * none_) return;
  column = std::move(numbers);
  column.number_form = form_;
  for (std::vector<std::string>& row : profile->sample) {
    row[place_] = std::string(PlainField(row[place_], form_, &plain_));
  }
}

std::vector<WrittenNumbers> FindWrittenNumbers(const TableProfile& profile) {
  std::vector<WrittenNumbers> found;
  const auto& lists = profile.layout.lists;
  for (size_t i = 0; i < profile.columns.size(); ++i) {
    const ColumnProfile& column = profile.columns[i];
    const bool is_list = std::find(lists.begin(), lists.end(), column.name) != lists.end();
    const bool is_number = column.type == ColumnType::kNumber;
    if (!is_number && column.type != ColumnType::kText) continue;
    if (is_list || NumbersThings(column.name)) continue;
    std::vector<std::string> texts;
    for (const std::vector<std::string>& row : profile.sample) texts.push_back(row[i]);
    std::optional<NumberForm> form = FindNumberForm(texts);
    if (is_number && (!form || form->group != '.'))
      continue;  // plain, unless points mean thousands
    if (form) found.emplace_back(i, *std::move(form), CountedOf(profile.columns.size()));
  }
  return found;
}

using OnRow = std::function<void(const std::vector<absl::string_view>&)>;

// Calls on_row for every row. unreadable: gets why columns cannot be read.
absl::Status ForEachRow(const TableProfile& profile, const ProfileProgress& progress,
                        std::vector<std::string>* unreadable, const OnRow& on_row) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> files, TableFiles(profile.path));
  const std::vector<std::string>& columns = profile.layout.columns;
  TextRow row;
  uint64_t rows = 0, bytes = 0;
  for (const std::string& file : files) {
    CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<TextTable> table, OpenLaidOut(file, profile.layout));
    if (unreadable->empty()) {
      for (const std::string& name : columns) unreadable->push_back(table->WhyUnreadable(name));
    }
    CISTERN_ASSIGN_OR_RETURN(table, InOrder(std::move(table), file, columns, files.front()));
    for (;; ++rows) {
      CISTERN_ASSIGN_OR_RETURN(const bool found, table->Next(&row));
      if (!found) break;
      on_row(row.fields);
      if (rows % kRowsPerReport == 0 && progress && !progress(rows, bytes + table->bytes_read())) {
        return absl::CancelledError(absl::StrCat(profile.path, ": the inspection was stopped"));
      }
    }
    bytes += table->bytes_read();
  }
  return absl::OkStatus();
}

// The layout with the parts that the first `own` columns have by all rows; nothing: it has them.
std::optional<TableLayout> WithAllParts(const TableLayout& layout, const PartFinder& finder,
                                        size_t own) {
  if (own == 0) return std::nullopt;
  TableLayout whole = layout;
  whole.columns.resize(own);
  whole.parts = NewParts(finder, whole.columns);
  if (whole.parts == layout.parts) return std::nullopt;
  whole.columns.insert(whole.columns.end(), whole.parts.begin(), whole.parts.end());
  return whole;
}

}  // namespace

uint32_t HashOfField(absl::string_view field) {
  return field.empty() ? 0 : static_cast<uint32_t>(HashBytes(field.data(), field.size()));
}

uint64_t HashOfRow(const std::vector<absl::string_view>& fields) {
  uint64_t hash = 0;
  for (const absl::string_view field : fields) {
    hash = MixKey(hash ^ HashBytes(field.data(), field.size()));
  }
  return hash;
}

absl::StatusOr<TableProfile> ProfileTable(const std::string& path, const TableLayout& layout,
                                          const ProfileProgress& progress) {
  TableProfile profile;
  profile.path = path;
  profile.layout = layout;
  Profiler profiler(layout.columns.size());
  const size_t own = layout.has_feature_lines() ? 0 : layout.columns.size() - layout.parts.size();
  PartFinder finder(own);
  std::vector<std::string> unreadable;
  CISTERN_RETURN_IF_ERROR(ForEachRow(profile, progress, &unreadable, [&](const auto& fields) {
    profiler.Add(fields);
    finder.Add(fields);
  }));
  if (const std::optional<TableLayout> whole = WithAllParts(layout, finder, own)) {
    return ProfileTable(path, *whole, progress);
  }
  profiler.Finish(unreadable, &profile);
  for (size_t i = 0; i < own; ++i) {
    const PartFinder::Parts parts = finder.PartsOf(i, layout.columns[i]);
    profile.columns[i].odd = parts.odd;
    profile.columns[i].first_odd = parts.first_odd;
    profile.columns[i].has_members = parts.are_members;
  }
  if (profile.rows == 0) {
    return absl::DataLossError(absl::StrCat(path, ": no row follows the header line"));
  }
  std::vector<WrittenNumbers> written = FindWrittenNumbers(profile);
  if (written.empty()) return profile;
  CISTERN_RETURN_IF_ERROR(ForEachRow(profile, progress, &unreadable, [&](const auto& fields) {
    for (WrittenNumbers& column : written) column.Add(fields[column.place()]);
  }));
  for (WrittenNumbers& column : written) column.Finish(&profile);
  return profile;
}

}  // namespace cistern::data
