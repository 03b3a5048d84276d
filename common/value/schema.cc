#include "common/value/schema.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>

#include <cmath>
#include <set>

#include "absl/strings/str_join.h"
#include "common/base/hash.h"
#include "common/base/names.h"
#include "common/value/value_layout.h"

namespace cistern {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::TextFormat;

// A field as readable text: a number, a quoted string, an enumerator; a list as [a, b].
std::string FieldText(const Message& message, const FieldDescriptor* field) {
  std::string text, element;
  if (!field->is_repeated()) {
    TextFormat::PrintFieldValueToString(message, field, -1, &text);
    return text;
  }
  const int size = message.GetReflection()->FieldSize(message, field);
  for (int i = 0; i < size; ++i) {
    TextFormat::PrintFieldValueToString(message, field, i, &element);
    absl::StrAppend(&text, i > 0 ? ", " : "", element);
  }
  return absl::StrCat("[", text, "]");
}

bool IsMessage(const FieldDescriptor* field) {
  return field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
}

// The first field in which two messages differ: "rule.kind is ADAM here and SGD there".
// path: of the messages, with a trailing dot, or empty.
std::string FieldDifference(const Message& here, const Message& there, const std::string& path) {
  const Reflection* reflection = here.GetReflection();
  for (int i = 0; i < here.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = here.GetDescriptor()->field(i);
    const std::string name = path + field->name();
    if (IsMessage(field)) {
      const bool set = reflection->HasField(here, field);
      if (set != reflection->HasField(there, field)) {
        return absl::StrCat(name,
                            set ? " is set here but not there" : " is set there but not here");
      }
      const std::string difference = FieldDifference(
          reflection->GetMessage(here, field), reflection->GetMessage(there, field), name + ".");
      if (!difference.empty()) return difference;
      continue;
    }
    const std::string a = FieldText(here, field), b = FieldText(there, field);
    if (a != b) return absl::StrCat(name, " is ", a, " here and ", b, " there");
  }
  return "";
}

// The first difference between two lists of tables. kind: "table" or "dense table".
template <typename Tables>
std::string TablesDifference(const std::string& kind, const Tables& here, const Tables& there) {
  for (int i = 0; i < here.size() && i < there.size(); ++i) {
    if (here[i].name() != there[i].name()) {
      return absl::StrCat(kind, " ", i, " is called '", here[i].name(), "' here and '",
                          there[i].name(), "' there");
    }
    const std::string difference = FieldDifference(here[i], there[i], "");
    if (!difference.empty()) return absl::StrCat(kind, " '", here[i].name(), "': ", difference);
  }
  if (here.size() == there.size()) return "";
  if (here.size() > there.size()) {
    return absl::StrCat(kind, " '", here[there.size()].name(), "' exists here but not there");
  }
  return absl::StrCat(kind, " '", there[here.size()].name(), "' exists there but not here");
}

// The requirements of a dense rule: columns in this order (none: any), and the constants to check.
struct DenseRuleNeeds {
  std::vector<std::string> columns;
  bool learning_rate = false, betas = false, epsilon = false, sums = false, decay = false;
};

DenseRuleNeeds NeedsOf(v1::DenseRule::Kind kind) {
  switch (kind) {
    case v1::DenseRule::SGD:
      return {.columns = {"w"}, .learning_rate = true};
    case v1::DenseRule::ADAM:
      return {.columns = {"w", "m", "v", "step"},
              .learning_rate = true,
              .betas = true,
              .epsilon = true};
    case v1::DenseRule::ADAM_D2SUM:
      return {.columns = {"w", "avg_w", "ada_d2sum", "ada_g2sum", "mom_velocity"},
              .learning_rate = true,
              .epsilon = true,
              .sums = true};
    case v1::DenseRule::SUM:
      return {.columns = {"w"}};
    case v1::DenseRule::SUMMARY:
      return {.columns = {"w"}, .decay = true};
    default:
      return {};
  }
}

absl::Status CheckConstants(const v1::DenseRule& rule) {
  const DenseRuleNeeds needs = NeedsOf(rule.kind());
  const auto below_one = [](float x) { return x >= 0.0f && x < 1.0f; };
  const auto positive = [](float x) { return x > 0.0f && std::isfinite(x); };
  const struct {
    const char* name;
    bool needed;
    float value;
    bool fits;
    const char* range;
  } constants[] = {
      {"learning_rate", needs.learning_rate, rule.learning_rate(), positive(rule.learning_rate()),
       "above 0"},
      {"beta1", needs.betas, rule.beta1(), below_one(rule.beta1()), "in [0, 1)"},
      {"beta2", needs.betas, rule.beta2(), below_one(rule.beta2()), "in [0, 1)"},
      {"epsilon", needs.epsilon, rule.epsilon(), positive(rule.epsilon()), "above 0"},
      {"rho", needs.sums, rule.rho(), below_one(rule.rho()), "in [0, 1)"},
      {"mu", needs.sums, rule.mu(), below_one(rule.mu()), "in [0, 1)"},
      {"decay", needs.decay, rule.decay(), positive(rule.decay()) && rule.decay() <= 1.0f,
       "above 0 and at most 1"},
  };
  for (const auto& constant : constants) {
    if (!constant.needed || constant.fits) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        constant.name, " of the rule is ", constant.value, "; it must be ", constant.range));
  }
  return absl::OkStatus();
}

absl::Status CheckDenseTable(const v1::DenseTableSpec& table) {
  if (table.columns_size() < 1 || table.columns_size() > 16) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has ", table.columns_size(), " columns; it must have 1 to 16"));
  }
  if (!v1::DenseRule::Kind_IsValid(table.rule().kind())) {
    return absl::InvalidArgumentError(
        absl::StrCat("rule ", static_cast<int>(table.rule().kind()), " does not exist"));
  }
  for (const std::string& column : table.columns()) {
    CISTERN_RETURN_IF_ERROR(AddContext(CheckName(column), "column name"));
  }
  const std::vector<std::string> needed = NeedsOf(table.rule().kind()).columns;
  const std::vector<std::string> columns(table.columns().begin(), table.columns().end());
  if (!needed.empty() && columns != needed) {
    return absl::InvalidArgumentError(absl::StrCat(
        "its columns are ", absl::StrJoin(columns, " "), "; its rule ",
        v1::DenseRule::Kind_Name(table.rule().kind()), " needs ", absl::StrJoin(needed, " ")));
  }
  return CheckConstants(table.rule());
}

// Checked before the tables themselves: a hostile caller may send any number of them.
absl::Status CheckSize(const v1::Schema& schema) {
  const int64_t tables = int64_t{schema.tables_size()} + schema.dense_tables_size();
  if (tables > kMaxTables) {
    return absl::InvalidArgumentError(
        absl::StrCat("the schema has ", tables, " tables; the limit is ", kMaxTables));
  }
  if (const size_t bytes = schema.ByteSizeLong(); bytes > kMaxSchemaBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the schema has ", bytes, " bytes; the limit is ", kMaxSchemaBytes));
  }
  return absl::OkStatus();
}

// Adds the cells of `table`, whose columns were checked, to *cells.
absl::Status CountCells(const v1::DenseTableSpec& table, uint64_t* cells) {
  const auto columns = static_cast<uint64_t>(table.columns_size());
  if (table.rows() <= (kMaxDenseCells - *cells) / columns) {
    *cells += table.rows() * columns;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "its ", table.rows(), " rows of ", columns, " columns raise the dense tables above ",
      kMaxDenseCells, " cells in total; keep that many parameters in a sparse table"));
}

}  // namespace

uint64_t SchemaHash(const v1::Schema& schema) {
  if (schema.tables_size() == 0 && schema.dense_tables_size() == 0) return 0;
  // A message without maps or unknown fields serializes to the same bytes everywhere.
  const uint64_t hash = HashBytes(schema.SerializeAsString());
  return hash == 0 ? 1 : hash;
}

std::vector<std::string> TableNames(const v1::Schema& schema) {
  std::vector<std::string> names;
  for (const v1::TableSpec& table : schema.tables()) names.push_back(table.name());
  for (const v1::DenseTableSpec& table : schema.dense_tables()) names.push_back(table.name());
  return names;
}

absl::Status CheckSchema(const v1::Schema& schema) {
  CISTERN_RETURN_IF_ERROR(CheckSize(schema));
  std::set<std::string> names;
  for (const v1::TableSpec& table : schema.tables()) {
    CISTERN_RETURN_IF_ERROR(ValueLayout::Create(table).status());
    if (!names.insert(table.name()).second) {
      return absl::InvalidArgumentError(absl::StrCat("two tables are called '", table.name(), "'"));
    }
  }
  uint64_t dense_cells = 0;
  for (const v1::DenseTableSpec& table : schema.dense_tables()) {
    CISTERN_RETURN_IF_ERROR(AddContext(CheckName(table.name()), "dense table name"));
    if (!names.insert(table.name()).second) {
      return absl::InvalidArgumentError(absl::StrCat("two tables are called '", table.name(), "'"));
    }
    const std::string name = absl::StrCat("dense table '", table.name(), "'");
    CISTERN_RETURN_IF_ERROR(AddContext(CheckDenseTable(table), name));
    CISTERN_RETURN_IF_ERROR(AddContext(CountCells(table, &dense_cells), name));
  }
  return absl::OkStatus();
}

std::string SchemaDifference(const v1::Schema& here, const v1::Schema& there) {
  const std::string sparse = TablesDifference("table", here.tables(), there.tables());
  if (!sparse.empty()) return sparse;
  return TablesDifference("dense table", here.dense_tables(), there.dense_tables());
}

}  // namespace cistern
