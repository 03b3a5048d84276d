#include "cli/command/export_tables.h"

#include <set>

#include "cli/terminal/exit_code.h"
#include "common/base/nearest_name.h"

namespace cistern {

void AddTablesFlag(Command& command, std::vector<std::string>* names) {
  command.List("--tables", names, true,
               {"TABLE,...", "Tables to export; without it, all that the form can hold.",
                "--tables wide,deep"});
}

absl::StatusOr<std::vector<TableId>> TablesOf(const v1::Schema& schema,
                                              const std::vector<std::string>& names,
                                              bool (*wanted)(const v1::TableSpec&)) {
  std::vector<std::string> known;
  std::set<TableId> tables;
  for (const v1::TableSpec& spec : schema.tables()) {
    if (names.empty() && wanted(spec)) tables.insert(static_cast<TableId>(known.size()));
    known.push_back(spec.name());
  }
  for (const std::string& name : names) {
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--tables ", name, ": the model has no such embedding", Suggest(name, known)));
    }
    tables.insert(static_cast<TableId>(found - known.begin()));
  }
  if (tables.empty()) {
    return WithFix(
        absl::InvalidArgumentError(
            "this form needs the shows and clicks of rows, which only tables "
            "with the accessor ctr keep; the model has none"),
        "set cistern.embeddings.NAME.accessor to ctr before training, or choose another form");
  }
  return std::vector<TableId>(tables.begin(), tables.end());
}

}  // namespace cistern
