#include "worker/report/run_view.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "worker/report/json_reader.h"

namespace cistern::report {
namespace {

constexpr uint64_t kMaxHistoryBytes = uint64_t{1} << 30;
constexpr uint64_t kMaxFileBytes = uint64_t{64} << 20;

// Reads folder/name with `parse`; nullopt if there is no such file.
template <typename T>
absl::StatusOr<std::optional<T>> ReadOptional(FileSystem& files, const std::string& folder,
                                              const char* name,
                                              absl::StatusOr<T> (*parse)(const std::string&)) {
  const std::string path = absl::StrCat(folder, "/", name);
  const absl::StatusOr<std::string> text = ReadWhole(files, path, kMaxFileBytes);
  if (absl::IsNotFound(text.status())) return std::optional<T>();
  CISTERN_RETURN_IF_ERROR(text.status());
  absl::StatusOr<T> value = parse(*text);
  if (!value.ok()) return AddContext(value.status(), path);
  return std::optional<T>(*std::move(value));
}

std::string NameOf(absl::string_view folder) {
  while (folder.size() > 1 && absl::ConsumeSuffix(&folder, "/")) {
  }
  const size_t slash = folder.rfind('/');
  return std::string(slash == absl::string_view::npos ? folder : folder.substr(slash + 1));
}

// The names of the columns in a list of the recipe's meaning. One whose name is no text is "".
std::vector<std::string> ColumnsIn(const nlohmann::ordered_json& meaning, const char* list) {
  std::vector<std::string> names;
  const nlohmann::ordered_json* const all = ListIn(meaning, list);
  if (all == nullptr) return names;
  for (const nlohmann::ordered_json& one : *all) {
    names.push_back(one.is_object() ? TextIn(one, "column") : "");
  }
  return names;
}

// A recipe that cannot be read only costs the names.
void ReadNames(FileSystem& files, RunView* run) {
  const absl::StatusOr<std::string> text =
      ReadWhole(files, run->folder + "/recipe.json", kMaxFileBytes);
  if (!text.ok()) return;
  const auto json = nlohmann::ordered_json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("meaning") || !json["meaning"].is_object()) return;
  run->slot_names = ColumnsIn(json["meaning"], "slots");
  run->dense_names = ColumnsIn(json["meaning"], "dense");
}

}  // namespace

std::string RunView::SlotName(const SlotStudy& slot, size_t index) const {
  if (index < slot_names.size() && !slot_names[index].empty()) return slot_names[index];
  return absl::StrCat(slot.input, "[", slot.slot, "]");
}

void RemoveReportFiles(FileSystem& files, const std::string& folder) {
  for (const char* name : {kRunRecordFile, kScoreDetailFile, kSlotStudyFile}) {
    files.Remove(absl::StrCat(folder, "/", name)).IgnoreError();
  }
}

absl::StatusOr<RunView> ReadRun(FileSystem& files, const std::string& folder) {
  RunView run;
  run.folder = folder;
  run.name = NameOf(folder);
  const absl::StatusOr<std::string> lines =
      ReadWhole(files, folder + "/metrics.jsonl", kMaxHistoryBytes);
  if (absl::IsNotFound(lines.status())) {
    return absl::NotFoundError(absl::StrCat(folder, ": not a run folder: it has no metrics.jsonl"));
  }
  CISTERN_RETURN_IF_ERROR(lines.status());
  run.history = ParseHistory(*lines);
  CISTERN_ASSIGN_OR_RETURN(run.record, ReadOptional(files, folder, kRunRecordFile, ParseRunRecord));
  CISTERN_ASSIGN_OR_RETURN(run.scores,
                           ReadOptional(files, folder, kScoreDetailFile, ParseScoreDetail));
  CISTERN_ASSIGN_OR_RETURN(run.study, ReadOptional(files, folder, kSlotStudyFile, ParseModelStudy));
  ReadNames(files, &run);
  return run;
}

}  // namespace cistern::report
