#include "worker/export/serving/serving_model.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/base/names.h"
#include "common/io/new_file.h"
#include "common/serving/rows_encoder.h"
#include "common/value/value_layout.h"
#include "worker/export/serving/table_changes.h"

namespace cistern {
namespace {

constexpr size_t kPullRows = size_t{1} << 15;

// "runs/deepfm.json" -> "deepfm"; "model" if that is no name.
std::string NameOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string file = slash == std::string::npos ? path : path.substr(slash + 1);
  const std::string name(absl::StripSuffix(file, ".json"));
  return CheckName(name).ok() ? name : "model";
}

// The weights that a sample reads from a value, [dim].
class ServedWeights {
 public:
  ServedWeights(const ValueLayout& layout, uint32_t dim)
      : layout_(layout), embed_w_(layout.FindField("embed_w")), weights_(dim) {}

  const float* Of(const float* value) {
    float* out = weights_.data();
    size_t count = weights_.size();
    if (embed_w_ != nullptr) {
      *out++ = value[embed_w_->first];
      --count;
    }
    std::copy_n(value + layout_.weight_index(), count, out);
    return weights_.data();
  }
  bool finite() const {
    return std::all_of(weights_.begin(), weights_.end(), [](float w) { return std::isfinite(w); });
  }

 private:
  const ValueLayout& layout_;
  const ValueField* const embed_w_;  // null: no such weight
  std::vector<float> weights_;
};

class VersionWriter {
 public:
  VersionWriter(FileSystem& files, const model::ModelConfig& config, CommittedModel& model,
                const ServingOptions& options, const ServingChanges* changes)
      : files_(files), config_(config), model_(model), options_(options), changes_(changes) {}

  absl::StatusOr<ServingWritten> Write(const ModelText& text) {
    ServingVersion& version = written_.version;
    const CommittedVersion state = model_.version();
    written_.own_name = CheckName(text.name).ok() ? text.name : NameOf(text.path);
    version.commit = state.commit;
    version.manifest_xxh3 = state.manifest_xxh3;
    version.pass = state.pass;
    version.created = absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone());
    version.precision = options_.precision;
    version.overrides = text.overrides;
    CISTERN_RETURN_IF_ERROR(Lock());
    written_.name_before = NameBefore();
    version.name = !options_.name.empty()          ? options_.name
                   : !written_.name_before.empty() ? written_.name_before
                                                   : written_.own_name;
    CISTERN_RETURN_IF_ERROR(ChooseFolder());
    CISTERN_ASSIGN_OR_RETURN(version.model, WriteBytes("model.json", text.text));
    if (text.recipe) CISTERN_RETURN_IF_ERROR(WriteRecipe(*text.recipe));
    for (size_t e = 0; e < config_.embeddings.size(); ++e) {
      CISTERN_RETURN_IF_ERROR(AddContext(changes_ == nullptr ? WriteRows(e) : WriteChanges(e),
                                         absl::StrCat("table '", config_.embeddings[e].name, "'")));
    }
    CISTERN_RETURN_IF_ERROR(WriteDense());
    CISTERN_RETURN_IF_ERROR(model_.Recheck());
    const std::string description = FormatVersion(version);
    CISTERN_RETURN_IF_ERROR(WriteBytes("serving.json", description).status());
    const ServingHead head = {version.folder, HashBytes(description)};
    if (options_.accept != nullptr) {
      const absl::Status accepted = options_.accept(head);
      if (!accepted.ok()) {
        RemoveTree(files_, absl::StrCat(options_.root, "/", version.folder)).IgnoreError();
      }
      CISTERN_RETURN_IF_ERROR(accepted);
    }
    CISTERN_RETURN_IF_ERROR(WriteHead(files_, options_.root, head));
    CleanUp();
    return std::move(written_);
  }

 private:
  // Two writers of one folder would take the same name.
  absl::Status Lock() {
    CISTERN_RETURN_IF_ERROR(files_.MakeFolders(options_.root));
    absl::StatusOr<std::unique_ptr<FileLock>> lock =
        files_.Lock(absl::StrCat(options_.root, "/LOCK"));
    if (absl::IsFailedPrecondition(lock.status())) {
      return absl::FailedPreconditionError(
          absl::StrCat("another process writes a version to ", options_.root,
                       " at this moment (cistern publish or export); try again when it is done, or "
                       "use another folder"));
    }
    CISTERN_ASSIGN_OR_RETURN(lock_, std::move(lock));
    return absl::OkStatus();
  }

  // The new version is served already, so what cannot be removed is only reported.
  void CleanUp() {
    const absl::Status removed =
        RemoveOldVersions(files_, options_.root, std::max<size_t>(1, options_.keep));
    if (removed.ok()) return;
    LogWarning(absl::StrCat("old versions in ", options_.root,
                            " stay until the next export: ", removed.message()));
  }

  // The name of the current version; of the newest one that can be read, if HEAD is lost.
  std::string NameBefore() const {
    const absl::StatusOr<ServingHead> head = ReadHead(files_, options_.root);
    std::vector<std::string> folders;
    if (head.ok()) folders = {head->folder};
    const absl::StatusOr<std::vector<std::string>> all = VersionsIn(files_, options_.root);
    if (all.ok()) folders.insert(folders.end(), all->rbegin(), all->rend());
    for (const std::string& folder : folders) {
      const absl::StatusOr<ServingVersion> version = ReadVersion(files_, options_.root, folder, 0);
      if (version.ok() && CheckName(version->name).ok()) return version->name;
    }
    return "";
  }

  // The first free name; what an interrupted export left there is removed.
  absl::Status ChooseFolder() {
    ServingVersion& version = written_.version;
    CISTERN_ASSIGN_OR_RETURN(const std::set<std::string> used, FoldersInUse(files_, options_.root));
    for (int n = 1;; ++n) {
      version.folder = absl::StrFormat("%010d", version.number());
      if (n > 1) absl::StrAppendFormat(&version.folder, "-%03d", n);
      if (used.count(version.folder) != 0) continue;
      CISTERN_RETURN_IF_ERROR(RemoveTree(files_, absl::StrCat(options_.root, "/", version.folder)));
      return files_.MakeFolders(absl::StrCat(options_.root, "/", version.folder));
    }
  }

  std::string Path(const std::string& name) const {
    return absl::StrCat(options_.root, "/", written_.version.folder, "/", name);
  }
  ServingFile FileOf(const std::string& name, uint64_t bytes, uint64_t xxh3) {
    written_.bytes += bytes;
    return {absl::StrCat(written_.version.folder, "/", name), bytes, xxh3};
  }

  absl::StatusOr<ServingFile> WriteBytes(const std::string& name, const std::string& bytes) {
    CISTERN_RETURN_IF_ERROR(WriteWhole(files_, Path(name), bytes));
    return FileOf(name, bytes.size(), HashBytes(bytes));
  }

  // A file with the content of `previous` need not be written again.
  absl::StatusOr<ServingFile> WriteOrShare(const std::string& name, const std::string& bytes,
                                           const std::optional<ServingFile>& previous) {
    const bool same =
        previous && previous->bytes == bytes.size() && previous->xxh3 == HashBytes(bytes);
    return same ? *previous : WriteBytes(name, bytes);
  }

  absl::Status WriteRecipe(const data::FoundRecipe& found) {
    constexpr uint64_t kMaxBytes = uint64_t{16} << 30;
    const std::optional<ServingFile> none;
    CISTERN_ASSIGN_OR_RETURN(written_.version.recipe,
                             WriteOrShare(data::kRecipeFile, data::FormatRecipe(found.recipe),
                                          changes_ != nullptr ? changes_->previous.recipe : none));
    if (!found.recipe.vocabulary_xxh3) return absl::OkStatus();
    CISTERN_ASSIGN_OR_RETURN(const std::string vocabulary,
                             ReadWhole(files_, found.vocabulary_path(), kMaxBytes));
    if (HashBytes(vocabulary) != *found.recipe.vocabulary_xxh3) {
      return absl::DataLossError(absl::StrCat(found.vocabulary_path(),
                                              " is not the vocabulary that the recipe beside it "
                                              "names (checksum mismatch)"));
    }
    CISTERN_ASSIGN_OR_RETURN(
        written_.version.vocabulary,
        WriteOrShare(data::kVocabularyFile, vocabulary,
                     changes_ != nullptr ? changes_->previous.vocabulary : none));
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<uint64_t>> MixedKeys(TableId id) {
    std::vector<uint64_t> mixed;
    CISTERN_RETURN_IF_ERROR(model_.Scan(id, [&](uint32_t, Key key, const float*, bool) {
      mixed.push_back(MixKey(key));
      return absl::OkStatus();
    }));
    std::sort(mixed.begin(), mixed.end());
    return mixed;
  }

  absl::Status WriteRows(size_t e) {
    const auto id = static_cast<TableId>(e);
    const model::EmbeddingConfig& embedding = config_.embeddings[e];
    CISTERN_ASSIGN_OR_RETURN(const ValueLayout layout, ValueLayout::Create(embedding.spec));
    const std::string name = absl::StrFormat("rows-%03d.rows", e);
    CISTERN_ASSIGN_OR_RETURN(const auto file, NewFile::Create(files_, Path(name)));
    file->WillBeRead();
    RowsEncoder encoder({options_.precision, embedding.vec_size},
                        [&](absl::string_view bytes) { return file->Append(bytes); });
    CISTERN_ASSIGN_OR_RETURN(const std::vector<uint64_t> mixed, MixedKeys(id));
    CISTERN_RETURN_IF_ERROR(encoder.Begin(mixed));
    CISTERN_RETURN_IF_ERROR(AddRows(id, layout, embedding.vec_size, mixed, &encoder));
    CISTERN_RETURN_IF_ERROR(encoder.End());
    CISTERN_RETURN_IF_ERROR(file->Close());
    written_.rows += mixed.size();
    written_.version.tables.push_back({embedding.name,
                                       embedding.vec_size,
                                       mixed.size(),
                                       encoder.digest(),
                                       {FileOf(name, encoder.bytes(), encoder.file_xxh3())}});
    return absl::OkStatus();
  }

  absl::Status WriteChanges(size_t e) {
    const auto id = static_cast<TableId>(e);
    const model::EmbeddingConfig& embedding = config_.embeddings[e];
    const ServingTable& old = changes_->previous.tables[e];
    CISTERN_ASSIGN_OR_RETURN(const ValueLayout layout, ValueLayout::Create(embedding.spec));
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<TableChanges> found,
                             TableChanges::Open(options_.root, old, options_.precision,
                                                changes_->complete, changes_->verified));
    ServedWeights weights(layout, embedding.vec_size);
    const double most_changed = changes_->base_share * static_cast<double>(old.rows);
    const absl::Status scanned =
        model_.Scan(id, [&](uint32_t, Key key, const float* value, bool) -> absl::Status {
          const float* const row = weights.Of(value);
          if (!weights.finite()) return NotFinite(key);
          found->Add(key, row);
          // If most rows have changed, all are written, and collecting the changes is wasted work.
          const bool stop =
              changes_->complete && static_cast<double>(found->changed()) > most_changed;
          return stop ? absl::CancelledError() : absl::OkStatus();
        });
    if (absl::IsCancelled(scanned)) return WriteRows(e);
    CISTERN_RETURN_IF_ERROR(scanned);
    CISTERN_RETURN_IF_ERROR(model_.ScanRemoved(id, [&](Key key) {
      found->Remove(key);
      return absl::OkStatus();
    }));
    CISTERN_RETURN_IF_ERROR(found->Finish());
    ServingTable table = old;
    table.rows = found->rows();
    table.digest = found->digest();
    if (!found->empty()) {
      const std::string name = absl::StrFormat("rows-%03d.rows", e);
      CISTERN_ASSIGN_OR_RETURN(const auto file, NewFile::Create(files_, Path(name)));
      file->WillBeRead();
      RowsEncoder encoder({options_.precision, embedding.vec_size},
                          [&](absl::string_view bytes) { return file->Append(bytes); });
      const bool whole = IsWhole(table, *found);
      CISTERN_RETURN_IF_ERROR(whole ? found->WriteAll(&encoder) : found->Write(&encoder));
      CISTERN_RETURN_IF_ERROR(file->Close());
      if (table.layers.size() == 1) table.base_digest = old.digest;
      if (whole) {
        table.layers.clear();
        table.base_digest = std::nullopt;
      }
      table.layers.push_back(FileOf(name, encoder.bytes(), encoder.file_xxh3()));
      if (whole && encoder.digest() != table.digest) {
        return absl::DataLossError("the older version does not have the digest that it records");
      }
    }
    written_.rows += found->changed();
    written_.version.tables.push_back(std::move(table));
    return absl::OkStatus();
  }

  // table: as it was, with its rows now.
  bool IsWhole(const ServingTable& table, const TableChanges& found) const {
    if (changes_->whole == ServingChanges::Whole::kMostlyChanged) {
      return found.changed() >= table.rows / 2;
    }
    const auto layered = static_cast<double>(found.changed() + found.changed_before());
    return table.layers.size() >= changes_->most_layers ||
           layered > changes_->base_share * static_cast<double>(table.rows);
  }

  static absl::Status NotFinite(Key key) {
    return absl::DataLossError(absl::StrCat("key ", key, ": a weight is not a finite number"));
  }

  absl::Status AddRows(TableId id, const ValueLayout& layout, uint32_t dim,
                       absl::Span<const uint64_t> mixed, RowsEncoder* encoder) {
    const size_t stride = layout.full_floats();
    std::vector<Key> keys;
    std::vector<float> values;
    std::vector<uint8_t> has_embedx;
    ServedWeights weights(layout, dim);
    for (size_t first = 0; first < mixed.size(); first += keys.size()) {
      keys.resize(std::min(kPullRows, mixed.size() - first));
      values.resize(keys.size() * stride);
      has_embedx.resize(keys.size());
      for (size_t i = 0; i < keys.size(); ++i) keys[i] = UnmixKey(mixed[first + i]);
      CISTERN_RETURN_IF_ERROR(model_.Pull(id, keys, values.data(), has_embedx.data()));
      for (size_t i = 0; i < keys.size(); ++i) {
        const float* const row = weights.Of(values.data() + i * stride);
        if (!weights.finite()) return NotFinite(keys[i]);
        CISTERN_RETURN_IF_ERROR(encoder->Add(row));
      }
    }
    return absl::OkStatus();
  }

  // Column 0 of each dense table: the weights and the running statistics.
  absl::Status WriteDense() {
    std::string bytes;
    for (int i = 0; i < model_.schema().dense_tables_size(); ++i) {
      const v1::DenseTableSpec& spec = model_.schema().dense_tables(i);
      CISTERN_ASSIGN_OR_RETURN(const std::vector<float> values,
                               model_.PullDense(static_cast<TableId>(i)));
      const auto columns = static_cast<size_t>(spec.columns_size());
      for (size_t row = 0; row < spec.rows(); ++row) {
        const float w = values[row * columns];
        if (!std::isfinite(w)) {
          return absl::DataLossError(
              absl::StrCat("table '", spec.name(), "', parameter ", row, ": not a finite number"));
        }
        bytes.append(reinterpret_cast<const char*>(&w), sizeof(w));
      }
      written_.version.dense_tables.push_back({spec.name(), spec.rows()});
    }
    CISTERN_ASSIGN_OR_RETURN(written_.version.dense, WriteBytes("dense.bin", bytes));
    return absl::OkStatus();
  }

  FileSystem& files_;
  const model::ModelConfig& config_;
  CommittedModel& model_;
  const ServingOptions& options_;
  const ServingChanges* const changes_;  // null: the version is written as a whole
  std::unique_ptr<FileLock> lock_;
  ServingWritten written_;
};

}  // namespace

absl::StatusOr<ServingWritten> WriteServingModel(FileSystem& files,
                                                 const model::ModelConfig& config,
                                                 const ModelText& text, CommittedModel& model,
                                                 const ServingOptions& options) {
  return VersionWriter(files, config, model, options, nullptr).Write(text);
}

absl::StatusOr<ServingWritten> WriteServingChanges(FileSystem& files,
                                                   const model::ModelConfig& config,
                                                   const ModelText& text, CommittedModel& model,
                                                   const ServingChanges& changes,
                                                   const ServingOptions& options) {
  const ServingVersion& previous = changes.previous;
  bool same =
      previous.precision == options.precision && previous.tables.size() == config.embeddings.size();
  for (size_t e = 0; same && e < config.embeddings.size(); ++e) {
    same = previous.tables[e].name == config.embeddings[e].name &&
           previous.tables[e].dim == config.embeddings[e].vec_size;
  }
  if (!same) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.root, ", version ", previous.folder,
        ": another precision or another model; export a whole version (cistern export serving)"));
  }
  return VersionWriter(files, config, model, options, &changes).Write(text);
}

}  // namespace cistern
