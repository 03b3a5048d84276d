#include "worker/data/recipe/known_names.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace cistern::data {
namespace {

class RenamedTable : public ChangedTable {
 public:
  RenamedTable(std::unique_ptr<TextTable> table, std::vector<std::string> names)
      : ChangedTable(std::move(table)), columns_(std::move(names)) {}

  const std::vector<std::string>& columns() const override { return columns_; }
  absl::StatusOr<bool> Next(TextRow* row) override { return table_->Next(row); }
  std::vector<std::string> list_columns() const override {
    std::vector<std::string> lists;
    const std::vector<std::string> own = table_->list_columns();
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (std::count(own.begin(), own.end(), table_->columns()[i]) > 0) {
        lists.push_back(columns_[i]);
      }
    }
    return lists;
  }
  std::string WhyUnreadable(const std::string& column) const override {
    const auto place = std::find(columns_.begin(), columns_.end(), column);
    if (place == columns_.end()) return "";
    return table_->WhyUnreadable(table_->columns()[place - columns_.begin()]);
  }

 private:
  const std::vector<std::string> columns_;
};

bool IsSame(absl::string_view column, absl::string_view name) {
  return absl::StripAsciiWhitespace(column) == name;
}

}  // namespace

char SeparatorOf(const ListSeparators& separators, const std::string& column) {
  if (const auto found = separators.find(column); found != separators.end()) return found->second;
  for (const auto& [name, separator] : separators) {
    if (absl::EqualsIgnoreCase(name, column)) return separator;
  }
  return kListSeparator;
}

const std::string* FindInAnyCase(absl::string_view name, const std::vector<std::string>& names) {
  const std::string* found = nullptr;
  for (const std::string& other : names) {
    if (!absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(other),
                                absl::StripAsciiWhitespace(name))) {
      continue;
    }
    if (found != nullptr) return nullptr;
    found = &other;
  }
  return found;
}

std::vector<std::string> KnownNames(const std::vector<std::string>& columns,
                                    const std::vector<std::string>& known) {
  const std::set<absl::string_view> exact(known.begin(),
                                          known.end());  // a table may have thousands
  std::vector<std::string> names = columns;
  for (std::string& name : names) {
    if (exact.count(name) > 0) continue;
    const std::string* const other = FindInAnyCase(name, known);
    if (other == nullptr || IsSame(name, *other)) continue;
    // Of two columns that differ in case, neither is the known one.
    if (FindInAnyCase(*other, columns) != nullptr) name = *other;
  }
  return names;
}

std::unique_ptr<TextTable> WithKnownNames(std::unique_ptr<TextTable> table,
                                          const std::vector<std::string>& known) {
  std::vector<std::string> names = KnownNames(table->columns(), known);
  if (names == table->columns()) return table;
  return std::make_unique<RenamedTable>(std::move(table), std::move(names));
}

}  // namespace cistern::data
