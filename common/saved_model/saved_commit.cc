#include "common/saved_model/saved_commit.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/numbers.h"
#include "common/base/hash.h"
#include "common/base/hash_text.h"
#include "common/base/json_depth.h"
#include "common/io/new_file.h"
#include "common/saved_model/model_part_json.h"

namespace cistern {
namespace {

constexpr uint64_t kMaxBytes = 4096, kMaxPartBytes = uint64_t{256} << 20;

std::string PathBeside(const std::string& folder) {
  return folder + ".commit.json";
}

std::optional<uint64_t> HashIn(const nlohmann::json& json, const char* name) {
  const auto field = json.find(name);
  uint64_t hash = 0;
  if (field == json.end() || !field->is_string() ||
      !absl::SimpleHexAtoi(field->get_ref<const std::string&>(), &hash)) {
    return std::nullopt;
  }
  return hash;
}

// What the file beside a model says; without a number if it is missing, malformed or about another
// model. model: the hash of the model's JSON file.
SavedCommit ReadBeside(FileSystem& files, const std::string& folder, uint64_t model) {
  const absl::StatusOr<std::string> text = ReadWhole(files, PathBeside(folder), kMaxBytes);
  if (!text.ok() || JsonDepth(*text) > kMaxJsonDepth) return {};
  const auto json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return {};
  const auto number = json.find("commit");
  const std::optional<uint64_t> manifest = HashIn(json, "manifest_xxh3");
  if (number == json.end() || !number->is_number_unsigned() || !manifest ||
      HashIn(json, "model_xxh3") != model) {
    return {};
  }
  return {number->get<uint64_t>(), *manifest};
}

}  // namespace

absl::Status WriteCommitBeside(FileSystem& files, const std::string& folder, const ModelPart& part,
                               const SavedCommit& commit) {
  if (commit.number == 0) return RemoveIfThere(files, PathBeside(folder));
  const nlohmann::ordered_json json = {{"commit", commit.number},
                                       {"manifest_xxh3", HashText(commit.manifest_xxh3)},
                                       {"model_xxh3", HashText(HashBytes(FormatPart(part)))}};
  return WriteWhole(files, PathBeside(folder), json.dump() + "\n");
}

absl::Status CopyCommitBeside(FileSystem& files, const std::string& from, const std::string& to) {
  const absl::StatusOr<std::string> text = ReadWhole(files, PathBeside(from), kMaxBytes);
  if (absl::IsNotFound(text.status())) return RemoveIfThere(files, PathBeside(to));
  CISTERN_RETURN_IF_ERROR(text.status());
  return WriteWhole(files, PathBeside(to), *text);
}

SavedCommit CommitOfModel(FileSystem& files, const std::string& folder,
                          const std::vector<ModelPart>& parts) {
  const ModelPart& first = parts.front();
  if (first.mode != v1::ALL || first.format.six_digits()) return {};
  if (first.commit > 0) {
    const bool all = std::all_of(parts.begin(), parts.end(), [&](const ModelPart& part) {
      return part.commit == first.commit && part.manifest_xxh3 == first.manifest_xxh3;
    });
    return all ? SavedCommit{first.commit, first.manifest_xxh3} : SavedCommit();
  }
  if (parts.size() > 1) return {};
  const absl::StatusOr<std::string> text =
      ReadWhole(files, absl::StrCat(folder, "/", PartJsonName(first.server, first.server_num)),
                kMaxPartBytes);
  return text.ok() ? ReadBeside(files, folder, HashBytes(*text)) : SavedCommit();
}

}  // namespace cistern
