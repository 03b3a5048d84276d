#include "common/saved_model/model_part_json.h"
#include "common/value/step_clock.h"

#include <google/protobuf/util/json_util.h>

#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/hash_text.h"
#include "common/base/json_depth.h"

namespace cistern {
namespace {

using Json = nlohmann::json;

// Format 2 adds the mode and the format of the save. If these are ALL and plain text, format 1 is
// written.
constexpr uint64_t kPlainFormat = 1, kNewestFormat = 2;

constexpr char kSelfHash[] = "\"self_xxh3\"";

std::string FormatSchema(const v1::Schema& schema) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  CISTERN_CHECK(google::protobuf::util::MessageToJsonString(schema, &json, options).ok());
  return json;
}

absl::Status Missing(const char* field, const char* type) {
  return absl::DataLossError(absl::StrCat("\"", field, "\" is missing or is not ", type));
}

absl::Status ReadNumber(const Json& object, const char* field, uint64_t max, uint64_t* out) {
  const auto found = object.find(field);
  if (found == object.end() || !found->is_number_unsigned()) {
    return Missing(field, "a whole number");
  }
  *out = found->get<uint64_t>();
  if (*out <= max) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("\"", field, "\" is ", *out, ", above ", max));
}

absl::Status ReadNumber(const Json& object, const char* field, uint32_t* out) {
  uint64_t number = 0;
  CISTERN_RETURN_IF_ERROR(ReadNumber(object, field, UINT32_MAX, &number));
  *out = static_cast<uint32_t>(number);
  return absl::OkStatus();
}

absl::Status ReadHash(const Json& object, const char* field, uint64_t* out) {
  const auto found = object.find(field);
  if (found == object.end() || !found->is_string()) return Missing(field, "a hash");
  const std::string& digits = found->get_ref<const std::string&>();
  if (digits.size() == 16 && absl::SimpleHexAtoi(digits, out) && HashText(*out) == digits) {
    return absl::OkStatus();
  }
  return Missing(field, "a hash of 16 hexadecimal digits");
}

absl::Status ReadFile(const Json& object, ModelFile* file) {
  if (!object.is_object()) return Missing("files", "a list of objects");
  const auto name = object.find("name");
  if (name == object.end() || !name->is_string()) return Missing("name", "a text");
  file->name = name->get<std::string>();
  CISTERN_RETURN_IF_ERROR(ReadNumber(object, "rows", UINT64_MAX, &file->rows));
  CISTERN_RETURN_IF_ERROR(ReadNumber(object, "bytes", UINT64_MAX, &file->bytes));
  CISTERN_RETURN_IF_ERROR(ReadHash(object, "xxh3", &file->xxh3));
  if (object.find("digest") == object.end()) return absl::OkStatus();
  return ReadHash(object, "digest", &file->digest.emplace());
}

bool IsPlain(const ModelPart& part) {
  return part.mode == v1::ALL && part.format.kind() == v1::SaveFormat::TEXT &&
         !part.format.gzip() && !part.format.six_digits();
}

std::string FormatSave(const ModelPart& part) {
  if (IsPlain(part)) return "";
  const auto flag = [](bool x) { return x ? "true" : "false"; };
  return absl::StrCat(",\n \"mode\": \"", v1::SaveMode_Name(part.mode), "\", \"rows\": \"",
                      v1::SaveFormat::Kind_Name(part.format.kind()),
                      "\", \"gzip\": ", flag(part.format.gzip()),
                      ", \"six_digits\": ", flag(part.format.six_digits()));
}

std::string FormatCommit(const ModelPart& part) {
  if (part.commit == 0) return "";
  return absl::StrCat(", \"commit\": ", part.commit, ", \"manifest_xxh3\": \"",
                      HashText(part.manifest_xxh3), "\"");
}

std::string FormatDays(const ModelPart& part) {
  std::string text;
  for (const v1::PassDays::Day& day : part.days.days()) {
    absl::StrAppend(&text, text.empty() ? ",\n \"days\": [[" : ", [", day.first_pass(), ", ",
                    day.day(), "]");
  }
  return text.empty() ? text : text + "]";
}

absl::Status ReadDays(const Json& object, v1::PassDays* days) {
  const auto found = object.find("days");
  if (found == object.end()) return absl::OkStatus();
  if (!found->is_array()) return Missing("days", "a list");
  for (const Json& pair : *found) {
    const bool is_pair = pair.is_array() && pair.size() == 2 && pair[0].is_number_unsigned() &&
                         pair[1].is_number_unsigned() && pair[1].get<uint64_t>() <= UINT32_MAX;
    if (!is_pair) return Missing("days", "a list of passes and days");
    v1::PassDays::Day* const day = days->add_days();
    day->set_first_pass(pair[0].get<uint64_t>());
    day->set_day(pair[1].get<uint32_t>());
  }
  return absl::OkStatus();
}

absl::Status ReadCommit(const Json& object, ModelPart* part) {
  if (object.find("commit") == object.end()) return absl::OkStatus();
  CISTERN_RETURN_IF_ERROR(ReadNumber(object, "commit", UINT64_MAX, &part->commit));
  return ReadHash(object, "manifest_xxh3", &part->manifest_xxh3);
}

absl::Status ReadFlag(const Json& object, const char* field, bool* out) {
  const auto found = object.find(field);
  if (found == object.end() || !found->is_boolean()) return Missing(field, "true or false");
  *out = found->get<bool>();
  return absl::OkStatus();
}

absl::Status ReadSave(const Json& object, ModelPart* part) {
  const auto mode = object.find("mode"), rows = object.find("rows");
  if (mode == object.end() || !mode->is_string() ||
      !v1::SaveMode_Parse(mode->get<std::string>(), &part->mode)) {
    return Missing("mode", "a mode of a save");
  }
  v1::SaveFormat::Kind kind;
  if (rows == object.end() || !rows->is_string() ||
      !v1::SaveFormat::Kind_Parse(rows->get<std::string>(), &kind)) {
    return Missing("rows", "TEXT or BINARY");
  }
  bool gzip = false, six_digits = false;
  CISTERN_RETURN_IF_ERROR(ReadFlag(object, "gzip", &gzip));
  CISTERN_RETURN_IF_ERROR(ReadFlag(object, "six_digits", &six_digits));
  part->format.set_kind(kind);
  part->format.set_gzip(gzip);
  part->format.set_six_digits(six_digits);
  return absl::OkStatus();
}

absl::Status ReadSchema(const Json& object, v1::Schema* schema) {
  const auto found = object.find("schema");
  if (found == object.end() || !found->is_object()) return Missing("schema", "an object");
  const auto status = google::protobuf::util::JsonStringToMessage(found->dump(), schema);
  if (status.ok()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("\"schema\": ", status.message().ToString()));
}

absl::Status CheckSelfHash(absl::string_view text, const Json& object) {
  uint64_t recorded = 0;
  CISTERN_RETURN_IF_ERROR(ReadHash(object, "self_xxh3", &recorded));
  const size_t end = text.rfind(kSelfHash);
  CISTERN_CHECK(end != absl::string_view::npos);  // the member was just found
  const uint64_t found = HashBytes(text.data(), end);
  if (found == recorded) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("its own hash is ", HashText(found), ", not ",
                                          HashText(recorded),
                                          " as recorded; restore the file from a copy"));
}

}  // namespace

std::string FormatPart(const ModelPart& part) {
  std::string text = absl::StrCat(
      "{\"format\": ", IsPlain(part) ? kPlainFormat : kNewestFormat, ", \"server\": ", part.server,
      ", \"server_num\": ", part.server_num, ", \"shard_num\": ", part.shard_num,
      ", \"pass\": ", part.pass, FormatCommit(part), FormatSave(part), FormatDays(part),
      ",\n \"schema\": ", FormatSchema(part.schema), ",\n \"files\": [");
  const char* separator = "\n  ";
  for (const ModelFile& file : part.files) {
    absl::StrAppend(&text, separator, "{\"name\": \"", file.name, "\", \"rows\": ", file.rows,
                    ", \"bytes\": ", file.bytes, ", \"xxh3\": \"", HashText(file.xxh3), "\"");
    if (file.digest.has_value()) {
      absl::StrAppend(&text, ", \"digest\": \"", HashText(*file.digest), "\"");
    }
    absl::StrAppend(&text, "}");
    separator = ",\n  ";
  }
  absl::StrAppend(&text, "],\n ");
  absl::StrAppend(&text, kSelfHash, ": \"", HashText(HashBytes(text)), "\"}\n");
  return text;
}

absl::StatusOr<ModelPart> ParsePart(absl::string_view text) {
  const Json object = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return absl::DataLossError("it is not a JSON object");
  uint64_t format = 0;
  CISTERN_RETURN_IF_ERROR(ReadNumber(object, "format", UINT64_MAX, &format));
  if (format != kPlainFormat && format != kNewestFormat) {
    return absl::DataLossError(
        absl::StrCat("its format is ", format, "; this version reads only formats ", kPlainFormat,
                     " and ", kNewestFormat, ": use the version that saved it"));
  }
  CISTERN_RETURN_IF_ERROR(CheckSelfHash(text, object));
  if (JsonDepth(text) > kMaxJsonDepth) {
    return absl::DataLossError(
        absl::StrCat("it is nested more than ", kMaxJsonDepth, " levels deep"));
  }
  ModelPart part;
  CISTERN_RETURN_IF_ERROR(ReadNumber(object, "server", &part.server));
  CISTERN_RETURN_IF_ERROR(ReadNumber(object, "server_num", &part.server_num));
  CISTERN_RETURN_IF_ERROR(ReadNumber(object, "shard_num", &part.shard_num));
  CISTERN_RETURN_IF_ERROR(ReadNumber(object, "pass", kMaxPass, &part.pass));
  CISTERN_RETURN_IF_ERROR(ReadCommit(object, &part));
  CISTERN_RETURN_IF_ERROR(ReadDays(object, &part.days));
  if (format != kPlainFormat) CISTERN_RETURN_IF_ERROR(ReadSave(object, &part));
  CISTERN_RETURN_IF_ERROR(ReadSchema(object, &part.schema));
  const auto files = object.find("files");
  if (files == object.end() || !files->is_array()) return Missing("files", "a list");
  for (const Json& file : *files)
    CISTERN_RETURN_IF_ERROR(ReadFile(file, &part.files.emplace_back()));
  return part;
}

}  // namespace cistern
