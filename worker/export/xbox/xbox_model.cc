#include "worker/export/xbox/xbox_model.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "common/value/accessor.h"
#include "common/value/row_lifecycle.h"
#include "worker/export/export_manifest.h"
#include "worker/export/xbox/donefile_set.h"
#include "worker/export/xbox/part_files.h"
#include "worker/export/xbox/xbox_value.h"

namespace cistern {
namespace {

constexpr char kFresh[] = ".new";  // suffix of a version that is not complete
constexpr char kManifest[] = "xbox.json", kFeature[] = "feature/";

const char* CompressionName(SequenceCompression compression) {
  switch (compression) {
    case SequenceCompression::kNone:
      return "none";
    case SequenceCompression::kRecord:
      return "record";
    case SequenceCompression::kBlock:
      return "block";
  }
  return "";
}

bool IsNumber(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

// The dictionary of one table.
class Dictionary {
 public:
  // folder_name: of the dictionary below that of the export; empty: it is the export's folder.
  Dictionary(FileSystem& files, const XboxOptions& options, TableId table, const std::string& name,
             const std::string& folder_name)
      : files_(files),
        options_(options),
        table_(table),
        folder_name_(folder_name),
        folder_(absl::StrCat(options.folder, folder_name.empty() ? "" : "/", folder_name)) {
    written_.name = name;
  }
  ~Dictionary() {
    if (!fresh_.empty()) RemoveTree(files_, fresh_).IgnoreError();  // the error was reported
  }

  // Takes the ids of the last versions, and removes what a killed export left.
  absl::Status Open(const DonefileSet& donefiles) {
    CISTERN_RETURN_IF_ERROR(files_.MakeFolders(folder_));
    for (const auto kind : {DonefileSet::Kind::kBase, DonefileSet::Kind::kPatch}) {
      CISTERN_ASSIGN_OR_RETURN(const std::optional<DoneLine> last,
                               donefiles.Last(folder_name_, kind));
      if (!last.has_value()) continue;
      last_id_ = std::max(last_id_, last->id);
      if (kind == DonefileSet::Kind::kBase) base_id_ = last->id;
    }
    if (!is_base() && base_id_ == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(donefiles.PathOf(folder_name_, DonefileSet::Kind::kBase),
                       " names no base, so there is nothing that a delta could be "
                       "applied to: export a base first"));
    }
    CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(folder_));
    for (absl::string_view name : names) {
      const std::string path = absl::StrCat(folder_, "/", name);
      const bool fresh = absl::ConsumeSuffix(&name, kFresh);
      uint64_t id = 0;
      if (!IsNumber(name) || !absl::SimpleAtoi(name, &id) || id > kMaxId) continue;
      last_id_ = std::max(last_id_, id);  // also a version that no donefile names
      if (fresh) CISTERN_RETURN_IF_ERROR(RemoveTree(files_, path));
    }
    return absl::OkStatus();
  }
  uint64_t last_id() const { return last_id_; }

  // Writes rows and manifest of version `id`, which is not visible yet.
  absl::Status Write(CommittedModel& model, uint64_t id) {
    id_ = id;
    written_.folder = absl::StrCat(folder_, "/", id);
    fresh_ = written_.folder + kFresh;
    const v1::TableSpec& spec = model.schema().tables(static_cast<int>(table_));
    CISTERN_ASSIGN_OR_RETURN(const ValueLayout layout, ValueLayout::Create(spec));
    return WriteRows(model, layout);
  }

  // Gives the version its name. It exists once it is announced.
  absl::Status Publish() {
    CISTERN_RETURN_IF_ERROR(files_.Replace(fresh_, written_.folder));
    fresh_.clear();
    return files_.SyncFolder(folder_);
  }
  // What announces it.
  DoneLine Line() const {
    return {id_, is_base() ? id_ : base_id_, absl::StrCat(NamedFolder(), "/", Kind())};
  }
  const std::string& folder_name() const { return folder_name_; }
  const XboxWritten::Table& written() const { return written_; }

 private:
  // The version's folder as a donefile names it.
  std::string NamedFolder() const {
    if (options_.named.empty()) return written_.folder;
    return absl::StrCat(options_.named, written_.folder.substr(options_.folder.size()));
  }
  bool is_base() const { return options_.mode == v1::BASE; }
  std::string Kind() const { return is_base() ? "base" : "patch"; }

  absl::Status WriteRows(CommittedModel& model, const ValueLayout& layout) {
    const CommittedVersion version = model.version();
    const std::string prefix = absl::StrCat(Kind(), "/", kFeature);
    CISTERN_ASSIGN_OR_RETURN(
        const std::unique_ptr<PartFiles> parts,
        PartFiles::Create(
            files_, absl::StrCat(fresh_, "/", Kind(), "/feature"), options_.files, options_.format,
            absl::StrCat(written_.name, "/", Kind(), "/", version.commit, "/", version.pass)));
    XboxEncoder encoder(&layout, options_.day);
    const std::unique_ptr<RowLifecycle> lifecycle =
        layout.accessor().MakeLifecycle(layout, options_.day);
    std::string bytes;
    uint32_t group = 0;
    const auto add = [&](uint32_t shard, Key key, const float* value,
                         bool has_embedx) -> absl::Status {
      if (shard != group) CISTERN_RETURN_IF_ERROR(parts->EndGroup());
      group = shard;
      if (lifecycle != nullptr && !lifecycle->IsSaved(options_.mode, value)) {
        return absl::OkStatus();
      }
      encoder.Encode(value, has_embedx, &bytes);
      parts->Add(static_cast<uint32_t>(key % options_.files), key, key, bytes);
      return absl::OkStatus();
    };
    CISTERN_RETURN_IF_ERROR(model.Scan(table_, add));
    CISTERN_RETURN_IF_ERROR(parts->EndGroup());
    CISTERN_RETURN_IF_ERROR(parts->Close());
    written_.rows = parts->rows();
    written_.bytes = parts->bytes();
    written_.limited = encoder.limited();
    written_.digest = parts->digest();
    return WriteManifest(files_, absl::StrCat(fresh_, "/", kManifest),
                         Manifest(layout, version, parts->Describe(prefix)));
  }

  ExportManifest Manifest(const ValueLayout& layout, const CommittedVersion& version,
                          ExportManifest parts) const {
    ExportManifest manifest = ManifestOf("xbox", version);
    manifest["table"] = written_.name;
    manifest["accessor"] = std::string(layout.accessor().name());
    manifest["dim"] = layout.dim();
    manifest["kind"] = is_base() ? "base" : "delta";
    manifest["id"] = id_;
    manifest["base_id"] = is_base() ? id_ : base_id_;
    if (layout.ctr().day_id_decay()) manifest["day"] = options_.day;
    manifest["seqfile"] = options_.format.form == SequenceForm::kCube ? "cube" : "hadoop";
    manifest["compress"] = CompressionName(options_.format.compression);
    manifest["ratios"] = {{"show", 1},
                          {"click", kXboxClickRatio},
                          {"weight_lr_person", kXboxWeightRatio},
                          {"weight_mf", kXboxWeightRatio}};
    manifest["rows"] = written_.rows;
    manifest["limited"] = written_.limited;
    manifest["digest"] = HashText(written_.digest);
    manifest["files"] = std::move(parts);
    return manifest;
  }

  FileSystem& files_;
  const XboxOptions& options_;
  const TableId table_;
  const std::string folder_name_, folder_;
  std::string fresh_;  // empty: nothing to remove
  uint64_t id_ = 0, last_id_ = 0, base_id_ = 0;
  XboxWritten::Table written_;
};

absl::Status CheckTable(const v1::TableSpec& spec, const XboxOptions& options) {
  if (HasStatistics(spec)) return CheckDay(spec, options.day);
  if (options.mode == v1::BASE) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("table '", spec.name(), "' has the accessor ", AccessorName(spec),
                   ", which keeps no statistics, so nothing tells which of its rows "
                   "belong to a delta: export a base, or name tables with the accessor ctr"));
}

absl::Status CheckOptions(const v1::Schema& schema, const XboxOptions& options) {
  CISTERN_RETURN_IF_ERROR(CheckFormat(options.format));
  if (options.files < 1 || options.files > PartFiles::kMaxFiles) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.files, " files: expected 1 to ", PartFiles::kMaxFiles));
  }
  for (const TableId table : options.tables) {
    CISTERN_RETURN_IF_ERROR(CheckTable(schema.tables(static_cast<int>(table)), options));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<XboxWritten> WriteXbox(FileSystem& files, CommittedModel& model,
                                      const XboxOptions& options) {
  CISTERN_RETURN_IF_ERROR(CheckOptions(model.schema(), options));
  CISTERN_RETURN_IF_ERROR(files.MakeFolders(options.folder));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<FileLock> lock,
                           files.Lock(absl::StrCat(options.folder, "/.lock")));
  const bool is_single = options.tables.size() == 1;
  std::vector<std::string> names, folder_names;
  for (const TableId table : options.tables) {
    names.push_back(model.schema().tables(static_cast<int>(table)).name());
    if (!is_single) folder_names.push_back(names.back());
  }
  DonefileSet donefiles(files, options.folder, folder_names);
  CISTERN_RETURN_IF_ERROR(donefiles.Open());
  std::vector<std::unique_ptr<Dictionary>> dictionaries;
  XboxWritten written;
  written.id = options.now;
  for (size_t i = 0; i < names.size(); ++i) {
    dictionaries.push_back(std::make_unique<Dictionary>(files, options, options.tables[i], names[i],
                                                        is_single ? "" : names[i]));
    CISTERN_RETURN_IF_ERROR(dictionaries.back()->Open(donefiles));
    written.id = std::max(written.id, dictionaries.back()->last_id() + 1);
  }
  for (const auto& dictionary : dictionaries) {
    CISTERN_RETURN_IF_ERROR(dictionary->Write(model, written.id));
  }
  CISTERN_RETURN_IF_ERROR(model.Recheck());
  std::map<std::string, DoneLine> lines;
  for (const auto& dictionary : dictionaries) {
    CISTERN_RETURN_IF_ERROR(dictionary->Publish());
    lines[dictionary->folder_name()] = dictionary->Line();
    written.tables.push_back(dictionary->written());
  }
  CISTERN_RETURN_IF_ERROR(donefiles.Announce(
      written.id, options.mode == v1::BASE ? DonefileSet::Kind::kBase : DonefileSet::Kind::kPatch,
      lines));
  return written;
}

}  // namespace cistern
