#include "worker/export/xbox/donefile.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "common/base/json_depth.h"

namespace cistern {
namespace {

constexpr uint64_t kMaxDonefileBytes = uint64_t{64} << 20;

bool ReadNumber(const nlohmann::json& json, const char* name, uint64_t* number) {
  const auto field = json.find(name);
  return field != json.end() && field->is_string() &&
         absl::SimpleAtoi(field->get<std::string>(), number) && *number <= kMaxId;
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

// What a link at `path` leads to.
std::string Linked(const std::string& path, const std::string& target) {
  return (std::filesystem::path(ParentFolder(path)) / target).lexically_normal();
}

}  // namespace

absl::StatusOr<std::string> ReadDonefile(FileSystem& files, const std::string& path) {
  const absl::StatusOr<std::string> link = files.ReadLink(path);
  const std::string place = link.ok() ? Linked(path, *link) : path;
  absl::StatusOr<std::string> text = ReadWhole(files, place, kMaxDonefileBytes);
  if (absl::IsNotFound(text.status())) return std::string();
  return text;
}

absl::StatusOr<std::optional<DoneLine>> LastLine(const std::string& text, const std::string& path) {
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

absl::Status AppendLine(const DoneLine& line, std::string* text) {
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
  if (!text->empty() && text->back() != '\n') *text += '\n';
  absl::StrAppend(text, added, "\n");
  return absl::OkStatus();
}

}  // namespace cistern
