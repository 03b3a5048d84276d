#include "worker/export/xbox/donefile.h"

#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "common/base/json_depth.h"
#include "common/io/new_file.h"

namespace cistern {
namespace {

constexpr uint64_t kDonefileBytesMost = uint64_t{64} << 20;

// The whole file; "" if there is none.
absl::StatusOr<std::string> ReadLines(FileSystem& files, const std::string& path) {
  absl::StatusOr<std::string> text = ReadWhole(files, path, kDonefileBytesMost);
  if (absl::IsNotFound(text.status())) return std::string();
  return text;
}

bool ReadNumber(const nlohmann::json& json, const char* name, uint64_t* number) {
  const auto field = json.find(name);
  return field != json.end() && field->is_string() &&
         absl::SimpleAtoi(field->get<std::string>(), number) && *number <= kMostId;
}

bool ParseLine(const std::string& text, DoneLine* line) {
  if (JsonDepth(text) > kMaxJsonDepth) return false;
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !ReadNumber(json, "id", &line->id) ||
      !ReadNumber(json, "key", &line->key)) {
    return false;
  }
  const auto input = json.find("input");
  if (input == json.end() || !input->is_string()) return false;
  line->input = input->get<std::string>();
  return true;
}

}  // namespace

absl::StatusOr<std::optional<DoneLine>> LastDone(FileSystem& files, const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(const std::string text, ReadLines(files, path));
  const absl::string_view lines = absl::StripTrailingAsciiWhitespace(text);
  if (lines.empty()) return std::nullopt;
  const size_t end = lines.rfind('\n');
  const absl::string_view last = end == absl::string_view::npos ? lines : lines.substr(end + 1);
  DoneLine line;
  if (ParseLine(std::string(last), &line)) return line;
  return absl::DataLossError(absl::StrCat(
      path, ": its last line is not {\"id\":\"NUMBER\",\"key\":\"NUMBER\",\"input\":\"FOLDER\"}: ",
      "remove the line, or export to another folder"));
}

absl::Status AppendDone(FileSystem& files, const std::string& path, const DoneLine& line) {
  nlohmann::ordered_json json;
  json["id"] = std::to_string(line.id);
  json["key"] = std::to_string(line.key);
  json["input"] = line.input;
  const std::string added =
      json.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace);
  DoneLine again;
  if (!ParseLine(added, &again) || again.input != line.input) {
    return absl::InvalidArgumentError(
        absl::StrCat(line.input, " is not UTF-8, as a donefile needs: choose another folder"));
  }
  CISTERN_ASSIGN_OR_RETURN(std::string text, ReadLines(files, path));
  if (!text.empty() && text.back() != '\n') text += '\n';
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<NewFile> file, NewFile::Create(files, path));
  CISTERN_RETURN_IF_ERROR(file->Append(absl::StrCat(text, added, "\n")));
  return file->Close();
}

}  // namespace cistern
