#include "worker/data/prepare/criteo_block.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/strip.h"
#include "common/io/new_file.h"
#include "worker/data/format/line_reader.h"

namespace cistern::data {
namespace {

template <typename T>
absl::string_view BytesOf(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

template <typename T>
T ReadAt(absl::string_view bytes, uint64_t place) {
  T value;
  std::memcpy(&value, bytes.data() + place, sizeof(value));
  return value;
}

// Threads: one at a time.
class BlockReader {
 public:
  BlockReader(CriteoDense transform, const CriteoCrosses& crosses)
      : transform_(transform), crosses_(crosses), ids_(kCriteoSparse + crosses.size()) {
    made_.values.resize(ids_.size());
    made_.times.resize(ids_.size());
    made_.counts.min.fill(std::numeric_limits<float>::infinity());
    made_.counts.max.fill(-std::numeric_limits<float>::infinity());
  }

  absl::Status Take(absl::string_view text) {
    if (text.size() > LineReader::kMaxLineBytes) {
      return absl::DataLossError("is longer than 16 MiB: check that this is the right file");
    }
    if (text.find('\0') != absl::string_view::npos) {
      return absl::DataLossError("holds a zero byte: this is not a text file");
    }
    CISTERN_RETURN_IF_ERROR(ParseCriteoLine(text, &line_));
    ++made_.counts.rows;
    made_.counts.positives += line_.label > 0;
    rows_.push_back(std::bit_cast<uint32_t>(static_cast<float>(line_.label)));
    for (size_t i = 0; i < kCriteoDense; ++i) TakeDense(i, line_.dense[i]);
    for (size_t i = 0; i < kCriteoSparse; ++i) rows_.push_back(LocalId(i, line_.values[i]));
    for (size_t i = 0; i < crosses_.size(); ++i) {
      const uint64_t first = line_.values[crosses_[i].first];
      const uint64_t second = line_.values[crosses_[i].second];
      if ((first | second) >> 32 != 0) {
        return absl::DataLossError(absl::StrCat("a cross of columns C", crosses_[i].first + 1,
                                                " and C", crosses_[i].second + 1,
                                                " has a value of more than 8 hexadecimal digits"));
      }
      rows_.push_back(LocalId(kCriteoSparse + i, first << 32 | second));
    }
    return absl::OkStatus();
  }

  const std::vector<uint32_t>& rows() const { return rows_; }
  const BlockValues& made() const { return made_; }

 private:
  void TakeDense(size_t i, int64_t number) {
    BlockValues::Counts& counts = made_.counts;
    float x = static_cast<float>(number);
    counts.min[i] = std::min(counts.min[i], x);
    counts.max[i] = std::max(counts.max[i], x);
    if (transform_ != CriteoDense::kMinMax) {
      const int64_t least = transform_ == CriteoDense::kLog3 ? -2 : 0;
      counts.clipped += number < least;
      x = static_cast<float>(
          std::log(static_cast<double>(std::max(number, least)) + (least == 0 ? 1 : 3)));
    }
    rows_.push_back(std::bit_cast<uint32_t>(x));
  }

  uint32_t LocalId(size_t column, uint64_t value) {
    std::vector<uint64_t>& values = made_.values[column];
    const auto [it, is_new] = ids_[column].emplace(value, static_cast<uint32_t>(values.size()));
    if (is_new) {
      values.push_back(value);
      made_.times[column].push_back(0);
    }
    ++made_.times[column][it->second];
    return it->second;
  }

  const CriteoDense transform_;
  const CriteoCrosses& crosses_;
  CriteoLine line_;
  std::vector<uint32_t> rows_;
  BlockValues made_;
  std::vector<absl::flat_hash_map<uint64_t, uint32_t>> ids_;
};

absl::Status ReadLines(const MappedFile& day, const CriteoBlock& block, BlockReader* reader) {
  const absl::string_view text = day.bytes();
  size_t place = block.begin;
  // A line that starts before this block belongs to the previous block.
  if (place > 0) place = text.find('\n', place - 1);
  if (block.begin > 0) place = place == absl::string_view::npos ? text.size() : place + 1;
  while (place < block.end) {
    const size_t feed = std::min(text.find('\n', place), text.size());
    absl::string_view line = text.substr(place, feed - place);
    if (feed < text.size()) absl::ConsumeSuffix(&line, "\r");
    if (place == 0) absl::ConsumePrefix(&line, "\xEF\xBB\xBF");
    const absl::Status taken = reader->Take(line);
    if (!taken.ok()) {
      const auto before =
          std::count(text.begin(), text.begin() + static_cast<int64_t>(place), '\n');
      return absl::DataLossError(
          absl::StrCat(day.path(), ": line ", before + 1, ": ", taken.message()));
    }
    place = feed + 1;
  }
  return day.StillWhole();
}

absl::Status WriteValues(FileSystem& files, const BlockValues& made, const std::string& path) {
  std::vector<uint32_t> distinct = {static_cast<uint32_t>(made.values.size())};
  for (const auto& values : made.values) distinct.push_back(static_cast<uint32_t>(values.size()));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<NewFile> file, NewFile::Create(files, path));
  file->WillBeRead();
  CISTERN_RETURN_IF_ERROR(
      file->Append({reinterpret_cast<const char*>(&made.counts), sizeof(made.counts)}));
  CISTERN_RETURN_IF_ERROR(file->Append(BytesOf(distinct)));
  for (size_t column = 0; column < made.values.size(); ++column) {
    CISTERN_RETURN_IF_ERROR(file->Append(BytesOf(made.values[column])));
    CISTERN_RETURN_IF_ERROR(file->Append(BytesOf(made.times[column])));
  }
  return file->Close();
}

}  // namespace

absl::Status ReadCriteoBlock(FileSystem& files, const MappedFile& day, const CriteoBlock& block,
                             CriteoDense transform, const CriteoCrosses& crosses,
                             const std::string& rows_path, const std::string& values_path) {
  BlockReader reader(transform, crosses);
  CISTERN_RETURN_IF_ERROR(ReadLines(day, block, &reader));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<NewFile> rows, NewFile::Create(files, rows_path));
  rows->WillBeRead();
  CISTERN_RETURN_IF_ERROR(rows->Append(BytesOf(reader.rows())));
  CISTERN_RETURN_IF_ERROR(rows->Close());
  return WriteValues(files, reader.made(), values_path);
}

absl::StatusOr<std::unique_ptr<BlockValuesFile>> BlockValuesFile::Open(const std::string& path) {
  auto made = std::make_unique<BlockValuesFile>();
  CISTERN_ASSIGN_OR_RETURN(made->file_, MappedFile::Open(path));
  const absl::string_view bytes = made->file_->bytes();
  const absl::Status broken =
      absl::DataLossError(absl::StrCat(path, " is damaged: remove its folder and start again"));
  uint64_t place = sizeof(BlockValues::Counts);
  if (bytes.size() < place + sizeof(uint32_t)) return broken;
  made->counts_ = ReadAt<BlockValues::Counts>(bytes, 0);
  const uint32_t columns = ReadAt<uint32_t>(bytes, place);
  place += sizeof(uint32_t);
  if ((bytes.size() - place) / sizeof(uint32_t) < columns) return broken;
  for (uint32_t i = 0; i < columns; ++i, place += sizeof(uint32_t)) {
    made->distinct_.push_back(ReadAt<uint32_t>(bytes, place));
  }
  for (const uint32_t distinct : made->distinct_) {
    made->begin_.push_back(place);
    place += uint64_t{distinct} * (sizeof(uint64_t) + sizeof(uint32_t));
  }
  if (place != bytes.size()) return broken;
  return made;
}

uint64_t BlockValuesFile::value(size_t column, uint32_t i) const {
  return ReadAt<uint64_t>(file_->bytes(), begin_[column] + uint64_t{i} * sizeof(uint64_t));
}

uint32_t BlockValuesFile::times(size_t column, uint32_t i) const {
  return ReadAt<uint32_t>(file_->bytes(), begin_[column] +
                                              uint64_t{distinct_[column]} * sizeof(uint64_t) +
                                              uint64_t{i} * sizeof(uint32_t));
}

}  // namespace cistern::data
