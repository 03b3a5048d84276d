#include "common/saved_model/table_writer.h"

namespace cistern {

absl::StatusOr<std::unique_ptr<ShardWriter>> ShardWriter::Create(
    FileSystem& files, const std::string& folder, const ModelPart& part, const std::string& table,
    uint32_t shard, const ValueLayout& layout) {
  CISTERN_ASSIGN_OR_RETURN(
      std::unique_ptr<ModelFileWriter> file,
      ModelFileWriter::Create(files, folder,
                              SparsePartName(table, part.server, shard, part.format)));
  return std::unique_ptr<ShardWriter>(new ShardWriter(std::move(file), part.format, layout));
}

void ShardWriter::Add(Key key, const float* value, bool has_embedx) {
  AppendRow(format_, layout_, key, value, has_embedx, &bytes_);
  sum_ += digest_(key, value, has_embedx);
  ++rows_;
}

void ShardWriter::AddUnpacked(Key key, const float* value, bool has_embedx) {
  if (!layout_.is_packed()) return Add(key, value, has_embedx);
  packed_.resize(layout_.full_floats());
  layout_.Pack(value, packed_.data());
  Add(key, packed_.data(), has_embedx);
}

absl::Status ShardWriter::Flush() {
  CISTERN_RETURN_IF_ERROR(file_->Append(bytes_, rows_));
  bytes_.clear();
  rows_ = 0;
  return absl::OkStatus();
}

absl::StatusOr<ModelFile> ShardWriter::Close() {
  CISTERN_RETURN_IF_ERROR(Flush());
  CISTERN_ASSIGN_OR_RETURN(ModelFile file, file_->Close());
  if (IsExact(format_)) file.digest = sum_;
  return file;
}

absl::StatusOr<std::unique_ptr<DenseWriter>> DenseWriter::Create(FileSystem& files,
                                                                 const std::string& folder,
                                                                 const ModelPart& part,
                                                                 const v1::DenseTableSpec& table,
                                                                 uint64_t first_row) {
  CISTERN_ASSIGN_OR_RETURN(
      std::unique_ptr<ModelFileWriter> file,
      ModelFileWriter::Create(files, folder,
                              DensePartName(table.name(), part.server, part.format)));
  return std::unique_ptr<DenseWriter>(
      new DenseWriter(std::move(file), part.format, table, first_row));
}

absl::Status DenseWriter::Append(absl::Span<const float> values) {
  const size_t columns = static_cast<size_t>(table_.columns_size());
  std::string bytes;
  const uint64_t first = row_;
  for (; !values.empty(); values.remove_prefix(columns), ++row_) {
    const absl::Span<const float> cells = values.first(columns);
    AppendDenseRow(format_, table_, row_, cells, &bytes);
    for (size_t c = 0; c < columns; ++c) {
      sum_ += DenseCellDigest(row_, static_cast<uint32_t>(c), cells[c]);
    }
  }
  return file_->Append(bytes, row_ - first);
}

absl::StatusOr<ModelFile> DenseWriter::Close() {
  CISTERN_ASSIGN_OR_RETURN(ModelFile file, file_->Close());
  if (IsExact(format_, table_)) file.digest = sum_;
  return file;
}

}  // namespace cistern
