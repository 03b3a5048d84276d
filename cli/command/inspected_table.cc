// What table_model.h says about a table, as text and as JSON.
#include "cli/command/table_model.h"
#include "cli/terminal/aligned_text.h"
#include "cli/terminal/exit_code.h"

namespace cistern {

std::string TextOf(const InspectedTable& table) {
  std::vector<std::vector<std::string>> rows = {
      {"COLUMN", "TYPE", "DISTINCT", "MISSING", "ROLE", "NOTE"}};
  for (size_t i = 0; i < table.profile.columns.size(); ++i) {
    const ColumnProfile& column = table.profile.columns[i];
    const ColumnChoice& choice = table.plan.columns[i];
    rows.push_back({OneLine(column.name), Word(column.type),
                    absl::StrCat(column.distinct_exact ? "" : "~", column.distinct),
                    absl::StrCat(column.missing), Word(choice.role), OneLine(choice.note)});
  }
  return AlignedText(rows);
}

nlohmann::ordered_json JsonOf(const InspectedTable& table) {
  nlohmann::ordered_json json;
  json["rows"] = table.profile.rows;
  json["delimiter"] = std::string(1, table.profile.layout.delimiter);
  json["header"] = table.profile.layout.header;
  json["label"] = table.profile.columns[table.plan.label.column].name;
  for (const LabelChoice& head : table.plan.heads) {
    json["labels"].push_back(table.profile.columns[head.column].name);
  }
  if (table.plan.weight) json["weight"] = table.profile.columns[*table.plan.weight].name;
  json["slots"] = table.plan.slots;
  json["dense"] = table.plan.dense;
  json["columns"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < table.profile.columns.size(); ++i) {
    const ColumnProfile& column = table.profile.columns[i];
    const ColumnChoice& choice = table.plan.columns[i];
    json["columns"].push_back({{"column", column.name},
                               {"type", Word(column.type)},
                               {"distinct", column.distinct},
                               {"distinct_exact", column.distinct_exact},
                               {"missing", column.missing},
                               {"role", Word(choice.role)},
                               {"note", choice.note}});
  }
  return json;
}

}  // namespace cistern
