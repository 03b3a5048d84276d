#include "worker/export/export_manifest.h"

#include "common/base/json_depth.h"
#include "common/io/new_file.h"

namespace cistern {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{64} << 20;

bool IsManifestOf(const std::string& text, const std::string& form) {
  if (JsonDepth(text) > kMaxJsonDepth) return false;
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_object() && json.value("form", nlohmann::json()) == form;
}

}  // namespace

ExportManifest ManifestOf(const std::string& form, const CommittedVersion& version) {
  ExportManifest manifest = {{"format", 1}, {"form", form}, {"commit", version.commit}};
  if (version.manifest_xxh3 != 0) manifest["manifest_xxh3"] = HashText(version.manifest_xxh3);
  manifest["pass"] = version.pass;
  return manifest;
}

absl::Status WriteManifest(FileSystem& files, const std::string& path,
                           const ExportManifest& manifest) {
  return WriteWhole(files, path, manifest.dump(1) + "\n");
}

absl::Status CheckReplaceable(FileSystem& files, const std::string& folder, const std::string& name,
                              const std::string& form) {
  const auto names = files.List(folder);
  if (absl::IsNotFound(names.status()) || (names.ok() && names->empty())) return absl::OkStatus();
  if (!names.ok()) return names.status();
  const auto text = ReadWhole(files, absl::StrCat(folder, "/", name), kMaxBytes);
  if (text.ok() && IsManifestOf(*text, form)) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(
      folder, " exists and is not an earlier export of the form ", form, " (its ", name,
      " would say so): it would be removed; choose another folder, or remove it first"));
}

}  // namespace cistern
