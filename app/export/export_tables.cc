#include "app/export/export_tables.h"

#include <algorithm>
#include <set>

#include "common/base/nearest_name.h"

namespace cistern::app {

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
      return WithOptions(absl::InvalidArgumentError(absl::StrCat("the model has no embedding '",
                                                                 name, "'", Suggest(name, known))),
                         {"tables"});
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

absl::StatusOr<uint32_t> FileCount(uint64_t files) {
  if (files <= UINT32_MAX) return static_cast<uint32_t>(files);
  return WithOptions(absl::InvalidArgumentError(absl::StrCat(files, " files are too many")),
                     {"files"});
}

}  // namespace cistern::app
