#include "common/rpc/audit_log.h"

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace cistern {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using nlohmann::ordered_json;

constexpr size_t kMaxTextBytes = 500;

std::string Short(absl::string_view text) {
  if (text.size() <= kMaxTextBytes) return std::string(text);
  return absl::StrCat(text.substr(0, kMaxTextBytes), "...");
}

ordered_json ValueOf(const Message& message, const FieldDescriptor& field) {
  const google::protobuf::Reflection& read = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return read.GetBool(message, &field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return read.GetUInt32(message, &field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return read.GetUInt64(message, &field);
    case FieldDescriptor::CPPTYPE_INT32:
      return read.GetInt32(message, &field);
    case FieldDescriptor::CPPTYPE_INT64:
      return read.GetInt64(message, &field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return read.GetDouble(message, &field);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return read.GetFloat(message, &field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return read.GetEnumValue(message, &field);
    case FieldDescriptor::CPPTYPE_STRING:
      if (field.type() == FieldDescriptor::TYPE_BYTES) return nullptr;
      return Short(read.GetString(message, &field));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return nullptr;
  }
  return nullptr;
}

// The numbers and texts of a request that are set; of its identity, the term.
ordered_json FactsOf(const Message& message) {
  ordered_json facts = ordered_json::object();
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->is_repeated() || absl::StrContains(field->name(), "secret")) continue;
    if (field->name() == "identity") {
      const Message& identity = message.GetReflection()->GetMessage(message, field);
      const FieldDescriptor* const term = identity.GetDescriptor()->FindFieldByName("epoch");
      if (term != nullptr) facts["term"] = ValueOf(identity, *term);
      continue;
    }
    ordered_json value = ValueOf(message, *field);
    if (!value.is_null()) facts[field->name()] = std::move(value);
  }
  return facts;
}

}  // namespace

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const std::string& path, uint32_t server) {
  LineLogOptions options;
  options.name = "the audit log";
  options.path = path;
  options.appends = true;
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<LineLog> file, LineLog::Open(options));
  return std::unique_ptr<AuditLog>(new AuditLog(std::move(file), server));
}

void AuditLog::Write(const Caller& caller, absl::string_view cluster, absl::string_view method,
                     const Message* request, const absl::Status& outcome) {
  ordered_json line;
  line["time"] = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone());
  line["server"] = server_;
  if (caller.certificate != nullptr) {
    line["caller"] = Short(caller.certificate->name);
    line["roles"] = caller.certificate->RolesOn(cluster);
  }
  line["peer"] = caller.peer;
  if (!caller.trace_id.empty()) line["trace"] = caller.trace_id;
  line["method"] = std::string(method);
  if (request != nullptr) line["request"] = FactsOf(*request);
  line["outcome"] = absl::StatusCodeToString(outcome.code());
  if (!outcome.ok()) line["error"] = Short(outcome.message());
  const std::string text = line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  absl::MutexLock lock(&mutex_);
  faults_.Report(file_->Write(text), "calls continue without being recorded");
}

}  // namespace cistern
