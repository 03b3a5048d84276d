#include "worker/data/format/parquet_file.h"

#include <arrow/io/file.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/io/file.h"
#include "worker/data/format/key_weights.h"
#include "worker/data/format/parquet_error.h"
#include "worker/data/format/parquet_types.h"
#include "worker/data/storage/remote_file.h"
#include "worker/data/storage/storage.h"

namespace cistern::data {
namespace {

constexpr size_t kRowsPerRead = 4096;
constexpr int64_t kRemoteBufferBytes = int64_t{1} << 20;  // of one request, by column

// Limits the footer's strings and lists to the file size, whatever lengths they declare.
parquet::ReaderProperties PropertiesFor(int64_t file_bytes, ParquetMemory* memory) {
  parquet::ReaderProperties properties(memory);
  properties.enable_buffered_stream();              // a column chunk may be large
  properties.set_page_checksum_verification(true);  // of the pages that have one
  const auto lower = [&](int32_t limit) {
    return static_cast<int32_t>(std::clamp<int64_t>(file_bytes, 1, limit));
  };
  properties.set_thrift_string_size_limit(lower(properties.thrift_string_size_limit()));
  properties.set_thrift_container_size_limit(lower(properties.thrift_container_size_limit()));
  return properties;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ParquetFile>> ParquetFile::Open(const std::string& path,
                                                               const SampleShape& shape,
                                                               const SlotSizes& sizes,
                                                               ReadCounts* counts) {
  std::unique_ptr<ParquetFile> file(new ParquetFile(path, shape, sizes, counts));
  if (IsRemote(path)) {
    CISTERN_ASSIGN_OR_RETURN(file->remote_, OpenRemoteFile(path));
  } else {
    CISTERN_RETURN_IF_ERROR(OpenFile(path).status());  // on a FIFO, Arrow would block
  }
  CISTERN_RETURN_IF_ERROR(ReadParquet(path, file->memory_, [&] { return file->OpenFooter(); }));
  return file;
}

absl::Status ParquetFile::OpenFooter() {
  std::shared_ptr<arrow::io::RandomAccessFile> source = remote_;
  if (source == nullptr) {
    PARQUET_ASSIGN_OR_THROW(source, arrow::io::ReadableFile::Open(path_));
  }
  PARQUET_ASSIGN_OR_THROW(const int64_t file_bytes, source->GetSize());
  memory_ = std::make_unique<ParquetMemory>(file_bytes);
  parquet::ReaderProperties properties = PropertiesFor(file_bytes, memory_.get());
  if (remote_ != nullptr) properties.set_buffer_size(kRemoteBufferBytes);
  file_ = parquet::ParquetFileReader::Open(source, properties);
  const parquet::FileMetaData& footer = *file_->metadata();
  int64_t rows = 0;
  for (int group = 0; group < footer.num_row_groups(); ++group) {
    const int64_t more = footer.RowGroup(group)->num_rows();
    if (more < 0 || more > std::numeric_limits<int64_t>::max() - rows) {
      return absl::DataLossError(absl::StrCat(path_, ": a row group has ", more, " rows"));
    }
    rows += more;
  }
  if (rows != footer.num_rows()) {
    return absl::DataLossError(absl::StrCat(path_, ": the footer declares ", footer.num_rows(),
                                            " rows, but the row groups hold ", rows,
                                            ": the file is corrupt"));
  }
  rows_ = static_cast<uint64_t>(rows);
  ParquetOutline outline = {path_, {}, rows};
  for (int i = 0; i < footer.num_columns(); ++i) {
    const parquet::ColumnDescriptor& column = *footer.schema()->Column(i);
    if (column.max_repetition_level() > 0 || column.path()->ToDotVector().size() > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, ": column '", column.path()->ToDotString(),
                       "' is nested: a slot holds one key in this format, so write one column of "
                       "numbers for each slot, or Norm files"));
    }
    outline.names.push_back(column.name());
  }
  CISTERN_ASSIGN_OR_RETURN(columns_, FindParquetColumns(outline, shape_));
  return CheckTypes();
}

absl::Status ParquetFile::CheckTypes() const {
  for (int position : columns_.labels) CISTERN_RETURN_IF_ERROR(CheckType(position, false));
  for (int position : columns_.dense) CISTERN_RETURN_IF_ERROR(CheckType(position, false));
  for (int position : columns_.slots) CISTERN_RETURN_IF_ERROR(CheckType(position, true));
  for (int position : columns_.weights) CISTERN_RETURN_IF_ERROR(CheckType(position, false));
  return absl::OkStatus();
}

absl::Status ParquetFile::CheckType(int position, bool is_slot) const {
  return AddContext(
      CheckParquetType(*file_->metadata()->schema()->Column(position), position, is_slot), path_);
}

absl::StatusOr<size_t> ParquetFile::Read(size_t max_samples, SampleBlock* block) {
  CISTERN_RETURN_IF_ERROR(error_);
  size_t done = 0;
  while (done < max_samples && group_ < file_->metadata()->num_row_groups()) {
    const uint64_t left = group_rows() - group_row_;
    const size_t count =
        static_cast<size_t>(std::min<uint64_t>({max_samples - done, left, kRowsPerRead}));
    error_ = ReadParquet(path_, memory_, [&] { return AppendRows(count, block); });
    if (!error_.ok()) CutBack(block);
    CISTERN_RETURN_IF_ERROR(error_);
    done += count;
    group_row_ += count;
    if (group_row_ == group_rows()) EndGroup();
  }
  return done;
}

absl::StatusOr<uint64_t> ParquetFile::Skip(uint64_t max_samples) {
  CISTERN_RETURN_IF_ERROR(error_);
  uint64_t done = 0;
  while (done < max_samples && group_ < file_->metadata()->num_row_groups()) {
    const uint64_t count = std::min(group_rows() - group_row_, max_samples - done);
    done += count;
    if (group_row_ + count == group_rows()) {
      EndGroup();
      continue;
    }
    error_ = ReadParquet(path_, memory_, [&] { return SkipRows(static_cast<size_t>(count)); });
    CISTERN_RETURN_IF_ERROR(error_);
    group_row_ += count;
  }
  return done;
}

uint64_t ParquetFile::group_rows() const {
  return static_cast<uint64_t>(file_->metadata()->RowGroup(group_)->num_rows());
}

void ParquetFile::OpenGroup() {
  group_reader_ = file_->RowGroup(group_);
  const auto open = [&](const std::vector<int>& positions, std::vector<Column>* columns) {
    for (int position : positions) {
      columns->push_back({position, group_reader_->Column(position)});
    }
  };
  open(columns_.labels, &label_);
  open(columns_.dense, &dense_);
  open(columns_.slots, &slot_);
  open(columns_.weights, &slot_);
}

void ParquetFile::EndGroup() {
  label_.clear();
  dense_.clear();
  slot_.clear();
  group_reader_.reset();
  ++group_;
  group_row_ = 0;
}

absl::Status ParquetFile::AppendRows(size_t count, SampleBlock* block) {
  if (group_reader_ == nullptr) OpenGroup();
  block->label.resize((block->size + count) * label_.size());
  block->dense.resize((block->size + count) * dense_.size());
  for (size_t i = 0; i < label_.size(); ++i) {
    CISTERN_RETURN_IF_ERROR(ReadFloats(&label_[i], count, "label",
                                       block->label.data() + block->size * label_.size() + i,
                                       label_.size()));
  }
  for (size_t i = 0; i < dense_.size(); ++i) {
    CISTERN_RETURN_IF_ERROR(ReadFloats(&dense_[i], count, "dense feature",
                                       block->dense.data() + block->size * dense_.size() + i,
                                       dense_.size()));
  }
  size_t slot_of_all = 0;
  for (size_t input = 0; input < shape_.slot_nums.size(); ++input) {
    const size_t slots = shape_.slot_nums[input];
    SparseColumn& column = block->sparse[input];
    const size_t first = column.keys.size();
    column.keys.resize(first + count * slots);
    for (size_t slot = 0; slot < slots; ++slot, ++slot_of_all) {
      Column* const from = &slot_[slot_of_all];
      Key* const out = column.keys.data() + first + slot;
      CISTERN_RETURN_IF_ERROR(slot_of_all < columns_.slots.size()
                                  ? ReadKeys(from, count, slot_of_all, out, slots)
                                  : ReadWeights(from, count, out, slots));
    }
    for (size_t k = first + 1; k <= column.keys.size(); ++k) {
      column.offsets.push_back(static_cast<uint32_t>(k));
    }
  }
  block->size += count;
  return absl::OkStatus();
}

void ParquetFile::CutBack(SampleBlock* block) const {
  block->label.resize(block->size * shape_.label_dim);
  block->dense.resize(block->size * shape_.dense_dim);
  for (size_t input = 0; input < shape_.slot_nums.size(); ++input) {
    SparseColumn& column = block->sparse[input];
    column.offsets.resize(block->size * shape_.slot_nums[input] + 1);
    column.keys.resize(column.offsets.back());
  }
}

absl::Status ParquetFile::SkipRows(size_t count) {
  if (group_reader_ == nullptr) OpenGroup();
  for (std::vector<Column>* columns : {&label_, &dense_, &slot_}) {
    for (Column& column : *columns) CISTERN_RETURN_IF_ERROR(SkipValues(&column, count));
  }
  return absl::OkStatus();
}

absl::Status ParquetFile::SkipValues(Column* column, size_t count) const {
  const auto skip = [&](auto* type) {
    using Type = std::remove_pointer_t<decltype(type)>;
    auto& reader = static_cast<parquet::TypedColumnReader<Type>&>(*column->reader);
    return static_cast<uint64_t>(reader.Skip(static_cast<int64_t>(count)));
  };
  uint64_t skipped = 0;
  switch (column->reader->type()) {
    case parquet::Type::FLOAT:
      skipped = skip(static_cast<parquet::FloatType*>(nullptr));
      break;
    case parquet::Type::DOUBLE:
      skipped = skip(static_cast<parquet::DoubleType*>(nullptr));
      break;
    case parquet::Type::INT32:
      skipped = skip(static_cast<parquet::Int32Type*>(nullptr));
      break;
    case parquet::Type::INT64:
      skipped = skip(static_cast<parquet::Int64Type*>(nullptr));
      break;
    default:
      skipped = skip(static_cast<parquet::BooleanType*>(nullptr));
  }
  if (skipped == count) return absl::OkStatus();
  return Refuse(absl::StatusCode::kDataLoss, static_cast<size_t>(skipped), *column,
                "the column ends before its row group does: the file is corrupt");
}

absl::Status ParquetFile::ReadFloats(Column* column, size_t count, const char* what, float* out,
                                     size_t stride) {
  CISTERN_RETURN_IF_ERROR(ReadValues(column, count));
  size_t odd = count;
  VisitValues(*column, count, [&](size_t row, auto value) {
    const float x = static_cast<float>(value);
    if (!std::isfinite(x)) odd = std::min(odd, row);
    out[row * stride] = x;
  });
  if (odd == count) return absl::OkStatus();
  return Refuse(absl::StatusCode::kDataLoss, odd, *column,
                absl::StrCat("the ", what, " is not a finite float: fill or drop such rows"));
}

absl::Status ParquetFile::ReadKeys(Column* column, size_t count, size_t slot, Key* out,
                                   size_t stride) {
  CISTERN_RETURN_IF_ERROR(ReadValues(column, count));
  const Key offset = sizes_.offset(slot), size = sizes_.size(slot);
  size_t bad = count;
  int64_t bad_key = 0;
  VisitValues(*column, count, [&](size_t row, auto value) {
    // The cast turns a negative number into one above every size.
    const Key key = static_cast<Key>(static_cast<int64_t>(value));
    if (key >= size && row < bad) {
      bad = row;
      bad_key = static_cast<int64_t>(key);
    }
    out[row * stride] = key + offset;
  });
  if (bad == count) return absl::OkStatus();
  return Refuse(absl::StatusCode::kOutOfRange, bad, *column, sizes_.Refusal(slot, bad_key));
}

absl::Status ParquetFile::ReadWeights(Column* column, size_t count, Key* out, size_t stride) {
  weight_.resize(std::max(weight_.size(), count));
  CISTERN_RETURN_IF_ERROR(ReadFloats(column, count, "weight of a key", weight_.data(), 1));
  for (size_t row = 0; row < count; ++row) out[row * stride] = BitsOf(weight_[row]);
  return absl::OkStatus();
}

absl::Status ParquetFile::ReadValues(Column* column, size_t count) {
  if (counts_ != nullptr) {
    counts_->decoded_bytes +=
        count * static_cast<size_t>(std::max(1, parquet::GetTypeByteSize(column->reader->type())));
  }
  scratch_.resize(std::max(scratch_.size(), count));
  levels_.resize(std::max(levels_.size(), count));
  switch (column->reader->type()) {
    case parquet::Type::FLOAT:
      return ReadTyped<parquet::FloatType>(column, count);
    case parquet::Type::DOUBLE:
      return ReadTyped<parquet::DoubleType>(column, count);
    case parquet::Type::INT32:
      return ReadTyped<parquet::Int32Type>(column, count);
    case parquet::Type::INT64:
      return ReadTyped<parquet::Int64Type>(column, count);
    default:
      return ReadTyped<parquet::BooleanType>(column, count);
  }
}

template <typename Type>
absl::Status ParquetFile::ReadTyped(Column* column, size_t count) {
  auto& reader = static_cast<parquet::TypedColumnReader<Type>&>(*column->reader);
  auto* values = reinterpret_cast<typename Type::c_type*>(scratch_.data());
  const bool optional = reader.descr()->max_definition_level() > 0;
  for (size_t done = 0; done < count;) {
    int64_t got = 0;
    const int64_t levels =
        reader.ReadBatch(static_cast<int64_t>(count - done), optional ? levels_.data() : nullptr,
                         nullptr, values + done, &got);
    const int64_t rows = optional ? levels : got;
    for (int64_t i = 0; optional && i < rows; ++i) {
      if (levels_[i] == reader.descr()->max_definition_level()) continue;
      return Refuse(absl::StatusCode::kDataLoss, done + i, *column,
                    "is null: fill the column's missing values, or drop such rows");
    }
    if (rows <= 0 || static_cast<size_t>(rows) > count - done) {
      return Refuse(absl::StatusCode::kDataLoss, done, *column,
                    "the column ends before its row group does: the file is corrupt");
    }
    done += static_cast<size_t>(rows);
  }
  return absl::OkStatus();
}

template <typename Visit>
void ParquetFile::VisitValues(const Column& column, size_t count, const Visit& visit) const {
  const auto each = [&](const auto* values) {
    for (size_t row = 0; row < count; ++row) visit(row, values[row]);
  };
  const void* values = scratch_.data();
  const bool is_unsigned = IsUnsignedColumn(*column.reader->descr());
  switch (column.reader->type()) {
    case parquet::Type::FLOAT:
      return each(static_cast<const float*>(values));
    case parquet::Type::DOUBLE:
      return each(static_cast<const double*>(values));
    case parquet::Type::INT32:
      return is_unsigned ? each(static_cast<const uint32_t*>(values))
                         : each(static_cast<const int32_t*>(values));
    case parquet::Type::INT64:
      return is_unsigned ? each(static_cast<const uint64_t*>(values))
                         : each(static_cast<const int64_t*>(values));
    default:
      return each(static_cast<const bool*>(values));
  }
}

absl::Status ParquetFile::Refuse(absl::StatusCode code, size_t row, const Column& column,
                                 const std::string& why) const {
  return absl::Status(
      code, absl::StrCat(path_, ": row group ", group_, ", row ", group_row_ + row, ": column '",
                         file_->metadata()->schema()->Column(column.position)->name(), "': ", why));
}

}  // namespace cistern::data
