#include "worker/export/xbox/part_files.h"

#include <algorithm>
#include <tuple>

#include "common/base/hash.h"

namespace cistern {
namespace {

void PutU64(uint64_t x, std::string* out) {
  for (int shift = 0; shift < 64; shift += 8) out->push_back(static_cast<char>(x >> shift));
}

// Markers must differ between files, and need not be secret.
std::string MarkerOf(const std::string& origin, uint32_t part) {
  std::string marker;
  for (const char* half : {"/0", "/1"}) {
    PutU64(HashBytes(absl::StrCat(origin, "/", part, half)), &marker);
  }
  return marker;
}

}  // namespace

std::string PartName(uint32_t part) {
  return absl::StrCat("part-", absl::Dec(part, absl::kZeroPad3));
}

absl::StatusOr<std::unique_ptr<PartFiles>> PartFiles::Create(FileSystem& files,
                                                             const std::string& folder,
                                                             uint32_t count,
                                                             const SequenceFormat& format,
                                                             const std::string& origin) {
  auto parts = std::make_unique<PartFiles>();
  for (uint32_t part = 0; part < count; ++part) {
    CISTERN_ASSIGN_OR_RETURN(
        std::unique_ptr<SequenceFileWriter> writer,
        SequenceFileWriter::Create(files, absl::StrCat(folder, "/", PartName(part)), format,
                                   MarkerOf(origin, part)));
    parts->writers_.push_back(std::move(writer));
  }
  return parts;
}

void PartFiles::Add(uint32_t part, uint64_t order, Key key, absl::string_view value) {
  const size_t begin = group_bytes_.size();
  PutU64(key, &group_bytes_);
  absl::StrAppend(&group_bytes_, value);
  const size_t bytes = group_bytes_.size() - begin;
  digest_ += HashBytes(group_bytes_.data() + begin, bytes);
  group_.push_back({order, key, begin, static_cast<uint32_t>(bytes), part});
}

absl::Status PartFiles::EndGroup() {
  std::sort(group_.begin(), group_.end(), [](const Row& a, const Row& b) {
    return std::tie(a.order, a.key) < std::tie(b.order, b.key);
  });
  for (const Row& row : group_) {
    const absl::string_view record = absl::string_view(group_bytes_).substr(row.begin, row.bytes);
    CISTERN_RETURN_IF_ERROR(
        writers_[row.part]->Append(record.substr(0, sizeof(Key)), record.substr(sizeof(Key))));
  }
  rows_ += group_.size();
  group_.clear();
  group_bytes_.clear();
  return absl::OkStatus();
}

absl::Status PartFiles::Close() {
  for (const auto& writer : writers_) CISTERN_RETURN_IF_ERROR(writer->Close());
  return absl::OkStatus();
}

uint64_t PartFiles::bytes() const {
  uint64_t sum = 0;
  for (const auto& writer : writers_) sum += writer->bytes();
  return sum;
}

ExportManifest PartFiles::Describe(const std::string& prefix) const {
  ExportManifest all = ExportManifest::array();
  for (uint32_t part = 0; part < writers_.size(); ++part) {
    const SequenceFileWriter& writer = *writers_[part];
    all.push_back({{"name", prefix + PartName(part)},
                   {"rows", writer.rows()},
                   {"bytes", writer.bytes()},
                   {"xxh3", HashText(writer.xxh3())}});
  }
  return all;
}

}  // namespace cistern
