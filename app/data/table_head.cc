#include "app/data/table_head.h"

#include "app/data/missing_file.h"
#include "common/base/shown_text.h"
#include "worker/data/prepare/column_list.h"
#include "worker/data/prepare/laid_out_table.h"
#include "worker/data/recipe/ordered_table.h"
#include "worker/data/recipe/table_files.h"

namespace cistern::app {
namespace {

absl::StatusOr<TableHead> Read(const std::string& path, uint64_t rows,
                               const data::LayoutWishes& wishes) {
  TableHead head;
  CISTERN_ASSIGN_OR_RETURN(head.layout, data::FindLayout(path, wishes));
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> files, data::TableFiles(path));
  data::TextRow row;
  for (const std::string& file : files) {
    if (head.rows.size() >= rows) break;
    CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<data::TextTable> table,
                             data::OpenLaidOut(file, head.layout));
    CISTERN_ASSIGN_OR_RETURN(
        table, data::InOrder(std::move(table), file, head.layout.columns, files.front()));
    while (head.rows.size() < rows) {
      CISTERN_ASSIGN_OR_RETURN(const bool found, table->Next(&row));
      if (!found) break;
      head.rows.emplace_back(row.fields.begin(), row.fields.end());
    }
  }
  return head;
}

}  // namespace

absl::StatusOr<TableHead> ReadTableHead(const TableHeadOptions& options) {
  data::LayoutWishes wishes;
  wishes.delimiter = options.delimiter;
  wishes.add_columns = options.add_columns;
  absl::StatusOr<std::vector<std::string>> columns = data::ExpandColumns(options.columns);
  if (!columns.ok()) return WithOptions(columns.status(), {"columns"});
  wishes.columns = *std::move(columns);
  return MissingIsWrong(Read(options.table, options.rows, wishes));
}

nlohmann::ordered_json JsonOf(const TableHead& head) {
  nlohmann::ordered_json json;
  json["columns"] = nlohmann::ordered_json::array();
  for (const std::string& column : head.layout.columns)
    json["columns"].push_back(ShownText(column));
  json["rows"] = nlohmann::ordered_json::array();
  for (const std::vector<std::string>& row : head.rows) {
    nlohmann::ordered_json& fields = json["rows"].emplace_back(nlohmann::ordered_json::array());
    for (const std::string& field : row) fields.push_back(ShownText(field));
  }
  return json;
}

}  // namespace cistern::app
