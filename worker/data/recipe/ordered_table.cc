#include "worker/data/recipe/ordered_table.h"

#include <algorithm>

#include "common/base/shown_text.h"
#include "worker/data/recipe/known_names.h"

namespace cistern::data {
namespace {

bool Holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class OrderedTable : public ChangedTable {
 public:
  OrderedTable(std::unique_ptr<TextTable> table, const std::vector<std::string>& order)
      : ChangedTable(std::move(table)), columns_(order) {
    const std::vector<std::string>& found = table_->columns();
    for (const std::string& name : order) {
      places_.push_back(
          static_cast<size_t>(std::find(found.begin(), found.end(), name) - found.begin()));
    }
  }

  const std::vector<std::string>& columns() const override { return columns_; }
  absl::StatusOr<bool> Next(TextRow* row) override {
    CISTERN_ASSIGN_OR_RETURN(const bool found, table_->Next(&read_));
    row->line = read_.line;
    row->fields.resize(places_.size());
    for (size_t i = 0; found && i < places_.size(); ++i) {
      row->fields[i] =
          places_[i] < read_.fields.size() ? read_.fields[places_[i]] : absl::string_view();
    }
    return found;
  }

 private:
  const std::vector<std::string> columns_;
  std::vector<size_t> places_;  // in a row of the table, by column; beyond its end: absent
  TextRow read_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TextTable>> InOrder(std::unique_ptr<TextTable> table,
                                                   const std::string& path,
                                                   const std::vector<std::string>& order,
                                                   const std::string& first) {
  table = WithKnownNames(std::move(table), order);
  const std::vector<std::string>& found = table->columns();
  for (const std::string& name : order) {
    if (Holds(found, name)) continue;
    return WithOptions(
        absl::DataLossError(absl::StrCat(
            path, ": line 1: there is no column '", ShownText(name), "', which ", first,
            " has (columns are matched by name, in any order): rename it in this file, leave the "
            "file out, or let the column be empty in it")),
        {absl::StrCat("add_column=", name)});
  }
  for (const std::string& name : found) {
    if (Holds(order, name)) continue;
    return WithOptions(absl::DataLossError(absl::StrCat(
                           path, ": line 1: column '", ShownText(name), "' is not in ", first,
                           ": remove or rename it in this file, or let it be empty in the others")),
                       {absl::StrCat("add_column=", name)});
  }
  return InOrderAsFound(std::move(table), order);
}

std::unique_ptr<TextTable> InOrderAsFound(std::unique_ptr<TextTable> table,
                                          const std::vector<std::string>& order) {
  if (table->columns() == order) return table;
  return std::make_unique<OrderedTable>(std::move(table), order);
}

std::unique_ptr<TextTable> WithEmptyColumns(std::unique_ptr<TextTable> table,
                                            const std::vector<std::string>& names) {
  std::vector<std::string> columns = table->columns();
  for (const std::string& name : names) {
    if (!Holds(columns, name)) columns.push_back(name);
  }
  return InOrderAsFound(std::move(table), columns);
}

}  // namespace cistern::data
