// RowBlockBuilder and RowFileWriter of row_file.h.
#include <algorithm>
#include <utility>

#include "common/check.h"
#include "common/hash.h"
#include "common/names.h"
#include "server/checkpoint/row_file.h"
#include "server/checkpoint/row_file_footer.h"

namespace cistern {
namespace {

// u32 rows, u32 zero.
constexpr size_t kBlockHeadBytes = 8;

size_t PaddedTo8(size_t size) {
  return (size + 7) / 8 * 8;
}

void AppendBytes(const void* data, size_t size, std::string* out) {
  out->append(static_cast<const char*>(data), size);
}

}  // namespace

RowBlockBuilder::RowBlockBuilder(const ValueLayout* layout, uint32_t columns)
    : layout_(layout), columns_(columns) {
  CISTERN_CHECK((layout == nullptr) == (columns > 0));
}

size_t RowBlockBuilder::PayloadBytes(size_t rows, size_t cell_bytes) const {
  const size_t keys = layout_ == nullptr ? 0 : rows * sizeof(Key) + PaddedTo8(rows);
  return kBlockHeadBytes + keys + cell_bytes;
}

void RowBlockBuilder::Add(Key key, const float* value, bool full) {
  CISTERN_CHECK(layout_ != nullptr && (rows_ == 0 || key > last_key_));
  const size_t bytes = layout_->floats(full) * sizeof(float);
  if (PayloadBytes(pending_rows_ + 1, cells_.size() + bytes) > kMaxBlockBytes) Cut();
  keys_.push_back(key);
  full_.push_back(full ? 1 : 0);
  AppendBytes(value, bytes, &cells_);
  last_key_ = key;
  ++pending_rows_;
  ++rows_;
}

void RowBlockBuilder::AddDense(const float* cells) {
  CISTERN_CHECK(layout_ == nullptr);
  const size_t bytes = columns_ * sizeof(float);
  if (PayloadBytes(pending_rows_ + 1, cells_.size() + bytes) > kMaxBlockBytes) Cut();
  AppendBytes(cells, bytes, &cells_);
  ++pending_rows_;
  ++rows_;
}

void RowBlockBuilder::Cut() {
  if (pending_rows_ == 0) return;
  Block block;
  block.rows = pending_rows_;
  block.payload.reserve(PayloadBytes(pending_rows_, cells_.size()));
  const uint32_t head[2] = {pending_rows_, 0};
  AppendBytes(head, sizeof(head), &block.payload);
  AppendBytes(keys_.data(), keys_.size() * sizeof(Key), &block.payload);
  full_.resize(PaddedTo8(full_.size()));
  block.payload += full_;
  block.payload += cells_;
  done_.push_back(std::move(block));
  pending_rows_ = 0;
  keys_.clear();
  full_.clear();
  cells_.clear();
}

std::vector<RowBlockBuilder::Block> RowBlockBuilder::Take(bool finish) {
  if (finish) Cut();
  return std::exchange(done_, {});
}

RowFileWriter::RowFileWriter(FileSystem& files, const std::string& folder, const std::string& name)
    : files_(files),
      folder_(folder),
      name_(name),
      path_(absl::StrCat(folder, "/", name)),
      footer_(std::make_unique<RowFileFooter>()) {}

absl::StatusOr<std::unique_ptr<RowFileWriter>> RowFileWriter::Create(FileSystem& files,
                                                                     const std::string& folder,
                                                                     const std::string& name,
                                                                     const RowFileHeader& header) {
  CISTERN_RETURN_IF_ERROR(AddContext(CheckName(name), "name of a row file"));
  std::unique_ptr<RowFileWriter> writer(new RowFileWriter(files, folder, name));
  writer->footer_->header = header;
  CISTERN_ASSIGN_OR_RETURN(writer->file_, files.Create(writer->path_));
  CISTERN_RETURN_IF_ERROR(writer->Write(EncodeRowFileHeader(header)));
  return writer;
}

RowFileWriter::~RowFileWriter() {
  if (finished_ || file_ == nullptr) return;
  file_.reset();
  files_.Remove(path_).IgnoreError();  // no manifest names it
}

absl::Status RowFileWriter::Write(absl::string_view bytes) {
  CISTERN_RETURN_IF_ERROR(file_->Append(bytes));
  bytes_ += bytes.size();
  return absl::OkStatus();
}

absl::Status RowFileWriter::BeginSection(const RowSection& section) {
  CISTERN_CHECK(!in_section_ && !finished_);
  in_section_ = true;
  RowSection& begun = footer_->sections.emplace_back(section);
  begun.first_block = footer_->block_hashes.size();
  begun.rows = begun.block_num = begun.bytes = 0;
  return absl::OkStatus();
}

absl::Status RowFileWriter::Append(const RowBlockBuilder::Block& block) {
  CISTERN_CHECK(in_section_);
  CISTERN_RETURN_IF_ERROR(Write(block.payload));
  footer_->block_hashes.push_back(HashBytes(block.payload));
  footer_->block_bytes.push_back(block.payload.size());
  RowSection& section = footer_->sections.back();
  section.rows += block.rows;
  section.bytes += block.payload.size();
  ++section.block_num;
  return absl::OkStatus();
}

absl::Status RowFileWriter::EndSection(uint64_t total_rows, uint64_t digest) {
  CISTERN_CHECK(in_section_);
  in_section_ = false;
  footer_->sections.back().total_rows = total_rows;
  footer_->sections.back().digest = digest;
  return absl::OkStatus();
}

absl::StatusOr<v1::RowFile> RowFileWriter::Finish() {
  CISTERN_CHECK(!in_section_ && !finished_);
  const std::string footer = EncodeRowFileFooter(*footer_);
  // A file that could not be read back must never be named by a manifest.
  const absl::Status readable = footer.size() > kMaxFooterBytes
                                    ? absl::InternalError("it has too many blocks")
                                    : DecodeRowFileFooter(footer, bytes_).status();
  if (!readable.ok()) {
    return absl::InternalError(
        absl::StrCat("writing ", ShownPath(path_), ": ", readable.message()));
  }
  const RowFileTrailer trailer{bytes_, footer.size(), HashBytes(footer)};
  CISTERN_RETURN_IF_ERROR(Write(footer));
  CISTERN_RETURN_IF_ERROR(Write(EncodeRowFileTrailer(trailer)));
  CISTERN_RETURN_IF_ERROR(file_->Sync());
  CISTERN_RETURN_IF_ERROR(file_->Close());
  CISTERN_RETURN_IF_ERROR(files_.SyncFolder(folder_));
  finished_ = true;
  const RowFileHeader& header = footer_->header;
  v1::RowFile file;
  file.set_name(name_);
  file.set_base(header.base);
  file.set_server(header.server);
  file.set_server_num(header.server_num);
  file.set_commit(header.commit);
  file.set_epoch(header.epoch);
  for (const RowSection& section : footer_->sections) file.set_rows(file.rows() + section.rows);
  file.set_bytes(bytes_);
  file.set_root(trailer.footer_hash);
  return file;
}

}  // namespace cistern
