#include "worker/data/format/tar_shard_writer.h"

#include <array>
#include <cstring>

#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "worker/data/format/tar_archive.h"

namespace cistern::data {
namespace {

static_assert(TarShardWriter::kEndBytes == 2 * kTarBlock);

// A ustar header of a regular file that everyone may read.
std::array<char, kTarBlock> HeaderOf(absl::string_view name, uint64_t bytes) {
  std::array<char, kTarBlock> block = {};
  const auto put = [&block](size_t at, absl::string_view text) {
    std::memcpy(block.data() + at, text.data(), text.size());
  };
  put(0, name);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, absl::StrFormat("%011o", bytes));
  put(136, "00000000000");
  put(148, "        ");
  block[156] = '0';
  put(257, absl::string_view("ustar\00000", 8));
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  put(148, absl::StrFormat("%06o", sum));
  block[154] = '\0';
  return block;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TarShardWriter>> TarShardWriter::Create(FileSystem& files,
                                                                       const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<NewFile> file, NewFile::Create(files, path));
  file->WillBeRead();
  return std::unique_ptr<TarShardWriter>(new TarShardWriter(std::move(file)));
}

absl::Status TarShardWriter::Append(absl::string_view name, absl::string_view contents) {
  CISTERN_CHECK(!name.empty() && name.size() <= kMaxName);
  CISTERN_CHECK(contents.size() < (uint64_t{1} << 33));
  const std::array<char, kTarBlock> header = HeaderOf(name, contents.size());
  CISTERN_RETURN_IF_ERROR(file_->Append({header.data(), header.size()}));
  CISTERN_RETURN_IF_ERROR(file_->Append(contents));
  const std::string padding(
      static_cast<size_t>(MemberBytes(contents.size())) - kTarBlock - contents.size(), '\0');
  bytes_ += MemberBytes(contents.size());
  return file_->Append(padding);
}

absl::Status TarShardWriter::Close() {
  CISTERN_RETURN_IF_ERROR(file_->Append(std::string(kEndBytes, '\0')));
  return file_->Close();
}

uint64_t TarShardWriter::bytes() const {
  return bytes_ + kEndBytes;
}

uint64_t TarShardWriter::MemberBytes(uint64_t size) {
  return kTarBlock + (size + kTarBlock - 1) / kTarBlock * kTarBlock;
}

}  // namespace cistern::data
