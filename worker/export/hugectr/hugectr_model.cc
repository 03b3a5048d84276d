#include "worker/export/hugectr/hugectr_model.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_join.h"
#include "common/base/stream_hash.h"
#include "common/io/new_file.h"
#include "common/value/accessor.h"
#include "worker/export/export_manifest.h"
#include "worker/export/hugectr/dense_weights.h"
#include "worker/export/hugectr/file_set.h"
#include "worker/export/hugectr/key_slots.h"
#include "worker/model/graph/model_summary.h"

namespace cistern {
namespace {

constexpr size_t kPushRows = size_t{1} << 16;
constexpr uint64_t kMaxNtpBytes = uint64_t{1} << 30;
constexpr char kDenseTable[] = "dense", kRunningTable[] = "dense_state";

// "exported/a_dense_0.model" -> "a_dense_0.model".
std::string NameIn(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

absl::StatusOr<uint64_t> HashOf(ReadableFile& file) {
  constexpr size_t kChunk = size_t{1} << 20;
  StreamHash hash;
  std::string chunk;
  for (uint64_t at = 0; at < file.bytes(); at += chunk.size()) {
    chunk.resize(std::min<uint64_t>(kChunk, file.bytes() - at));
    CISTERN_RETURN_IF_ERROR(file.Read(at, chunk.size(), chunk.data()));
    hash.Add(chunk);
  }
  return hash.value();
}

class ModelWriter {
 public:
  ModelWriter(FileSystem& files, const model::ModelConfig& config, CommittedModel& model,
              const HugectrPlace& place)
      : files_(files), config_(config), model_(model), place_(place), set_(files) {}

  absl::StatusOr<HugectrWritten> Write() {
    CISTERN_ASSIGN_OR_RETURN(summary_, model::Summarize(config_));
    for (size_t e = 0; e < config_.embeddings.size(); ++e) {
      CISTERN_RETURN_IF_ERROR(AddContext(WriteRows(e), place_.sparse(e)));
    }
    CISTERN_RETURN_IF_ERROR(WriteRunning());
    CISTERN_RETURN_IF_ERROR(WriteStates());
    if (place_.manifest) CISTERN_RETURN_IF_ERROR(WriteManifestFile());
    CISTERN_RETURN_IF_ERROR(WriteWeights());
    CISTERN_RETURN_IF_ERROR(model_.Recheck());
    if (!place_.manifest) CISTERN_RETURN_IF_ERROR(RemoveOldManifest());
    CISTERN_RETURN_IF_ERROR(set_.Appear());
    return written_;
  }

 private:
  absl::Status WriteRows(size_t e) {
    CISTERN_ASSIGN_OR_RETURN(const SparseShape shape, SparseShapeOf(config_, e));
    CISTERN_ASSIGN_OR_RETURN(const std::string fresh, set_.Stage(place_.sparse(e)));
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<SparseWriter> writer,
                             SparseWriter::Create(files_, fresh, place_.form, shape));
    KeySlots slots(config_, files_, e);
    const auto add = [&](uint32_t, Key key, const float* value, bool) -> absl::Status {
      uint64_t slot = 0;
      if (shape.has_slots) {
        CISTERN_ASSIGN_OR_RETURN(slot, slots.Of(key));
      }
      ++written_.rows;
      return writer->Add(key, slot, value);
    };
    CISTERN_RETURN_IF_ERROR(model_.Scan(static_cast<TableId>(e), add));
    CISTERN_RETURN_IF_ERROR(writer->Close());
    Note(place_.sparse(e), writer->bytes());
    return absl::OkStatus();
  }

  absl::Status WriteRunning() {
    const int table = FindDenseTable(model_.schema(), kRunningTable);
    if (table < 0) return absl::OkStatus();
    CISTERN_ASSIGN_OR_RETURN(const std::vector<float> running,
                             model_.PullDense(static_cast<TableId>(table)));
    const std::string text = FormatNtp(summary_.layers, running);
    const std::string path = NtpPathOf(place_.dense());
    CISTERN_ASSIGN_OR_RETURN(const std::string fresh, set_.Stage(path));
    CISTERN_RETURN_IF_ERROR(WriteWhole(files_, fresh, text));
    Note(path, text.size());
    return absl::OkStatus();
  }

  // Reads the dense parameters, and writes their state.
  absl::Status WriteStates() {
    const int table = FindDenseTable(model_.schema(), kDenseTable);
    if (table < 0) return absl::OkStatus();
    CISTERN_ASSIGN_OR_RETURN(const std::vector<float> values,
                             model_.PullDense(static_cast<TableId>(table)));
    const auto columns = static_cast<size_t>(model_.schema().dense_tables(table).columns_size());
    weights_ = ColumnOf(values, columns, 0);
    if (place_.form != HugectrForm::kV3 || columns == 1) return absl::OkStatus();
    std::vector<float> states;
    for (size_t c = 1; c < columns; ++c) {
      const std::vector<float> column = ColumnOf(values, columns, c);
      states.insert(states.end(), column.begin(), column.end());
    }
    return WriteNumbers(place_.opt_dense(), states);
  }

  absl::Status WriteWeights() { return WriteNumbers(place_.dense(), weights_); }

  absl::Status WriteNumbers(const std::string& path, absl::Span<const float> numbers) {
    CISTERN_ASSIGN_OR_RETURN(const std::string fresh, set_.Stage(path));
    CISTERN_RETURN_IF_ERROR(WriteFloats(files_, fresh, numbers));
    Note(path, numbers.size() * sizeof(float));
    return absl::OkStatus();
  }

  // After all other files: it lists them with their hashes.
  absl::Status WriteManifestFile() {
    ExportManifest manifest = ManifestOf("hugectr", model_.version());
    manifest["hugectr_form"] = place_.form == HugectrForm::kV3 ? "v3" : "v2";
    manifest["rows"] = written_.rows;
    manifest["files"] = ExportManifest::array();
    for (const std::string& path : written_.paths) {
      CISTERN_RETURN_IF_ERROR(Describe(set_.FreshName(path), NameIn(path), &manifest["files"]));
    }
    CISTERN_ASSIGN_OR_RETURN(const std::string fresh, set_.Stage(place_.manifest_path()));
    CISTERN_RETURN_IF_ERROR(WriteManifest(files_, fresh, manifest));
    written_.paths.push_back(place_.manifest_path());
    return absl::OkStatus();
  }

  // One of an earlier export to the same names would describe files that are replaced now.
  absl::Status RemoveOldManifest() {
    const absl::Status removed = files_.Remove(place_.manifest_path());
    return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
  }

  // Adds a file, or those of a folder, to the manifest.
  absl::Status Describe(const std::string& path, const std::string& name, ExportManifest* list) {
    const absl::StatusOr<std::unique_ptr<ReadableFile>> file = files_.Open(path);
    if (!file.ok()) {
      const absl::StatusOr<std::vector<std::string>> columns = files_.List(path);
      if (!columns.ok()) return file.status();
      for (const std::string& column : *columns) {
        CISTERN_RETURN_IF_ERROR(
            Describe(absl::StrCat(path, "/", column), absl::StrCat(name, "/", column), list));
      }
      return absl::OkStatus();
    }
    CISTERN_ASSIGN_OR_RETURN(const uint64_t xxh3, HashOf(**file));
    list->push_back({{"path", name}, {"bytes", (*file)->bytes()}, {"xxh3", HashText(xxh3)}});
    return absl::OkStatus();
  }

  void Note(const std::string& path, uint64_t bytes) {
    written_.paths.push_back(path);
    written_.bytes += bytes;
  }

  FileSystem& files_;
  const model::ModelConfig& config_;
  CommittedModel& model_;
  const HugectrPlace& place_;
  FileSet set_;
  model::ModelSummary summary_;
  std::vector<float> weights_;  // the dense ones
  HugectrWritten written_;
};

class ModelReader {
 public:
  ModelReader(FileSystem& files, const model::ModelConfig& config)
      : files_(files), config_(config) {}

  // Opens all files, checks their sizes, and reads the dense ones.
  absl::Status Open() {
    const model::SolverConfig& solver = config_.solver;
    CISTERN_ASSIGN_OR_RETURN(const model::ModelSummary summary, model::Summarize(config_));
    readers_.resize(config_.embeddings.size());
    for (size_t e = 0; e < solver.sparse_model_files.size(); ++e) {
      if (solver.sparse_model_files[e].empty()) continue;
      CISTERN_ASSIGN_OR_RETURN(const SparseShape shape, SparseShapeOf(config_, e));
      absl::StatusOr<std::unique_ptr<SparseReader>> reader =
          SparseReader::Open(files_, solver.sparse_model_files[e], shape);
      if (!reader.ok()) {
        return AddContext(reader.status(),
                          absl::StrCat("solver.sparse_model_file[", e, "], embedding '",
                                       config_.embeddings[e].name, "'"));
      }
      readers_[e] = *std::move(reader);
    }
    if (solver.dense_model_file.empty()) return absl::OkStatus();
    CISTERN_RETURN_IF_ERROR(AddContext(OpenDense(summary.layers), "solver.dense_model_file"));
    return AddContext(OpenRunning(summary.layers), "solver.dense_model_file");
  }

  absl::Status Push(ParameterClient& client) {
    for (size_t e = 0; e < readers_.size(); ++e) {
      if (readers_[e] != nullptr) CISTERN_RETURN_IF_ERROR(PushRows(e, client));
    }
    CISTERN_RETURN_IF_ERROR(PushTable(kDenseTable, DenseCells(client.schema()), client));
    return PushTable(kRunningTable, running_, client);
  }

  // kDataLoss with the file, record and key of the first repeated key; OK if keys are distinct.
  absl::Status FindRepeat() {
    for (const auto& reader : readers_) {
      if (reader != nullptr) CISTERN_RETURN_IF_ERROR(FindRepeat(*reader));
    }
    return absl::OkStatus();
  }

  HugectrStart Summary() const {
    const model::SolverConfig& solver = config_.solver;
    HugectrStart start;
    for (size_t e = 0; e < readers_.size(); ++e) {
      if (readers_[e] == nullptr) continue;
      start.sparse.push_back({e, solver.sparse_model_files[e], readers_[e]->rows()});
    }
    start.dense_path = solver.dense_model_file;
    start.dense_weights = weights_.size();
    start.has_dense_states = !solver.dense_opt_states_file.empty();
    return start;
  }

 private:
  absl::Status OpenDense(const std::vector<model::LayerSummary>& layers) {
    const model::SolverConfig& solver = config_.solver;
    CISTERN_ASSIGN_OR_RETURN(weights_, ReadFloats(files_, solver.dense_model_file, layers, 1));
    if (solver.dense_opt_states_file.empty()) return absl::OkStatus();
    CISTERN_ASSIGN_OR_RETURN(states_, ReadFloats(files_, solver.dense_opt_states_file, layers,
                                                 RuleStateFloats(config_.optimizer.rule.kind, 1)));
    return absl::OkStatus();
  }

  // The cells of the table "dense": each weight with its state.
  std::vector<float> DenseCells(const v1::Schema& schema) const {
    const int table = FindDenseTable(schema, kDenseTable);
    if (table < 0 || weights_.empty()) return {};
    const size_t columns = static_cast<size_t>(schema.dense_tables(table).columns_size());
    const size_t count = weights_.size();
    std::vector<float> cells(count * columns, 0.0f);
    for (size_t i = 0; i < count; ++i) {
      cells[i * columns] = weights_[i];
      for (size_t c = 0; c < states_.size() / count; ++c) {
        cells[i * columns + 1 + c] = states_[c * count + i];
      }
    }
    return cells;
  }

  absl::Status OpenRunning(const std::vector<model::LayerSummary>& layers) {
    running_ = FirstRunning(layers);
    const std::string path = NtpPathOf(config_.solver.dense_model_file);
    CISTERN_ASSIGN_OR_RETURN(const bool there, files_.Exists(path));
    if (!there || running_.empty()) return absl::OkStatus();
    CISTERN_ASSIGN_OR_RETURN(const std::string text, ReadWhole(files_, path, kMaxNtpBytes));
    CISTERN_ASSIGN_OR_RETURN(running_, ParseNtp(text, path, layers));
    return absl::OkStatus();
  }

  static absl::Status PushTable(const char* name, const std::vector<float>& cells,
                                ParameterClient& client) {
    const int table = FindDenseTable(client.schema(), name);
    if (table < 0 || cells.empty()) return absl::OkStatus();
    return client.PushDense(static_cast<TableId>(table), cells.data());
  }

  // Initializes each row as the servers would, then overwrites the fields that the file holds.
  absl::Status PushRows(size_t e, ParameterClient& client) {
    std::vector<Key> keys;
    std::vector<uint64_t> slots;
    std::vector<float> values;
    SparseReader& reader = *readers_[e];
    for (uint64_t first = 0; first < reader.rows(); first += keys.size()) {
      keys.resize(std::min<uint64_t>(kPushRows, reader.rows() - first));
      CISTERN_RETURN_IF_ERROR(reader.Read(first, &keys, &slots, &values));
      const std::vector<uint8_t> has_embedx(keys.size(), 1);
      CISTERN_RETURN_IF_ERROR(
          client.Push(static_cast<TableId>(e), keys, values.data(), has_embedx.data()));
    }
    return absl::OkStatus();
  }

  static absl::Status FindRepeat(SparseReader& reader) {
    std::vector<Key> keys;
    std::vector<uint64_t> slots;
    std::vector<float> values;
    absl::flat_hash_map<Key, uint64_t> records;
    for (uint64_t first = 0; first < reader.rows(); first += keys.size()) {
      keys.resize(std::min<uint64_t>(kPushRows, reader.rows() - first));
      CISTERN_RETURN_IF_ERROR(reader.Read(first, &keys, &slots, &values));
      for (size_t i = 0; i < keys.size(); ++i) {
        const auto [before, is_new] = records.emplace(keys[i], first + i);
        if (is_new) continue;
        return absl::DataLossError(absl::StrCat(reader.path(), ": record ", first + i, " (key ",
                                                keys[i], "): record ", before->second,
                                                " already has this key; write the file again with "
                                                "each key once"));
      }
    }
    return absl::OkStatus();
  }

  FileSystem& files_;
  const model::ModelConfig& config_;
  std::vector<std::unique_ptr<SparseReader>> readers_;  // by embedding; null: first weights
  std::vector<float> weights_, states_;                 // in file order; empty: no file
  std::vector<float> running_;                          // the table "dense_state"
};

}  // namespace

std::string HugectrPlace::dense() const {
  return absl::StrCat(prefix, "_dense_", iteration, ".model");
}
std::string HugectrPlace::opt_dense() const {
  return absl::StrCat(prefix, "_opt_dense_", iteration, ".model");
}
std::string HugectrPlace::manifest_path() const {
  return absl::StrCat(prefix, "_export_", iteration, ".json");
}
std::string HugectrPlace::sparse(size_t embedding) const {
  return absl::StrCat(prefix, embedding, "_sparse_", iteration, ".model");
}

absl::StatusOr<HugectrWritten> WriteHugectrModel(FileSystem& files,
                                                 const model::ModelConfig& config,
                                                 CommittedModel& model, const HugectrPlace& place) {
  return ModelWriter(files, config, model, place).Write();
}

bool WritesHugectrModel(const model::ModelConfig& config) {
  return config.solver.max_iter > 0 &&
         std::none_of(
             config.embeddings.begin(), config.embeddings.end(),
             [](const model::EmbeddingConfig& embedding) { return HasStatistics(embedding.spec); });
}

absl::Status CheckSnapshotSlots(FileSystem& files, const model::ModelConfig& config,
                                ParameterClient& client) {
  for (size_t e = 0; e < config.embeddings.size(); ++e) {
    if (!config.embeddings[e].localized) continue;
    KeySlots slots(config, files, e);
    CISTERN_RETURN_IF_ERROR(
        client.Scan(static_cast<TableId>(e),
                    [&](uint32_t, Key key, const float*, bool) { return slots.Of(key).status(); }));
  }
  return absl::OkStatus();
}

bool StartsFromHugectrModel(const model::ModelConfig& config) {
  const model::SolverConfig& solver = config.solver;
  return !solver.dense_model_file.empty() ||
         std::any_of(solver.sparse_model_files.begin(), solver.sparse_model_files.end(),
                     [](const std::string& path) { return !path.empty(); });
}

absl::StatusOr<HugectrStart> ReadHugectrStart(FileSystem& files, const model::ModelConfig& config) {
  ModelReader reader(files, config);
  CISTERN_RETURN_IF_ERROR(AddContext(reader.Open(), config.path));
  return reader.Summary();
}

absl::Status ReadHugectrModel(FileSystem& files, const model::ModelConfig& config,
                              ParameterClient& client, const std::string& worker_state) {
  if (client.committed_pass() > 0) {
    return WithOptions(
        absl::InvalidArgumentError(absl::StrCat(
            config.path,
            ": solver.dense_model_file and sparse_model_file initialize empty servers, but these "
            "hold "
            "pass ",
            client.committed_pass(),
            ": to continue from that pass, resume, or set solver.dense_model_file=[] and "
            "solver.sparse_model_file=[]; to start over, start the servers with another data_dir")),
        {"resume", "set"});
  }
  const model::SolverConfig& solver = config.solver;
  ModelReader reader(files, config);
  CISTERN_RETURN_IF_ERROR(AddContext(reader.Open(), config.path));
  CISTERN_RETURN_IF_ERROR(client.BeginPass());
  const absl::Status loaded = [&]() -> absl::Status {
    CISTERN_RETURN_IF_ERROR(reader.Push(client));
    return client.CommitPass({worker_state, /*durable=*/true, /*clock=*/{}});
  }();
  if (loaded.ok()) return loaded;
  if (!absl::IsAborted(loaded)) client.AbortPass().IgnoreError();  // drops staged pushes
  // The servers refuse a repeated key, but do not know its file.
  if (absl::IsInvalidArgument(loaded)) CISTERN_RETURN_IF_ERROR(reader.FindRepeat());
  return AddContext(loaded, absl::StrCat("starting from ", solver.dense_model_file, " ",
                                         absl::StrJoin(solver.sparse_model_files, " "),
                                         " (a file holds each key once)"));
}

}  // namespace cistern
