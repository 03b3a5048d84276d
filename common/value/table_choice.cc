#include "common/value/table_choice.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/value/schema.h"

namespace cistern {
namespace {

// Empty if both have tables with the same names.
template <typename Tables>
std::string NameDifference(const Tables& here, const Tables& there) {
  for (const auto& table : here) {
    if (FindTable(there, table.name()) == nullptr) {
      return absl::StrCat("table '", table.name(), "' exists here but not there");
    }
  }
  for (const auto& table : there) {
    if (FindTable(here, table.name()) == nullptr) {
      return absl::StrCat("table '", table.name(), "' exists there but not here");
    }
  }
  return "";
}

// Why the tables of `there` cannot be converted to those of `here`; empty if they can. Ignores the
// row counts of dense tables.
std::string UpgradeDifference(const v1::Schema& here, const v1::Schema& there) {
  std::string difference = NameDifference(here.tables(), there.tables());
  if (difference.empty()) difference = NameDifference(here.dense_tables(), there.dense_tables());
  if (!difference.empty()) return difference;
  for (const v1::TableSpec& table : here.tables()) {
    if (table.accessor() == FindTable(there.tables(), table.name())->accessor()) continue;
    return absl::StrCat("table '", table.name(), "' has a different accessor");
  }
  return "";
}

// Names the first table of `only` that the schema lacks; empty if it has them all. where: "here" or
// "there".
std::string MissingName(const v1::Schema& schema, const std::vector<std::string>& only,
                        const char* where) {
  const std::vector<std::string> names = TableNames(schema);
  for (const std::string& name : only) {
    if (absl::c_linear_search(names, name)) continue;
    return absl::StrCat("there is no table '", name, "' ", where, ", only ",
                        absl::StrJoin(names, ", "));
  }
  return "";
}

// The tables of `only`, in its order; all of them if it is empty.
v1::Schema Part(const v1::Schema& schema, const std::vector<std::string>& only) {
  if (only.empty()) return schema;
  v1::Schema part;
  for (const std::string& name : only) {
    if (const auto* table = FindTable(schema.tables(), name)) *part.add_tables() = *table;
    if (const auto* table = FindTable(schema.dense_tables(), name)) {
      *part.add_dense_tables() = *table;
    }
  }
  return part;
}

void LeaveOut(const std::string& name, const std::string& reason, TableChoice* choice) {
  v1::TableLeftOut& table = choice->left_out.emplace_back();
  table.set_name(name);
  table.set_reason(reason);
}

// Leaves out the tables of `here` that are not in `only`, and dense tables whose row count differs
// from `there`.
void LeaveOut(const v1::Schema& here, const v1::Schema& there, const std::vector<std::string>& only,
              TableChoice* choice) {
  const auto asked = [&only](const std::string& name) {
    return only.empty() || absl::c_linear_search(only, name);
  };
  for (const std::string& name : TableNames(here)) {
    if (!asked(name)) {
      LeaveOut(name, "not asked for", choice);
      continue;
    }
    const v1::DenseTableSpec* dense = FindTable(here.dense_tables(), name);
    if (dense == nullptr) continue;
    const uint64_t rows = FindTable(there.dense_tables(), name)->rows();
    if (rows == dense->rows()) continue;
    LeaveOut(name, absl::StrCat(dense->rows(), " rows here, ", rows, " in the files"), choice);
    if (!only.empty()) {
      choice->difference = absl::StrCat("dense table '", name, "' has ", dense->rows(),
                                        " rows here and ", rows, " there; it can only be left out");
    }
  }
}

}  // namespace

bool TableChoice::Reads(const std::string& table) const {
  return absl::c_none_of(left_out,
                         [&](const v1::TableLeftOut& other) { return other.name() == table; });
}

TableChoice ChooseTables(const v1::Schema& here, const v1::Schema& there,
                         const std::vector<std::string>& only, bool upgrade) {
  TableChoice choice;
  choice.difference = MissingName(here, only, "here");
  if (choice.difference.empty()) choice.difference = MissingName(there, only, "there");
  if (!choice.difference.empty()) return choice;
  const v1::Schema ours = Part(here, only), theirs = Part(there, only);
  if (!upgrade) {
    choice.difference = SchemaDifference(ours, theirs);
    choice.upgrade_cures =
        !choice.difference.empty() && ChooseTables(here, there, only, true).difference.empty();
    if (choice.difference.empty()) LeaveOut(here, there, only, &choice);
    return choice;
  }
  choice.difference = UpgradeDifference(ours, theirs);
  if (choice.difference.empty()) LeaveOut(here, there, only, &choice);
  return choice;
}

absl::Status OtherTables(const TableChoice& choice, const absl::Status& error) {
  if (!choice.upgrade_cures) return error;
  return WithOptions(
      WithMessage(error, absl::StrCat(error.message(), "; to convert its rows, load with upgrade")),
      {"load.upgrade"});
}

}  // namespace cistern
