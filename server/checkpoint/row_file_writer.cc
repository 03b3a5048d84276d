// RowBlockBuilder and RowFileWriter of row_file.h.
#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/names.h"
#include "server/checkpoint/row_file.h"
#include "server/checkpoint/row_file_footer.h"

namespace cistern::server {
namespace {

size_t PaddedTo8(size_t size) {
  return (size + 7) / 8 * 8;
}

// The maximum number of rows of a block: as many as fit if none holds its embedx.
size_t MaxRows(const ValueLayout& layout, size_t block_bytes) {
  return block_bytes / (sizeof(Key) + 1 + layout.floats(false) * sizeof(float)) + 1;
}

// Filter bits per key. Each key that newer files lack is looked up in a delta; a base is
// searched only for those that no delta has.
constexpr uint32_t kBaseFilterBits = 12, kDeltaFilterBits = 16;

void AppendBytes(const void* data, size_t size, std::string* out) {
  out->append(static_cast<const char*>(data), size);
}

}  // namespace

size_t IndexedBlockBytes(const ValueLayout& layout) {
  return IndexedBlockBytes(layout.full_floats() * sizeof(float));
}

size_t IndexedBlockBytes(size_t value_bytes) {
  const size_t row = sizeof(Key) + 1 + value_bytes;
  for (size_t bytes = size_t{4} << 10; bytes < kMaxBlockBytes; bytes *= 2) {
    const size_t rows = (bytes - kBlockHeadBytes) / row;
    if (rows * row * 100 >= bytes * 94) return bytes;
  }
  return kMaxBlockBytes;
}

RowBlockBuilder::RowBlockBuilder(const ValueLayout* layout, uint32_t columns, size_t block_bytes)
    : layout_(layout),
      columns_(columns),
      block_bytes_(block_bytes),
      max_rows_(layout == nullptr ? 0 : MaxRows(*layout, block_bytes)),
      head_room_(HeadBytes(max_rows_)) {
  CISTERN_CHECK((layout == nullptr) == (columns > 0));
}

size_t RowBlockBuilder::HeadBytes(size_t rows) const {
  return kBlockHeadBytes + (layout_ == nullptr ? 0 : rows * sizeof(Key) + PaddedTo8(rows));
}

void RowBlockBuilder::Add(Key key, const float* value, bool has_embedx) {
  CISTERN_CHECK(layout_ != nullptr && (rows_ == 0 || key > last_key_));
  AddCells(value, layout_->floats(has_embedx) * sizeof(float));
  AddKey(key, has_embedx ? 1 : 0);
}

void RowBlockBuilder::AddRemoved(Key key) {
  CISTERN_CHECK(layout_ != nullptr && (rows_ == 0 || key > last_key_));
  AddCells(nullptr, 0);
  AddKey(key, kRemovedRow);
}

void RowBlockBuilder::AddKey(Key key, uint8_t has_embedx) {
  keys_.push_back(key);
  has_embedx_.push_back(static_cast<char>(has_embedx));
  last_key_ = key;
}

void RowBlockBuilder::AddDense(const float* cells) {
  CISTERN_CHECK(layout_ == nullptr);
  AddCells(cells, columns_ * sizeof(float));
}

void RowBlockBuilder::AddCells(const float* cells, size_t bytes) {
  const size_t before = block_.rows_ == 0 ? 0 : block_.bytes_.size() - head_room_;
  if (HeadBytes(block_.rows_ + 1) + before + bytes > block_bytes_ ||
      (layout_ != nullptr && block_.rows_ == max_rows_)) {
    Cut();
  }
  if (block_.rows_ == 0) {
    block_.bytes_.reserve(head_room_ + block_bytes_);
    block_.bytes_.resize(head_room_);
  }
  if (bytes > 0) AppendBytes(cells, bytes, &block_.bytes_);
  ++block_.rows_;
  ++rows_;
}

void RowBlockBuilder::Cut() {
  if (block_.rows_ == 0) return;
  block_.begin_ = head_room_ - HeadBytes(block_.rows_);
  char* head = block_.bytes_.data() + block_.begin_;
  const uint32_t numbers[2] = {block_.rows_, 0};
  std::memcpy(head, numbers, sizeof(numbers));
  // Blocks of a dense table have no keys.
  if (!keys_.empty()) std::memcpy(head + sizeof(numbers), keys_.data(), keys_.size() * sizeof(Key));
  std::memcpy(head + sizeof(numbers) + keys_.size() * sizeof(Key), has_embedx_.data(),
              has_embedx_.size());
  block_.hash_ = HashBytes(block_.payload().data(), block_.payload().size());
  done_.push_back(std::exchange(block_, Block()));
  keys_.clear();
  has_embedx_.clear();
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

absl::Status RowFileWriter::Append(const std::vector<RowBlockBuilder::Block>& blocks) {
  CISTERN_CHECK(in_section_);
  RowSection& section = footer_->sections.back();
  for (const RowBlockBuilder::Block& block : blocks) {
    CISTERN_RETURN_IF_ERROR(Write(block.payload()));
    footer_->block_hashes.push_back(block.hash());
    footer_->block_bytes.push_back(block.payload().size());
    if (footer_->header.indexed) AddKeys(block, section.dense);
    section.rows += block.rows();
    section.bytes += block.payload().size();
    ++section.block_num;
  }
  return absl::OkStatus();
}

void RowFileWriter::AddKeys(const RowBlockBuilder::Block& block, bool dense) {
  if (dense) {
    footer_->first_keys.push_back(0);
    return;
  }
  const size_t before = section_keys_.size();
  section_keys_.resize(before + block.rows());
  std::memcpy(&section_keys_[before], block.payload().data() + kBlockHeadBytes,
              block.rows() * sizeof(Key));
  footer_->first_keys.push_back(section_keys_[before]);
}

absl::Status RowFileWriter::EndSection(uint64_t total_rows, uint64_t digest) {
  CISTERN_CHECK(in_section_);
  in_section_ = false;
  if (footer_->header.indexed) {
    filters_.push_back(
        section_keys_.empty()
            ? KeyFilter()
            : KeyFilter(section_keys_, footer_->header.base ? kBaseFilterBits : kDeltaFilterBits));
    section_keys_.clear();
  }
  footer_->sections.back().total_rows = total_rows;
  footer_->sections.back().digest = digest;
  return absl::OkStatus();
}

absl::Status RowFileWriter::WriteFilters() {
  for (const KeyFilter& filter : filters_) {
    const absl::string_view bytes(reinterpret_cast<const char*>(filter.words().data()),
                                  filter.bytes());
    footer_->filters.push_back({0, bytes.size(), HashBytes(bytes.data(), bytes.size())});
    CISTERN_RETURN_IF_ERROR(Write(bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::RowFile> RowFileWriter::Finish() {
  CISTERN_CHECK(!in_section_ && !finished_);
  CISTERN_RETURN_IF_ERROR(WriteFilters());
  const std::string footer = EncodeRowFileFooter(*footer_);
  // A file that could not be read back must never be named by a manifest.
  const absl::Status readable = footer.size() > kMaxFooterBytes
                                    ? absl::InternalError("it has too many blocks")
                                    : DecodeRowFileFooter(footer, bytes_).status();
  if (!readable.ok()) {
    return absl::InternalError(absl::StrCat("writing ", path_, ": ", readable.message()));
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
  file.set_epoch(header.term);
  for (const RowSection& section : footer_->sections) file.set_rows(file.rows() + section.rows);
  file.set_bytes(bytes_);
  file.set_root(trailer.footer_hash);
  return file;
}

}  // namespace cistern::server
