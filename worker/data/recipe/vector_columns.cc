#include "worker/data/recipe/vector_columns.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "worker/data/recipe/field_values.h"

namespace cistern {
namespace {

constexpr size_t kMostPlaces = 4096;

std::vector<absl::string_view> NumbersOf(absl::string_view field) {
  return absl::StrSplit(InsideBrackets(field), absl::ByAnyChar(" ,|;\t\n"), absl::SkipEmpty());
}

// What a column of a list is: the number at a place, or one of all.
struct ListPart {
  enum class Kind { kPlace, kMean, kSize };
  Kind kind = Kind::kPlace;
  size_t place = 0;
};

std::optional<ListPart> PartOf(absl::string_view suffix) {
  if (suffix == "mean") return ListPart{ListPart::Kind::kMean};
  if (suffix == "size") return ListPart{ListPart::Kind::kSize};
  ListPart part;
  if (!absl::SimpleAtoi(suffix, &part.place) || part.place >= kMostPlaces) return std::nullopt;
  return part;
}

// A missing list has a missing mean and missing places; its size is 0. Text that is no number
// stays: the encoder, which reads it as a number, reports it.
std::string TextOf(const ListPart& part, const std::vector<absl::string_view>& numbers) {
  if (part.kind == ListPart::Kind::kSize) return absl::StrCat(numbers.size());
  if (part.kind == ListPart::Kind::kPlace) {
    return part.place < numbers.size() ? std::string(numbers[part.place]) : "";
  }
  double sum = 0;
  size_t count = 0;
  for (const absl::string_view text : numbers) {
    double value = 0;
    if (IsUsuallyMissing(text)) continue;
    if (ReadNumber(text, &value) != NumberKind::kFinite) return std::string(text);
    sum += value;
    ++count;
  }
  return count == 0 ? "" : absl::StrFormat("%.9g", sum / static_cast<double>(count));
}

class VectorTable : public ChangedTable {
 public:
  struct Added {
    std::string column;
    size_t list;  // the place of the column of lists
    ListPart part;
  };
  VectorTable(std::unique_ptr<TextTable> table, std::vector<Added> added)
      : ChangedTable(std::move(table)), columns_(table_->columns()), added_(std::move(added)) {
    for (const Added& one : added_) columns_.push_back(one.column);
  }

  const std::vector<std::string>& columns() const override { return columns_; }
  absl::StatusOr<bool> Next(TextRow* row) override {
    CISTERN_ASSIGN_OR_RETURN(const bool found, table_->Next(row));
    if (!found) return false;
    texts_.clear();
    std::vector<absl::string_view> numbers;
    for (size_t i = 0; i < added_.size(); ++i) {
      if (i == 0 || added_[i].list != added_[i - 1].list) {
        numbers = NumbersOf(row->fields[added_[i].list]);
      }
      texts_.push_back(TextOf(added_[i].part, numbers));
    }
    row->fields.insert(row->fields.end(), texts_.begin(), texts_.end());
    return true;
  }

 private:
  std::vector<std::string> columns_;
  const std::vector<Added> added_;
  std::deque<std::string> texts_;  // of the row
};

}  // namespace

std::unique_ptr<TextTable> WithVectors(std::unique_ptr<TextTable> table,
                                       const std::vector<std::string>& columns) {
  const std::vector<std::string>& own = table->columns();
  std::vector<VectorTable::Added> added;
  for (const std::string& name : columns) {
    const size_t dot = name.rfind('.');
    if (dot == std::string::npos) continue;
    const std::optional<ListPart> part = PartOf(absl::string_view(name).substr(dot + 1));
    if (!part || std::find(own.begin(), own.end(), name) != own.end()) continue;
    const auto list = std::find(own.begin(), own.end(), name.substr(0, dot));
    if (list == own.end()) continue;
    added.push_back({name, static_cast<size_t>(list - own.begin()), *part});
  }
  if (added.empty()) return table;
  return std::make_unique<VectorTable>(std::move(table), std::move(added));
}

void VectorFinder::Add(const std::vector<absl::string_view>& fields) {
  for (size_t i = 0; i < columns_.size() && i < fields.size(); ++i) {
    Column& column = columns_[i];
    if (column.others || IsUsuallyMissing(fields[i])) continue;
    const std::vector<absl::string_view> numbers = NumbersOf(fields[i]);
    for (const absl::string_view text : numbers) {
      ++column.values;
      column.others = column.others || !IsFiniteNumber(text);
      column.fractions += !IsInteger(text);
      column.truths += text == "0" || text == "1";
    }
    column.shortest = std::min(column.shortest, numbers.size());
    column.longest = std::max(column.longest, numbers.size());
  }
}

std::vector<std::string> VectorFinder::ColumnsOf(size_t place, const std::string& name) const {
  const Column& column = columns_[place];
  if (column.others || column.longest < 2 || column.longest > kMostPlaces) return {};
  const bool holds_fractions = 10 * column.fractions > 9 * column.values;
  const bool is_vector = column.shortest == column.longest;
  if (!holds_fractions && !(is_vector && column.truths == column.values)) return {};
  if (!is_vector) return {name + ".mean", name + ".size"};
  std::vector<std::string> columns;
  for (size_t i = 0; i < column.longest; ++i) columns.push_back(absl::StrCat(name, ".", i));
  return columns;
}

}  // namespace cistern
