#include "server/checkpoint/manifest.h"

#include <google/protobuf/util/json_util.h>

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "absl/strings/numbers.h"
#include "common/base/check.h"
#include "common/base/names.h"
#include "common/base/sealed_json.h"
#include "common/value/pass_days.h"
#include "common/value/schema.h"
#include "common/value/shard_map.h"
#include "common/value/step_clock.h"

namespace cistern::server {
namespace {

// Checks the format alone, so that a manifest of a later format is reported as such and not
// misread.
absl::Status CheckFormat(const std::string& body) {
  const auto json = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::DataLossError("it is not a JSON object");
  const auto format = json.find("format");
  if (format == json.end() || !format->is_number_unsigned()) {
    return absl::DataLossError("\"format\" is missing or is not an integer");
  }
  if (*format == kManifestFormat) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("its format is ", format->dump(),
                                          "; this version reads format ", kManifestFormat,
                                          " only: use the version that wrote it"));
}

template <typename Specs>
absl::Status CheckTables(const char* field,
                         const google::protobuf::RepeatedPtrField<v1::TableState>& states,
                         const Specs& specs) {
  bool same = states.size() == specs.size();
  for (int i = 0; same && i < states.size(); ++i) same = states[i].name() == specs[i].name();
  if (same) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("\"", field, "\" do not match those of \"schema\""));
}

absl::Status CheckFile(const v1::RowFile& file, const v1::Manifest& manifest) {
  const absl::Status name = CheckName(file.name());
  if (!name.ok()) return absl::DataLossError(name.message());
  const char* fault = nullptr;
  if (!ShardMap::Create(manifest.shard_num(), file.server_num()).ok()) fault = "server_num";
  if (file.server() >= file.server_num()) fault = "server";
  if (file.commit() == 0 || file.commit() > manifest.commit()) fault = "commit";
  if (file.epoch() > manifest.epoch()) fault = "epoch";
  if (file.bytes() == 0) fault = "bytes";
  if (file.root() == 0) fault = "root";
  if (fault == nullptr) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("file '", file.name(), "': \"", fault, "\" is missing or out of range"));
}

}  // namespace

absl::Status CheckManifest(const v1::Manifest& manifest) {
  const auto bad = [](absl::string_view field) {
    return absl::DataLossError(absl::StrCat("\"", field, "\" is missing or out of range"));
  };
  if (manifest.cluster().empty()) return bad("cluster");
  if (manifest.commit() == 0) return bad("commit");
  if (manifest.pass() > kMaxPass) return bad("pass");
  if ((manifest.commit() == 1) != (manifest.previous() == 0)) return bad("previous");
  if (manifest.has_run() && !CheckName(manifest.run()).ok()) return bad("run");
  const absl::Status map = ShardMap::Create(manifest.shard_num(), manifest.server_num()).status();
  if (!map.ok()) return absl::DataLossError(map.message());
  if (!manifest.has_schema()) return bad("schema");
  const absl::Status schema = CheckSchema(manifest.schema());
  if (!schema.ok()) return absl::DataLossError(absl::StrCat("\"schema\": ", schema.message()));
  CISTERN_RETURN_IF_ERROR(CheckTables("tables", manifest.tables(), manifest.schema().tables()));
  CISTERN_RETURN_IF_ERROR(
      CheckTables("dense_tables", manifest.dense_tables(), manifest.schema().dense_tables()));
  std::set<std::string> names;
  for (const v1::RowFile& file : manifest.files()) {
    CISTERN_RETURN_IF_ERROR(CheckFile(file, manifest));
    if (names.insert(file.name()).second) continue;
    return absl::DataLossError(absl::StrCat("file '", file.name(), "' is named twice"));
  }
  const absl::Status clock = CheckStepClock(manifest.clock(), manifest.schema());
  if (!clock.ok()) return absl::DataLossError(absl::StrCat("\"clock\": ", clock.message()));
  const absl::Status days = CheckPassDays(manifest.days(), manifest.pass(), manifest.schema());
  return days.ok() ? days : absl::DataLossError(absl::StrCat("\"days\": ", days.message()));
}

std::string FormatManifest(const v1::Manifest& manifest) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  options.add_whitespace = true;
  v1::Manifest copy = manifest;
  copy.set_format(kManifestFormat);
  std::string json;
  CISTERN_CHECK(google::protobuf::util::MessageToJsonString(copy, &json, options).ok());
  return SealJson(json);
}

absl::StatusOr<ParsedManifest> ParseManifest(absl::string_view text) {
  ParsedManifest parsed;
  CISTERN_ASSIGN_OR_RETURN(const std::string body, UnsealJson(text, &parsed.self_xxh3));
  CISTERN_RETURN_IF_ERROR(CheckFormat(body));
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = false;
  const auto status = google::protobuf::util::JsonStringToMessage(body, &parsed.manifest, options);
  if (!status.ok()) {
    return absl::DataLossError(absl::StrCat(status.message().ToString(),
                                            " If a newer version wrote it, use that version."));
  }
  CISTERN_RETURN_IF_ERROR(CheckManifest(parsed.manifest));
  return parsed;
}

std::string NumberName(uint64_t number) {
  return absl::StrCat(absl::Dec(number, absl::kZeroPad20));
}

uint64_t NumberOfName(absl::string_view name) {
  uint64_t number = 0;
  if (!absl::SimpleAtoi(name, &number) || NumberName(number) != name) return 0;
  return number;
}

}  // namespace cistern::server
