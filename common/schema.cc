#include "common/schema.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>

#include <set>

#include "common/hash.h"
#include "common/names.h"
#include "common/value_layout.h"

namespace cistern {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::TextFormat;

// A field as people read it: a number, a quoted text, an enumerator; a list as [a, b].
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
// path: of the messages, with a dot behind it, or empty.
std::string FieldDifference(const Message& here, const Message& there, const std::string& path) {
  const Reflection* reflection = here.GetReflection();
  for (int i = 0; i < here.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = here.GetDescriptor()->field(i);
    const std::string name = path + field->name();
    if (IsMessage(field)) {
      const bool set = reflection->HasField(here, field);
      if (set != reflection->HasField(there, field)) {
        return absl::StrCat(name,
                            set ? " is set here and not there" : " is set there and not here");
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

// The first difference of two lists of tables. kind: "table" or "dense table".
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
    return absl::StrCat(kind, " '", here[there.size()].name(), "' is here and not there");
  }
  return absl::StrCat(kind, " '", there[here.size()].name(), "' is there and not here");
}

}  // namespace

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
      return absl::InvalidArgumentError(absl::StrCat("dense table '", table.name(), "' has ",
                                                     table.columns_size(),
                                                     " columns; it must have 1 to 16"));
    }
  }
  return absl::OkStatus();
}

std::string SchemaDifference(const v1::Schema& here, const v1::Schema& there) {
  const std::string sparse = TablesDifference("table", here.tables(), there.tables());
  if (!sparse.empty()) return sparse;
  return TablesDifference("dense table", here.dense_tables(), there.dense_tables());
}

}  // namespace cistern
