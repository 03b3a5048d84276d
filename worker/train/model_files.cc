// SaveModel and LoadModel of jobs.h: write and read a model folder through the data plane.
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/io/new_file.h"
#include "common/saved_model/model_folder.h"
#include "common/saved_model/model_rows.h"
#include "common/saved_model/saved_commit.h"
#include "common/saved_model/table_writer.h"
#include "common/value/schema.h"
#include "common/value/step_clock.h"
#include "common/value/table_choice.h"
#include "common/value/value_text.h"
#include "worker/client/row_pusher.h"
#include "worker/train/jobs.h"

namespace cistern {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

absl::Status SaveSparse(FileSystem& files, ParameterClient& client, TableId id,
                        const std::string& folder, ModelPart& part) {
  const std::string& table = part.schema.tables(static_cast<int>(id)).name();
  std::unique_ptr<ShardWriter> writer;
  uint32_t shard = 0;
  // Even an empty shard gets a file, so that a missing file is noticed.
  const auto move_to = [&](uint32_t wanted) -> absl::Status {
    while (writer == nullptr || shard != wanted) {
      if (writer != nullptr) {
        CISTERN_ASSIGN_OR_RETURN(ModelFile file, writer->Close());
        part.files.push_back(std::move(file));
        ++shard;
      }
      if (shard >= part.shard_num) return absl::OkStatus();
      CISTERN_ASSIGN_OR_RETURN(
          writer, ShardWriter::Create(files, folder, part, table, shard, client.stored_layout(id)));
    }
    return absl::OkStatus();
  };
  CISTERN_RETURN_IF_ERROR(client.Scan(
      id, [&](uint32_t at, Key key, const float* value, bool has_embedx) -> absl::Status {
        CISTERN_RETURN_IF_ERROR(move_to(at));
        writer->AddUnpacked(key, value, has_embedx);
        return writer->buffered_bytes() < kBufferBytes ? absl::OkStatus() : writer->Flush();
      }));
  return move_to(part.shard_num);
}

absl::Status SaveDense(FileSystem& files, ParameterClient& client, TableId id,
                       const std::string& folder, ModelPart& part) {
  const v1::DenseTableSpec& spec = part.schema.dense_tables(static_cast<int>(id));
  std::vector<float> values(spec.rows() * static_cast<size_t>(spec.columns_size()));
  CISTERN_RETURN_IF_ERROR(client.PullDense(id, values.data()));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<DenseWriter> writer,
                           DenseWriter::Create(files, folder, part, spec, /*first_row=*/0));
  CISTERN_RETURN_IF_ERROR(writer->Append(values));
  CISTERN_ASSIGN_OR_RETURN(ModelFile file, writer->Close());
  part.files.push_back(std::move(file));
  return absl::OkStatus();
}

// The table of a model's file, which is the name of its folder.
std::string TableOf(const ModelFile& file) {
  return file.name.substr(0, file.name.find('/'));
}

absl::Status CopyFile(FileSystem& files, const std::string& from, const std::string& to) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> source, files.Open(from));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> copy, files.Create(to));
  std::string bytes;
  for (uint64_t at = 0; at < source->bytes(); at += bytes.size()) {
    bytes.resize(std::min<uint64_t>(kBufferBytes, source->bytes() - at));
    CISTERN_RETURN_IF_ERROR(source->Read(at, bytes.size(), bytes.data()));
    CISTERN_RETURN_IF_ERROR(copy->Append(bytes));
  }
  CISTERN_RETURN_IF_ERROR(copy->Sync());
  return copy->Close();
}

// Copies the files of all parts, then the JSON files, whose presence makes the copy a valid model.
absl::Status CopyParts(FileSystem& files, const std::string& from, const std::string& to) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<ModelPart> parts, ReadParts(files, from));
  std::set<std::string> tables;
  for (const ModelPart& part : parts) {
    for (const ModelFile& file : part.files) {
      const std::string table = absl::StrCat(to, "/", TableOf(file));
      if (tables.insert(table).second) CISTERN_RETURN_IF_ERROR(files.MakeFolders(table));
      CISTERN_RETURN_IF_ERROR(
          CopyFile(files, absl::StrCat(from, "/", file.name), absl::StrCat(to, "/", file.name)));
    }
  }
  for (const std::string& table : tables) CISTERN_RETURN_IF_ERROR(files.SyncFolder(table));
  for (const ModelPart& part : parts) {
    const std::string name = absl::StrCat("/", PartJsonName(part.server, part.server_num));
    CISTERN_RETURN_IF_ERROR(CopyFile(files, from + name, to + name));
  }
  return files.SyncFolder(to);
}

// Checks the keys of one shard's file: each belongs to the shard, and none occurs twice. (The
// servers refuse repeated keys as well, but know neither file nor row.)
//
// Threads: one at a time.
class ShardKeys {
 public:
  ShardKeys(v1::SaveFormat::Kind kind, uint32_t shard, uint32_t shard_num)
      : kind_(kind), shard_(shard), shard_num_(shard_num) {}

  absl::Status Add(Key key) {
    const size_t number = keys_.size() + 1;
    if (key % shard_num_ != shard_) {
      return absl::DataLossError(absl::StrCat(kind_ == v1::SaveFormat::BINARY ? "record " : "line ",
                                              number, ": key ", key, " belongs to shard ",
                                              key % shard_num_, ", not to shard ", shard_));
    }
    if (keys_.insert(key).second) return absl::OkStatus();
    return RepeatedKey(kind_, number, key);
  }

 private:
  const v1::SaveFormat::Kind kind_;
  const uint32_t shard_, shard_num_;
  absl::flat_hash_set<Key> keys_;
};

absl::Status LoadSparse(FileSystem& files, ParameterClient& client, TableId id,
                        const std::string& folder, const std::vector<ModelPart>& parts,
                        uint64_t step) {
  const v1::TableSpec& spec = client.schema().tables(static_cast<int>(id));
  const v1::TableSpec& saved = *FindTable(parts[0].schema.tables(), spec.name());
  const v1::SaveFormat::Kind kind = parts[0].format.kind();
  CISTERN_ASSIGN_OR_RETURN(const RowParser parse, ParserFor(kind, saved, spec));
  const ValueLayout& layout = client.stored_layout(id);
  std::vector<float> value(layout.full_floats());
  ValueUnpacker unpack(layout);
  RowPusher pusher(client, id);
  uint32_t shard = 0;
  for (const ModelFile& file : FilesByShard(spec.name(), parts)) {
    ShardKeys keys(kind, shard++, parts[0].shard_num);
    const auto take = [&](absl::string_view row) -> absl::Status {
      Key key = 0;
      bool has_embedx = false;
      CISTERN_RETURN_IF_ERROR(parse(row, &key, value.data(), &has_embedx));
      MarkRow(layout, step, value.data());
      CISTERN_RETURN_IF_ERROR(pusher.Add(key, unpack(value.data()), has_embedx));
      return keys.Add(key);
    };
    CISTERN_RETURN_IF_ERROR(ReadModelFile(files, folder, file, take));
  }
  return pusher.Flush();
}

absl::Status LoadDense(FileSystem& files, ParameterClient& client, TableId id,
                       const std::string& folder, const std::vector<ModelPart>& parts) {
  const v1::DenseTableSpec& spec = client.schema().dense_tables(static_cast<int>(id));
  const v1::DenseTableSpec& saved = *FindTable(parts[0].schema.dense_tables(), spec.name());
  const v1::SaveFormat::Kind kind = parts[0].format.kind();
  const DenseRowParser parse = DenseParserFor(kind, saved, spec);
  const size_t columns = static_cast<size_t>(spec.columns_size());
  std::vector<float> values;
  values.reserve(spec.rows() * columns);
  for (const std::optional<ModelFile>& file : FilesByServer(spec.name(), parts)) {
    if (!file.has_value()) continue;
    CISTERN_RETURN_IF_ERROR(ReadModelFile(files, folder, *file, [&](absl::string_view row) {
      return parse(row, values.size() / columns, &values);
    }));
  }
  if (values.size() != spec.rows() * columns) {
    return absl::DataLossError(absl::StrCat(folder, ": table '", spec.name(), "' has ",
                                            values.size() / columns, " rows instead of ",
                                            spec.rows()));
  }
  return client.PushDense(id, values.data());
}

absl::Status LoadTables(FileSystem& files, ParameterClient& client, const std::string& folder,
                        const std::vector<ModelPart>& parts, const TableChoice& choice,
                        uint64_t step) {
  for (int i = 0; i < client.schema().tables_size(); ++i) {
    if (!choice.Reads(client.schema().tables(i).name())) continue;
    CISTERN_RETURN_IF_ERROR(
        LoadSparse(files, client, static_cast<TableId>(i), folder, parts, step));
  }
  for (int i = 0; i < client.schema().dense_tables_size(); ++i) {
    if (!choice.Reads(client.schema().dense_tables(i).name())) continue;
    CISTERN_RETURN_IF_ERROR(LoadDense(files, client, static_cast<TableId>(i), folder, parts));
  }
  return absl::OkStatus();
}

// Commits the model as a pass of its own, so that a partly read model is never committed.
absl::Status ReplaceRows(FileSystem& files, ParameterClient& client, const std::string& folder,
                         const std::vector<ModelPart>& parts, const TableChoice& choice,
                         const ParameterClient::CommitOptions& commit) {
  const PassId before = parts[0].pass > 0 ? parts[0].pass - 1 : 0;
  CISTERN_RETURN_IF_ERROR(client.Clear(before));
  const absl::Status loaded = [&]() -> absl::Status {
    CISTERN_RETURN_IF_ERROR(client.BeginPass());
    CISTERN_RETURN_IF_ERROR(LoadTables(files, client, folder, parts, choice, commit.clock.step()));
    return client.CommitPass(commit);
  }();
  if (loaded.ok()) return loaded;
  if (!absl::IsAborted(loaded)) client.AbortPass().IgnoreError();  // drops staged pushes
  return AddContext(loaded, absl::StrCat("loading the model ", folder));
}

// The durable commit that the servers are at; without a number if there is none.
SavedCommit CommitOf(const ParameterClient& client) {
  const v1::Manifest& manifest = client.manifest();
  if (manifest.commit() == 0 || manifest.pass() != client.committed_pass()) return {};
  return {manifest.commit(), client.manifest_xxh3()};
}

}  // namespace

absl::Status SaveModel(FileSystem& files, ParameterClient& client, const std::string& folder,
                       CommitPlace place) {
  const std::string fresh = folder + ".new";
  CISTERN_RETURN_IF_ERROR(RemoveTree(files, fresh));
  ModelPart part;
  part.shard_num = client.shard_map().shard_num();
  part.pass = client.committed_pass();
  part.days = client.days();
  part.schema = client.schema();
  const SavedCommit commit = CommitOf(client);
  if (place == CommitPlace::kInside) {
    part.commit = commit.number;
    part.manifest_xxh3 = commit.manifest_xxh3;
  }
  const absl::Status written = [&]() -> absl::Status {
    for (int i = 0; i < part.schema.tables_size(); ++i) {
      CISTERN_RETURN_IF_ERROR(SaveSparse(files, client, static_cast<TableId>(i), fresh, part));
    }
    for (int i = 0; i < part.schema.dense_tables_size(); ++i) {
      CISTERN_RETURN_IF_ERROR(SaveDense(files, client, static_cast<TableId>(i), fresh, part));
    }
    CISTERN_RETURN_IF_ERROR(WritePart(files, fresh, part));
    return place == CommitPlace::kInside ? absl::OkStatus()
                                         : WriteCommitBeside(files, folder, part, commit);
  }();
  if (!written.ok()) {
    RemoveTree(files, fresh).IgnoreError();  // reports the original error
    return AddContext(written, absl::StrCat("saving the model to ", folder));
  }
  return ReplaceFolder(files, fresh, folder);
}

absl::Status CopyModel(FileSystem& files, const std::string& from, const std::string& to) {
  const std::string fresh = to + ".new";
  const absl::Status copied = [&]() -> absl::Status {
    CISTERN_RETURN_IF_ERROR(RemoveTree(files, fresh));
    CISTERN_RETURN_IF_ERROR(CopyParts(files, from, fresh));
    CISTERN_RETURN_IF_ERROR(CopyCommitBeside(files, from, to));
    return ReplaceFolder(files, fresh, to);
  }();
  return AddContext(copied, absl::StrCat("copying the model ", from, " to ", to));
}

absl::Status LoadModel(FileSystem& files, const model::ModelConfig& config, ParameterClient& client,
                       const std::string& folder, const LoadChoice& load,
                       std::vector<v1::TableLeftOut>* left_out) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<ModelPart> parts, ReadParts(files, folder));
  CISTERN_ASSIGN_OR_RETURN(const v1::Schema wanted, SchemaOf(config));
  const TableChoice choice = ChooseTables(wanted, parts[0].schema, load.tables, load.upgrade);
  if (!choice.difference.empty()) {
    return OtherTables(choice,
                       absl::InvalidArgumentError(absl::StrCat(
                           folder, " was saved by another model than ", config.path, ": ",
                           choice.difference, " (here: the model file; there: the saved files)")));
  }
  if (left_out != nullptr) *left_out = choice.left_out;
  CISTERN_RETURN_IF_ERROR(client.CreateTables(wanted));
  CISTERN_RETURN_IF_ERROR(client.ClaimTerm());
  return ReplaceRows(files, client, folder, parts, choice, {});
}

absl::Status RestoreModel(FileSystem& files, ParameterClient& client, const std::string& folder,
                          const ParameterClient::CommitOptions& commit) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<ModelPart> parts, ReadParts(files, folder));
  const std::string difference = SchemaDifference(parts[0].schema, client.schema());
  if (!difference.empty()) {
    return absl::DataLossError(
        absl::StrCat(folder, " does not belong to the model in training: ", difference));
  }
  return ReplaceRows(files, client, folder, parts, TableChoice(), commit);
}

}  // namespace cistern
