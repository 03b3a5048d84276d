#include "worker/export/hugectr/sparse_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/base/checked.h"
#include "common/base/types.h"
#include "common/io/new_file.h"

namespace cistern {
namespace {

constexpr char kKeyFile[] = "key", kSlotFile[] = "slot_id", kVectorFile[] = "emb_vector";
constexpr Key kReservedKey32 = std::numeric_limits<uint32_t>::max();

template <class T>
absl::string_view BytesOf(const T& x) {
  return absl::string_view(reinterpret_cast<const char*>(&x), sizeof(x));
}
absl::string_view BytesOf(const float* cells, size_t count) {
  return absl::string_view(reinterpret_cast<const char*>(cells), count * sizeof(float));
}

class RecordWriter : public SparseWriter {
 public:
  RecordWriter(std::string path, const SparseShape& shape, std::unique_ptr<NewFile> file)
      : path_(std::move(path)), shape_(shape), file_(std::move(file)) {}

  absl::Status Add(Key key, uint64_t slot, const float* value) override {
    record_.clear();
    if (shape_.wide_keys) {
      absl::StrAppend(&record_, BytesOf(key));
    } else if (key < kReservedKey32) {
      absl::StrAppend(&record_, BytesOf(static_cast<uint32_t>(key)));
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, ": key ", key,
                       " does not fit the 4 bytes of a key: set solver.input_key_type to I64, or "
                       "cistern.snapshot_form to v3"));
    }
    if (shape_.has_slots) absl::StrAppend(&record_, BytesOf(slot));
    absl::StrAppend(&record_, BytesOf(value + shape_.layout.weight_index(), shape_.dim()));
    return file_->Append(record_);
  }
  absl::Status Close() override { return file_->Close(); }
  uint64_t bytes() const override { return file_->bytes(); }

 private:
  const std::string path_;
  const SparseShape shape_;
  const std::unique_ptr<NewFile> file_;
  std::string record_;
};

class ColumnWriter : public SparseWriter {
 public:
  ColumnWriter(FileSystem& files, std::string path, const SparseShape& shape)
      : files_(files), path_(std::move(path)), shape_(shape), states_(shape.states()) {}
  ~ColumnWriter() override {
    columns_.clear();
    if (!closed_) RemoveTree(files_, Fresh()).IgnoreError();  // the original error was reported
  }

  absl::Status Open() {
    CISTERN_RETURN_IF_ERROR(RemoveTree(files_, Fresh()));
    std::vector<std::string> names = {kKeyFile, kVectorFile};
    for (const StateColumn& state : states_) names.push_back(state.file);
    if (shape_.has_slots) names.push_back(kSlotFile);
    for (const std::string& name : names) {
      CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<NewFile> file,
                               NewFile::Create(files_, absl::StrCat(Fresh(), "/", name)));
      columns_.push_back(std::move(file));
    }
    return absl::OkStatus();
  }

  absl::Status Add(Key key, uint64_t slot, const float* value) override {
    const ValueLayout& layout = shape_.layout;
    CISTERN_RETURN_IF_ERROR(columns_[0]->Append(BytesOf(key)));
    CISTERN_RETURN_IF_ERROR(
        columns_[1]->Append(BytesOf(value + layout.weight_index(), layout.dim())));
    for (size_t i = 0; i < states_.size(); ++i) {
      CISTERN_RETURN_IF_ERROR(columns_[2 + i]->Append(
          BytesOf(value + layout.state_index() + states_[i].offset, states_[i].floats)));
    }
    return shape_.has_slots ? columns_.back()->Append(BytesOf(slot)) : absl::OkStatus();
  }

  absl::Status Close() override {
    for (const auto& column : columns_) CISTERN_RETURN_IF_ERROR(column->Close());
    CISTERN_RETURN_IF_ERROR(ReplaceFolder(files_, Fresh(), path_));
    closed_ = true;
    return absl::OkStatus();
  }
  uint64_t bytes() const override {
    uint64_t sum = 0;
    for (const auto& column : columns_) sum += column->bytes();
    return sum;
  }

 private:
  std::string Fresh() const { return path_ + ".new"; }

  FileSystem& files_;
  const std::string path_;
  const SparseShape shape_;
  const std::vector<StateColumn> states_;
  std::vector<std::unique_ptr<NewFile>> columns_;  // key, vector, states, slot
  bool closed_ = false;
};

class RecordReader : public SparseReader {
 public:
  RecordReader(std::string path, const SparseShape& shape, std::unique_ptr<ReadableFile> file)
      : SparseReader(std::move(path), shape), file_(std::move(file)) {
    rows_ = file_->bytes() / shape.record_bytes();
  }

 private:
  absl::Status ReadRows(uint64_t first, absl::Span<Key> keys, absl::Span<uint64_t> slots,
                        float* values) override {
    const size_t record = shape_.record_bytes(), key_bytes = shape_.wide_keys ? 8 : 4;
    bytes_.resize(keys.size() * record);
    CISTERN_RETURN_IF_ERROR(file_->Read(first * record, bytes_.size(), bytes_.data()));
    for (size_t i = 0; i < keys.size(); ++i) {
      const char* at = &bytes_[i * record];
      std::memcpy(&keys[i], at, key_bytes);
      at += key_bytes;
      if (shape_.has_slots) {
        std::memcpy(&slots[i], at, sizeof(uint64_t));
        at += sizeof(uint64_t);
      }
      std::memcpy(values + i * shape_.layout.full_floats() + shape_.layout.weight_index(), at,
                  shape_.dim() * sizeof(float));
      if (!shape_.wide_keys && keys[i] == kReservedKey32) keys[i] = kReservedKey64;
    }
    return absl::OkStatus();
  }

  const std::unique_ptr<ReadableFile> file_;
  std::string bytes_;
};

class ColumnReader : public SparseReader {
 public:
  ColumnReader(std::string path, const SparseShape& shape) : SparseReader(std::move(path), shape) {}

  absl::Status Open(FileSystem& files) {
    CISTERN_RETURN_IF_ERROR(OpenColumn(files, kKeyFile, sizeof(Key), &keys_));
    rows_ = keys_->bytes() / sizeof(Key);
    CISTERN_RETURN_IF_ERROR(
        OpenColumn(files, kVectorFile, shape_.dim() * sizeof(float), &vectors_));
    if (shape_.has_slots) {
      CISTERN_RETURN_IF_ERROR(OpenColumn(files, kSlotFile, sizeof(uint64_t), &slots_));
    }
    for (const StateColumn& state : shape_.states()) {
      CISTERN_ASSIGN_OR_RETURN(const bool there,
                               files.Exists(absl::StrCat(path_, "/", state.file)));
      if (!there && states_.empty()) break;  // a folder without state: state starts at zero
      CISTERN_RETURN_IF_ERROR(OpenColumn(files, state.file, state.floats * sizeof(float),
                                         &states_.emplace_back(nullptr)));
    }
    return absl::OkStatus();
  }

 private:
  // entry: bytes per row. The first column determines the number of rows.
  absl::Status OpenColumn(FileSystem& files, const char* name, size_t entry,
                          std::unique_ptr<ReadableFile>* column) {
    const std::string path = absl::StrCat(path_, "/", name);
    absl::StatusOr<std::unique_ptr<ReadableFile>> file = files.Open(path);
    if (absl::IsNotFound(file.status())) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": missing: a folder of HugeCTR 3.x holds ", kKeyFile, " and ", kVectorFile,
          shape_.has_slots ? ", for a Localized embedding slot_id too" : "",
          ", and all files of an optimizer's state or none"));
    }
    if (!file.ok()) return file.status();
    *column = *std::move(file);
    if (column == &keys_) return CheckWhole(path, entry);
    const uint64_t wanted = CheckedMul(rows_, entry).value_or(UINT64_MAX);  // matches no file
    if ((*column)->bytes() == wanted) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", (*column)->bytes(), " bytes; the folder's ", rows_, " keys at ",
                     entry, " bytes per row of the model need ", wanted,
                     ": compare embedding_vec_size with that of the run that wrote the file"));
  }
  absl::Status CheckWhole(const std::string& path, size_t entry) const {
    if (keys_->bytes() % entry == 0) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", keys_->bytes(), " bytes are not a multiple of the key size, ",
                     entry, " bytes: the file is truncated; copy it again"));
  }

  absl::Status ReadRows(uint64_t first, absl::Span<Key> keys, absl::Span<uint64_t> slots,
                        float* values) override {
    const ValueLayout& layout = shape_.layout;
    CISTERN_RETURN_IF_ERROR(keys_->Read(first * sizeof(Key), keys.size() * sizeof(Key),
                                        reinterpret_cast<char*>(keys.data())));
    if (shape_.has_slots) {
      CISTERN_RETURN_IF_ERROR(slots_->Read(first * sizeof(uint64_t),
                                           slots.size() * sizeof(uint64_t),
                                           reinterpret_cast<char*>(slots.data())));
    }
    CISTERN_RETURN_IF_ERROR(
        ReadCells(*vectors_, first, keys.size(), layout.dim(), values + layout.weight_index()));
    const std::vector<StateColumn> columns = shape_.states();
    for (size_t i = 0; i < states_.size(); ++i) {
      CISTERN_RETURN_IF_ERROR(ReadCells(*states_[i], first, keys.size(), columns[i].floats,
                                        values + layout.state_index() + columns[i].offset));
    }
    return absl::OkStatus();
  }

  // Reads `floats` numbers of each of n rows into `out`, whose stride is that of a value.
  absl::Status ReadCells(const ReadableFile& file, uint64_t first, size_t n, size_t floats,
                         float* out) {
    cells_.resize(n * floats);
    const size_t entry = floats * sizeof(float);
    CISTERN_RETURN_IF_ERROR(
        file.Read(first * entry, n * entry, reinterpret_cast<char*>(cells_.data())));
    for (size_t i = 0; i < n; ++i) {
      std::memcpy(out + i * shape_.layout.full_floats(), &cells_[i * floats], entry);
    }
    return absl::OkStatus();
  }

  std::unique_ptr<ReadableFile> keys_, vectors_, slots_;
  std::vector<std::unique_ptr<ReadableFile>> states_;
  std::vector<float> cells_;
};

}  // namespace

size_t SparseShape::record_bytes() const {
  return (wide_keys ? 8 : 4) + (has_slots ? 8 : 0) + dim() * sizeof(float);
}

std::vector<StateColumn> SparseShape::states() const {
  const RuleInfo& rule = InfoOf(layout.rule().kind);
  const uint32_t floats = rule.one_state_a_row ? 1 : layout.dim();
  std::vector<StateColumn> states;
  for (const char* file : rule.files) {
    states.push_back({file, static_cast<uint32_t>(states.size()) * floats, floats});
  }
  return states;
}

absl::StatusOr<SparseShape> SparseShapeOf(const model::ModelConfig& config, size_t index) {
  const model::EmbeddingConfig& embedding = config.embeddings[index];
  CISTERN_ASSIGN_OR_RETURN(const ValueLayout layout, ValueLayout::Create(embedding.spec));
  if (layout.accessor().has_statistics()) {
    return WithOptions(
        absl::InvalidArgumentError(absl::StrCat(config.path, ": embedding '", embedding.name,
                                                "' has the accessor ", layout.accessor().name(),
                                                ", whose rows HugeCTR's files cannot hold: save "
                                                "them on the servers, or in a model folder")),
        {"train.out"});
  }
  return SparseShape{config.solver.wide_keys, embedding.localized,
                     config.data.sparse[embedding.input].slot_num, layout};
}

absl::StatusOr<std::unique_ptr<SparseWriter>> SparseWriter::Create(FileSystem& files,
                                                                   const std::string& path,
                                                                   HugectrForm form,
                                                                   const SparseShape& shape) {
  if (form == HugectrForm::kV3) {
    auto writer = std::make_unique<ColumnWriter>(files, path, shape);
    CISTERN_RETURN_IF_ERROR(writer->Open());
    return writer;
  }
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<NewFile> file, NewFile::Create(files, path));
  return std::make_unique<RecordWriter>(path, shape, std::move(file));
}

absl::StatusOr<std::unique_ptr<SparseReader>> SparseReader::Open(FileSystem& files,
                                                                 const std::string& path,
                                                                 const SparseShape& shape) {
  absl::StatusOr<std::unique_ptr<ReadableFile>> file = files.Open(path);
  if (absl::IsNotFound(file.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": no such file or folder; paths are relative to the current folder"));
  }
  if (!file.ok()) {
    if (!files.List(path).ok()) return file.status();
    auto reader = std::make_unique<ColumnReader>(path, shape);
    CISTERN_RETURN_IF_ERROR(reader->Open(files));
    return reader;
  }
  const uint64_t bytes = (*file)->bytes(), record = shape.record_bytes();
  if (bytes % record != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": ", bytes, " bytes are not a multiple of the row size, ", record, " bytes (key of ",
        shape.wide_keys ? 8 : 4, shape.has_slots ? ", slot of 8" : "", ", ", shape.dim(),
        " floats): compare embedding_vec_size, input_key_type and the embedding's type with those "
        "of the run that wrote it, or copy the file again"));
  }
  return std::make_unique<RecordReader>(path, shape, *std::move(file));
}

absl::Status SparseReader::Read(uint64_t first, std::vector<Key>* keys,
                                std::vector<uint64_t>* slots, std::vector<float>* values) {
  const size_t stride = shape_.layout.full_floats();
  std::fill(keys->begin(), keys->end(), 0);
  slots->assign(keys->size(), 0);
  values->assign(keys->size() * stride, 0);
  CISTERN_RETURN_IF_ERROR(
      ReadRows(first, absl::MakeSpan(*keys), absl::MakeSpan(*slots), values->data()));
  for (size_t i = 0; i < keys->size(); ++i) {
    CISTERN_RETURN_IF_ERROR(CheckRow(first + i, (*keys)[i], (*slots)[i], &(*values)[i * stride]));
  }
  return CheckWeights(first, *values);
}

// Detects keys that are read as weights. An integer below 2^23, read as a float, is subnormal (5 is
// 7e-45); a trained weight is subnormal only by chance.
absl::Status SparseReader::CheckWeights(uint64_t first, const std::vector<float>& values) const {
  const size_t stride = shape_.layout.full_floats(), rows = values.size() / stride;
  size_t odd_rows = 0, odd = 0;
  for (size_t row = 0; row < rows; ++row) {
    const float* weights = &values[row * stride + shape_.layout.weight_index()];
    const bool is_odd = std::any_of(weights, weights + shape_.dim(),
                                    [](float x) { return std::fpclassify(x) == FP_SUBNORMAL; });
    if (is_odd && odd_rows++ == 0) odd = row;
  }
  if (odd_rows * 10 <= rows) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      path_, ": record ", first + odd, ", like ", odd_rows, " of ", rows,
      " rows read, has a weight below 1.2e-38, which is what a key read as a weight looks like: "
      "the file's rows do not have ",
      shape_.dim(), " floats (", shape_.record_bytes(),
      " bytes): compare embedding_vec_size, input_key_type and the embedding's type with those of "
      "the run that wrote it"));
}

absl::Status SparseReader::CheckRow(uint64_t row, Key key, uint64_t slot,
                                    const float* value) const {
  const auto error = [&](const std::string& what) {
    return absl::DataLossError(
        absl::StrCat(path_, ": record ", row, " (key ", key, "): ", what,
                     ": the file is damaged or belongs to another embedding; copy it again"));
  };
  if (key >= kReservedKey64) return error("this key is reserved and has no row");
  if (slot >= shape_.slot_num) {
    return error(absl::StrCat("slot ", slot, ", but the embedding has ", shape_.slot_num));
  }
  for (size_t i = 0; i < shape_.layout.full_floats(); ++i) {
    if (!std::isfinite(value[i])) return error(absl::StrCat("number ", i, " is not finite"));
  }
  return absl::OkStatus();
}

}  // namespace cistern
