#include "worker/data/prepare/criteo_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/io/new_file.h"

namespace cistern::data {
namespace {

// Scales dense numbers to [0, 1] by their range. Returns the count of numbers outside their range.
uint64_t ScaleDense(const std::vector<std::pair<float, float>>& ranges, uint32_t* row) {
  uint64_t clipped = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const auto [min, max] = ranges[i];
    const float x = std::bit_cast<float>(row[1 + i]);
    clipped += x < min || x > max;
    const double span = static_cast<double>(max) - static_cast<double>(min);
    const double offset = static_cast<double>(std::clamp(x, min, max)) - static_cast<double>(min);
    row[1 + i] = std::bit_cast<uint32_t>(span > 0 ? static_cast<float>(offset / span) : 0.0f);
  }
  return clipped;
}

absl::Status Damaged(const std::string& path) {
  return absl::DataLossError(absl::StrCat(path, " is damaged: remove its folder and start again"));
}

// Replaces the local ids of a row; false: a map does not have one of them, so a file was changed
// since it was written.
bool TakeIds(const CriteoDealing& dealing, const std::vector<uint64_t>& first_ids, uint32_t* ids) {
  for (size_t column = 0; column < dealing.maps.size(); ++column) {
    const absl::string_view map = dealing.maps[column]->bytes();
    const uint64_t place = first_ids[column] + ids[column];
    if (place >= map.size() / sizeof(uint32_t)) return false;
    std::memcpy(&ids[column], map.data() + place * sizeof(uint32_t), sizeof(uint32_t));
  }
  return true;
}

}  // namespace

absl::Status DealBlock(FileSystem& files, const CriteoDealing& dealing, const DealtBlock& block,
                       const std::string& rows_path, const std::string& dealt_path) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, MappedFile::Open(rows_path));
  const size_t words = CriteoRowWords(dealing.maps.size());
  const size_t row_bytes = words * sizeof(uint32_t);
  const uint64_t rows = file->bytes().size() / row_bytes;
  // A counting sort: first the rows per part, then the position of each row.
  std::vector<uint64_t> header(block.parts + 2, 0);
  std::vector<uint32_t> part(rows, 0);
  for (uint64_t i = 0; block.parts > 1 && i < rows; ++i) {
    part[i] = static_cast<uint32_t>(dealing.part_of(block.first_row + i));
  }
  for (uint64_t i = 0; i < rows; ++i) ++header[part[i] + 1];
  for (uint64_t p = 0; p < block.parts; ++p) header[p + 1] += header[p];
  std::vector<uint64_t> next(header.begin(), header.end() - 2);
  std::vector<uint32_t> dealt(rows * words);
  uint64_t clipped = 0;
  for (uint64_t i = 0; i < rows; ++i) {
    uint32_t* const row = &dealt[next[part[i]]++ * words];
    std::memcpy(row, file->bytes().data() + i * row_bytes, row_bytes);
    clipped += ScaleDense(dealing.ranges, row);
    if (!TakeIds(dealing, block.first_ids, row + 1 + kCriteoDense)) return Damaged(rows_path);
  }
  header.back() = clipped;
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<NewFile> out, NewFile::Create(files, dealt_path));
  out->WillBeRead();
  CISTERN_RETURN_IF_ERROR(out->Append(
      {reinterpret_cast<const char*>(header.data()), header.size() * sizeof(uint64_t)}));
  CISTERN_RETURN_IF_ERROR(
      out->Append({reinterpret_cast<const char*>(dealt.data()), dealt.size() * sizeof(uint32_t)}));
  return out->Close();
}

absl::StatusOr<std::unique_ptr<DealtFile>> DealtFile::Open(const std::string& path, uint64_t parts,
                                                           size_t row_words) {
  auto made = std::make_unique<DealtFile>();
  CISTERN_ASSIGN_OR_RETURN(made->file_, MappedFile::Open(path));
  made->parts_ = parts;
  made->row_bytes_ = row_words * sizeof(uint32_t);
  const uint64_t header = (parts + 2) * sizeof(uint64_t), size = made->file_->bytes().size();
  if (size < header || (size - header) % made->row_bytes_ != 0) return Damaged(path);
  // The parts are contiguous, from 0 to the number of rows.
  uint64_t end = 0;
  for (uint64_t p = 0; p <= parts; ++p) {
    if (made->Number(p) < end) return Damaged(path);
    end = made->Number(p);
  }
  if (made->Number(0) != 0 || end != (size - header) / made->row_bytes_) return Damaged(path);
  return made;
}

uint64_t DealtFile::Number(uint64_t i) const {
  uint64_t number;
  std::memcpy(&number, file_->bytes().data() + i * sizeof(number), sizeof(number));
  return number;
}

}  // namespace cistern::data
