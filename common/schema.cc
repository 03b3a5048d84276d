#include "common/schema.h"

#include <google/protobuf/util/message_differencer.h>

#include <set>

#include "common/hash.h"
#include "common/names.h"
#include "common/value_layout.h"

namespace cistern {

uint64_t SchemaHash(const v1::Schema& schema) {
  if (schema.tables_size() == 0 && schema.dense_tables_size() == 0) return 0;
  // A message without maps and unknown fields serializes to the same bytes everywhere.
  const uint64_t hash = HashBytes(schema.SerializeAsString());
  return hash == 0 ? 1 : hash;
}

absl::Status CheckSchema(const v1::Schema& schema) {
  std::set<std::string> names;
  for (const v1::TableSpec& table : schema.tables()) {
    absl::StatusOr<ValueLayout> layout = ValueLayout::Create(table);
    if (!layout.ok()) return layout.status();
    if (!names.insert(table.name()).second) {
      return absl::InvalidArgumentError(absl::StrCat("two tables are called '", table.name(), "'"));
    }
  }
  for (const v1::DenseTableSpec& table : schema.dense_tables()) {
    CISTERN_RETURN_IF_ERROR(AddContext(CheckName(table.name()), "dense table name"));
    if (!names.insert(table.name()).second) {
      return absl::InvalidArgumentError(absl::StrCat("two tables are called '", table.name(), "'"));
    }
    if (table.columns_size() < 1 || table.columns_size() > 16) {
      return absl::InvalidArgumentError(
          absl::StrCat("dense table '", table.name(), "' has ", table.columns_size(),
                       " columns; it must have 1 to 16"));
    }
  }
  return absl::OkStatus();
}

std::string SchemaDifference(const v1::Schema& here, const v1::Schema& there) {
  google::protobuf::util::MessageDifferencer differencer;
  std::string report;
  differencer.ReportDifferencesToString(&report);
  if (differencer.Compare(here, there)) return "";
  // The first line is enough to act on: "modified: tables[0].dim: 16 -> 8".
  return report.substr(0, report.find('\n'));
}

}  // namespace cistern
