// RowFileReader of row_file.h: the trailer places the footer, the footer checks every block.
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "common/base/hash.h"
#include "common/base/hash_text.h"
#include "common/base/names.h"
#include "common/value/shard_map.h"
#include "server/checkpoint/row_file.h"
#include "server/checkpoint/row_file_footer.h"

namespace cistern::server {
namespace {

template <typename T>
T At(absl::string_view bytes, size_t offset) {
  T number;
  std::memcpy(&number, bytes.data() + offset, sizeof(number));
  return number;
}

size_t HasEmbedxOffset(size_t rows) {
  return kBlockHeadBytes + rows * sizeof(Key);
}
size_t CellOffset(size_t rows) {
  return HasEmbedxOffset(rows) + (rows + 7) / 8 * 8;
}

// The row count at the head of a block. Checks that the block holds the keys and flags, or the
// cells, of so many rows.
absl::StatusOr<uint32_t> RowsOfBlock(absl::string_view block, const RowSection& section) {
  const uint32_t rows = block.size() < kBlockHeadBytes ? 0 : At<uint32_t>(block, 0);
  if (rows == 0 || At<uint32_t>(block, 4) != 0) {
    return absl::DataLossError("it does not begin with a number of rows");
  }
  const uint64_t row_bytes = uint64_t{section.stride} * sizeof(float);
  const bool fits = section.dense ? rows <= block.size() / row_bytes &&
                                        block.size() == kBlockHeadBytes + rows * row_bytes
                                  : CellOffset(rows) <= block.size();
  if (fits) return rows;
  return absl::DataLossError(
      absl::StrCat("its ", rows, " rows do not fit its ", block.size(), " bytes"));
}

// OK if the keys of a sparse block ascend from `previous` (null: none) and belong to its shard.
absl::Status CheckKeys(absl::string_view block, uint32_t rows, const RowSection& section,
                       uint32_t shard_num, const Key* previous) {
  const FastModulus modulus(shard_num);
  Key last = previous == nullptr ? 0 : *previous;
  for (uint32_t row = 0; row < rows; ++row) {
    const Key key = At<Key>(block, kBlockHeadBytes + row * sizeof(Key));
    if (modulus(key) != section.shard) {
      return absl::DataLossError(absl::StrCat("row ", row, ": key ", key, " belongs to shard ",
                                              modulus(key), ", not to shard ", section.shard));
    }
    if ((row > 0 || previous != nullptr) && key <= last) {
      return absl::DataLossError(
          absl::StrCat("row ", row, ": key ", key, " is not greater than the previous key ", last));
    }
    last = key;
  }
  return absl::OkStatus();
}

// The rows of a block by their flags.
struct FlagCounts {
  uint32_t full = 0, removed = 0;  // the others are short

  size_t cells(uint32_t rows, const ValueLayout& layout) const {
    return size_t{full} * layout.full_floats() +
           size_t{rows - full - removed} * layout.short_floats();
  }
};

// Counts them. OK if the flags are 0, 1 or, with `removals`, kRemovedRow, and the padding after
// them is 0.
absl::StatusOr<FlagCounts> CountFlags(absl::string_view block, uint32_t rows, bool removals) {
  FlagCounts counts;
  const uint8_t most_of_rows = removals ? kRemovedRow : 1;
  for (size_t i = HasEmbedxOffset(rows); i < CellOffset(rows); ++i) {
    const size_t row = i - HasEmbedxOffset(rows);
    const uint8_t flag = static_cast<uint8_t>(block[i]);
    if (flag > (row < rows ? most_of_rows : 0)) {
      return absl::DataLossError(absl::StrCat("row ", row, ": its flag is ", flag));
    }
    counts.full += flag == 1;
    counts.removed += flag == kRemovedRow;
  }
  return counts;
}

absl::Status Differs(const char* what, uint64_t found, uint64_t recorded) {
  if (found == recorded) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("its ", what, " is ", found, ", not ", recorded,
                                          " as in the manifest; restore the file from a copy"));
}

absl::Status CheckExpected(const RowFileFooter& footer, const v1::RowFile& expected) {
  const RowFileHeader& header = footer.header;
  uint64_t rows = 0;
  for (const RowSection& section : footer.sections) rows += section.rows;
  CISTERN_RETURN_IF_ERROR(Differs("kind (1: base)", header.base, expected.base()));
  CISTERN_RETURN_IF_ERROR(Differs("server", header.server, expected.server()));
  CISTERN_RETURN_IF_ERROR(Differs("number of servers", header.server_num, expected.server_num()));
  CISTERN_RETURN_IF_ERROR(Differs("commit", header.commit, expected.commit()));
  CISTERN_RETURN_IF_ERROR(Differs("epoch", header.term, expected.epoch()));
  return Differs("number of rows", rows, expected.rows());
}

}  // namespace

absl::StatusOr<std::unique_ptr<RowFileReader>> RowFileReader::Open(FileSystem& files,
                                                                   const std::string& folder,
                                                                   const v1::RowFile& expected) {
  const absl::Status usable = CheckName(expected.name());
  if (!usable.ok()) return absl::DataLossError(absl::StrCat(folder, ": ", usable.message()));
  std::unique_ptr<RowFileReader> reader(new RowFileReader);
  const std::string path = absl::StrCat(folder, "/", expected.name());
  reader->path_ = path;
  absl::StatusOr<std::unique_ptr<ReadableFile>> file = files.Open(path);
  if (absl::IsNotFound(file.status()) || absl::IsInvalidArgument(file.status())) {
    return absl::DataLossError(
        absl::StrCat(reader->path_, ": ", file.status().message(),
                     "; the state is incomplete without this file: restore it from a copy"));
  }
  CISTERN_RETURN_IF_ERROR(file.status());
  reader->file_ = *std::move(file);
  CISTERN_RETURN_IF_ERROR(AddContext(reader->ReadFooter(expected), reader->path_));
  return reader;
}

absl::Status RowFileReader::ReadFooter(const v1::RowFile& expected) {
  const bool known = expected.root() != 0;
  const uint64_t bytes = file_->bytes();
  if (known) CISTERN_RETURN_IF_ERROR(Differs("size", bytes, expected.bytes()));
  if (bytes < kRowFileHeaderBytes + kRowFileTrailerBytes) {
    return absl::DataLossError(absl::StrCat("it has ", bytes, " bytes: it is truncated"));
  }
  char header[kRowFileHeaderBytes], end[kRowFileTrailerBytes];
  CISTERN_RETURN_IF_ERROR(file_->Read(0, sizeof(header), header));
  CISTERN_RETURN_IF_ERROR(file_->Read(bytes - sizeof(end), sizeof(end), end));
  CISTERN_ASSIGN_OR_RETURN(const RowFileTrailer trailer,
                           DecodeRowFileTrailer(absl::string_view(end, sizeof(end)), bytes));
  std::string encoded(trailer.footer_bytes, '\0');
  CISTERN_RETURN_IF_ERROR(file_->Read(trailer.footer_offset, encoded.size(), encoded.data()));
  const uint64_t root = HashBytes(encoded);
  const uint64_t recorded = known ? expected.root() : trailer.footer_hash;
  if (root != recorded || root != trailer.footer_hash) {
    return absl::DataLossError(
        absl::StrCat("the hash of its footer is ", HashText(root), ", ",
                     HashText(trailer.footer_hash), " in its trailer",
                     known ? absl::StrCat(" and ", HashText(recorded), " in the manifest") : "",
                     "; restore the file from a copy"));
  }
  CISTERN_ASSIGN_OR_RETURN(RowFileFooter footer,
                           DecodeRowFileFooter(encoded, trailer.footer_offset));
  if (encoded.compare(0, sizeof(header), header, sizeof(header)) != 0) {
    return absl::DataLossError("its header differs from the copy in its footer");
  }
  if (known) CISTERN_RETURN_IF_ERROR(CheckExpected(footer, expected));
  header_ = footer.header;
  sections_ = std::move(footer.sections);
  block_hashes_ = std::move(footer.block_hashes);
  block_offsets_.push_back(kRowFileHeaderBytes);
  for (const uint64_t size : footer.block_bytes) {
    block_offsets_.push_back(block_offsets_.back() + size);
  }
  first_keys_ = std::move(footer.first_keys);
  filter_places_ = std::move(footer.filters);
  return absl::OkStatus();
}

const RowSection* RowFileReader::FindSparse(TableId table, ShardIndex shard) const {
  for (const RowSection& section : sections_) {
    if (!section.dense && section.table == table && section.shard == shard) return &section;
  }
  return nullptr;
}

absl::Status RowFileReader::Bad(uint64_t block, const std::string& why) const {
  return absl::DataLossError(
      absl::StrCat(path_, ": block ", block, " at byte ", block_offsets_[block], ": ", why));
}

PieceReader RowFileReader::PiecesOf(const RowSection& section) const {
  return PieceReader(file_.get(), block_offsets_[section.first_block + section.block_num]);
}

absl::StatusOr<absl::string_view> RowFileReader::ReadBlock(uint64_t block,
                                                           PieceReader& pieces) const {
  const uint64_t begin = block_offsets_[block], end = block_offsets_[block + 1];
  CISTERN_ASSIGN_OR_RETURN(const absl::string_view bytes, pieces.Get(begin, end - begin));
  CISTERN_RETURN_IF_ERROR(CheckBlockHash(block, bytes));
  return bytes;
}

absl::Status RowFileReader::CheckBlockHash(uint64_t block, absl::string_view bytes) const {
  const uint64_t found = HashBytes(bytes.data(), bytes.size());
  if (found == block_hashes_[block]) return absl::OkStatus();
  return Bad(block,
             absl::StrCat("its hash is ", HashText(found), ", not ", HashText(block_hashes_[block]),
                          " as written: it is corrupt; restore the file from a copy"));
}

absl::Status RowFileReader::Cursor::LoadBlock() {
  if (section_->dense || section_->stride != layout_->full_floats()) {
    return absl::DataLossError(absl::StrCat(reader_->path_, ": table ", section_->table, " has ",
                                            section_->dense ? "dense " : "", "rows of ",
                                            section_->stride, " numbers here, but of ",
                                            layout_->full_floats(), " in the schema"));
  }
  const uint64_t block = section_->first_block + next_block_++;
  CISTERN_ASSIGN_OR_RETURN(block_, reader_->ReadBlock(block, pieces_));
  const absl::Status status = [&]() -> absl::Status {
    CISTERN_ASSIGN_OR_RETURN(block_rows_, RowsOfBlock(block_, *section_));
    CISTERN_RETURN_IF_ERROR(CheckKeys(block_, block_rows_, *section_, reader_->header_.shard_num,
                                      rows_seen_ == 0 ? nullptr : &key_));
    CISTERN_ASSIGN_OR_RETURN(const FlagCounts flags,
                             CountFlags(block_, block_rows_, reader_->header_.removals));
    const uint64_t floats = flags.cells(block_rows_, *layout_);
    if (block_.size() == CellOffset(block_rows_) + floats * sizeof(float)) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat("its ", block_rows_, " rows do not fit its ", block_.size(), " bytes"));
  }();
  if (!status.ok()) return reader_->Bad(block, std::string(status.message()));
  row_ = 0;
  cell_offset_ = CellOffset(block_rows_);
  return absl::OkStatus();
}

absl::StatusOr<bool> RowFileReader::Cursor::Advance() {
  if (next_block_ < end_block_) {
    CISTERN_RETURN_IF_ERROR(LoadBlock());
    return true;
  }
  if (rows_seen_ == section_->rows || !whole_) return false;
  return absl::DataLossError(absl::StrCat(reader_->path_, ": table ", section_->table, ", shard ",
                                          section_->shard, " has ", rows_seen_, " rows, but ",
                                          section_->rows, " according to its footer"));
}

absl::StatusOr<bool> RowFileReader::Cursor::Next() {
  if (row_ == block_rows_) {
    CISTERN_ASSIGN_OR_RETURN(const bool more, Advance());
    if (!more) return false;
  }
  key_ = At<Key>(block_, kBlockHeadBytes + row_ * sizeof(Key));
  has_embedx_ = static_cast<uint8_t>(block_[HasEmbedxOffset(block_rows_) + row_]);
  CopyValue(has_embedx_, value_.data());
  ++row_;
  ++rows_seen_;
  return true;
}

void RowFileReader::Cursor::CopyValue(uint8_t has_embedx, float* out) {
  const uint32_t floats = has_embedx == kRemovedRow ? 0 : layout_->floats(has_embedx != 0);
  std::memcpy(out, block_.data() + cell_offset_, floats * sizeof(float));
  std::fill(out + floats, out + layout_->full_floats(), 0.0f);
  cell_offset_ += floats * sizeof(float);
}

absl::StatusOr<bool> RowFileReader::Cursor::NextBlock(ValueBlock* rows) {
  CISTERN_ASSIGN_OR_RETURN(const bool more, Advance());
  if (!more) return false;
  // Keys and cells are at multiples of 8 bytes.
  const Key* keys = reinterpret_cast<const Key*>(block_.data() + kBlockHeadBytes);
  rows->keys = absl::MakeConstSpan(keys, block_rows_);
  rows->has_embedx = reinterpret_cast<const uint8_t*>(block_.data() + HasEmbedxOffset(block_rows_));
  const size_t stride = layout_->full_floats();
  if (block_.size() == cell_offset_ + block_rows_ * stride * sizeof(float)) {
    rows->values = reinterpret_cast<const float*>(block_.data() + cell_offset_);
  } else {
    values_.resize(block_rows_ * stride);
    for (size_t i = 0; i < block_rows_; ++i) CopyValue(rows->has_embedx[i], &values_[i * stride]);
    rows->values = values_.data();
  }
  key_ = rows->keys.back();  // all keys of the next block must be larger
  row_ = block_rows_;
  rows_seen_ += block_rows_;
  return true;
}

absl::Status RowFileReader::ReadSparse(
    const RowSection& section, const ValueLayout& layout,
    const std::function<absl::Status(const ValueBlock& rows)>& visit) const {
  Cursor cursor = Walk(section, layout);
  ValueBlock rows;
  while (true) {
    CISTERN_ASSIGN_OR_RETURN(const bool more, cursor.NextBlock(&rows));
    if (!more) return absl::OkStatus();
    CISTERN_RETURN_IF_ERROR(visit(rows));
  }
}

absl::Status RowFileReader::ReadDense(const RowSection& section, std::vector<float>* out) const {
  PieceReader pieces = PiecesOf(section);
  for (uint64_t i = section.first_block; i < section.first_block + section.block_num; ++i) {
    CISTERN_ASSIGN_OR_RETURN(const absl::string_view block, ReadBlock(i, pieces));
    const absl::StatusOr<uint32_t> rows = RowsOfBlock(block, section);
    if (!rows.ok()) return Bad(i, std::string(rows.status().message()));
    const size_t before = out->size();
    out->resize(before + uint64_t{*rows} * section.stride);
    std::memcpy(out->data() + before, block.data() + kBlockHeadBytes,
                block.size() - kBlockHeadBytes);
  }
  return absl::OkStatus();
}

absl::Status RowFileReader::Verify() const {
  for (size_t s = 0; s < sections_.size(); ++s) {
    const RowSection& section = sections_[s];
    CISTERN_ASSIGN_OR_RETURN(const KeyFilter filter, ReadFilter(s));
    PieceReader pieces = PiecesOf(section);
    uint64_t rows_seen = 0;
    Key last = 0;
    for (uint64_t i = section.first_block; i < section.first_block + section.block_num; ++i) {
      CISTERN_ASSIGN_OR_RETURN(const absl::string_view block, ReadBlock(i, pieces));
      const absl::Status status = [&]() -> absl::Status {
        CISTERN_ASSIGN_OR_RETURN(const uint32_t rows, RowsOfBlock(block, section));
        rows_seen += rows;
        if (section.dense) return absl::OkStatus();
        CISTERN_RETURN_IF_ERROR(CheckKeys(block, rows, section, header_.shard_num,
                                          rows_seen == rows ? nullptr : &last));
        last = At<Key>(block, kBlockHeadBytes + (rows - 1) * sizeof(Key));
        CISTERN_RETURN_IF_ERROR(CheckIndex(i, block, rows, filter));
        return CountFlags(block, rows, header_.removals).status();
      }();
      if (!status.ok()) return Bad(i, std::string(status.message()));
    }
    if (rows_seen == section.rows) continue;
    return absl::DataLossError(absl::StrCat(path_, ": table ", section.table, ", shard ",
                                            section.shard, " has ", rows_seen, " rows, but ",
                                            section.rows, " according to its footer"));
  }
  return absl::OkStatus();
}

absl::Status RowFileReader::CheckIndex(uint64_t block, absl::string_view bytes, uint32_t rows,
                                       const KeyFilter& filter) const {
  if (!header_.indexed) return absl::OkStatus();
  for (uint32_t row = 0; row < rows; ++row) {
    const Key key = At<Key>(bytes, kBlockHeadBytes + row * sizeof(Key));
    if (row == 0 && key != first_keys_[block]) {
      return absl::DataLossError(absl::StrCat("its first key is ", key, ", but ",
                                              first_keys_[block], " according to the footer"));
    }
    if (!filter.MayHave(key)) {
      return absl::DataLossError(absl::StrCat("row ", row, ": the filter lacks key ", key));
    }
  }
  return absl::OkStatus();
}

// --- single rows

absl::StatusOr<KeyFilter> RowFileReader::ReadFilter(size_t section) const {
  if (!header_.indexed) return KeyFilter();
  const FilterPlace& place = filter_places_[section];
  std::vector<uint64_t> words(place.bytes / sizeof(uint64_t));
  char* const bytes = reinterpret_cast<char*>(words.data());
  CISTERN_RETURN_IF_ERROR(file_->Read(place.offset, place.bytes, bytes));
  if (HashBytes(bytes, place.bytes) != place.hash) {
    return absl::DataLossError(absl::StrCat(path_, ": the filter at byte ", place.offset,
                                            " is corrupt; restore the file from a copy"));
  }
  return KeyFilter(std::move(words));
}

absl::Status RowFileReader::LoadIndex(absl::Span<const ValueLayout* const> layouts) {
  filters_.resize(sections_.size());
  if (!header_.indexed) first_keys_.resize(block_hashes_.size());
  for (size_t s = 0; s < sections_.size(); ++s) {
    if (sections_[s].dense) continue;
    if (sections_[s].table >= layouts.size()) {
      return absl::DataLossError(
          absl::StrCat(path_, ": table ", sections_[s].table, " does not exist"));
    }
    if (header_.indexed) {
      CISTERN_ASSIGN_OR_RETURN(filters_[s], ReadFilter(s));
    } else {
      CISTERN_RETURN_IF_ERROR(IndexSection(s, *layouts[sections_[s].table]));
    }
  }
  return absl::OkStatus();
}

absl::Status RowFileReader::IndexSection(size_t s, const ValueLayout& layout) {
  constexpr uint32_t kBits = 12;
  const RowSection& section = sections_[s];
  std::vector<Key> keys;
  uint64_t block = section.first_block;
  CISTERN_RETURN_IF_ERROR(ReadSparse(section, layout, [&](const ValueBlock& rows) {
    first_keys_[block++] = rows.keys.front();
    keys.insert(keys.end(), rows.keys.begin(), rows.keys.end());
    return absl::OkStatus();
  }));
  if (!keys.empty()) filters_[s] = KeyFilter(keys, kBits);
  return absl::OkStatus();
}

std::optional<uint64_t> RowFileReader::BlockOf(const RowSection& section, Key key,
                                               uint64_t from) const {
  const auto begin = first_keys_.begin() + static_cast<std::ptrdiff_t>(from);
  const auto end =
      first_keys_.begin() + static_cast<std::ptrdiff_t>(section.first_block + section.block_num);
  if (begin == end || key < *begin) return std::nullopt;
  // Keys are asked for in order, so the block is near: doubles the range until it holds the block.
  auto low = begin;
  std::ptrdiff_t step = 1;
  while (end - low > step && *(low + step) <= key) {
    low += step;
    step *= 2;
  }
  const auto after = std::upper_bound(low, end - low > step ? low + step : end, key);
  return static_cast<uint64_t>(after - first_keys_.begin()) - 1;
}

absl::StatusOr<RowFileReader::Block> RowFileReader::OpenBlock(const RowSection& section,
                                                              uint64_t block,
                                                              const ValueLayout& layout,
                                                              absl::string_view bytes) const {
  CISTERN_RETURN_IF_ERROR(CheckBlockHash(block, bytes));
  Block opened;
  opened.layout_ = &layout;
  opened.bytes_ = bytes;
  const absl::Status status = [&]() -> absl::Status {
    if (section.stride != layout.full_floats()) {
      return absl::DataLossError("its rows have another size than those of the table");
    }
    CISTERN_ASSIGN_OR_RETURN(opened.rows_, RowsOfBlock(bytes, section));
    CISTERN_ASSIGN_OR_RETURN(const FlagCounts flags,
                             CountFlags(bytes, opened.rows_, header_.removals));
    const size_t cells = flags.cells(opened.rows_, layout);
    if (CellOffset(opened.rows_) + cells * sizeof(float) != bytes.size()) {
      return absl::DataLossError("its rows do not fill it");
    }
    if (At<Key>(bytes, kBlockHeadBytes) != first_keys_[block]) {
      return absl::DataLossError("its first key is not the one in the footer");
    }
    opened.all_full_ = flags.full == opened.rows_;
    return absl::OkStatus();
  }();
  if (!status.ok()) return Bad(block, std::string(status.message()));
  return opened;
}

bool RowFileReader::Block::Find(Key key, float* value, uint8_t* has_embedx) const {
  uint32_t low = 0, high = rows_;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (At<Key>(bytes_, kBlockHeadBytes + middle * sizeof(Key)) < key) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == rows_ || At<Key>(bytes_, kBlockHeadBytes + low * sizeof(Key)) != key) return false;
  const char* const flags = bytes_.data() + HasEmbedxOffset(rows_);
  *has_embedx = static_cast<uint8_t>(flags[low]);
  if (*has_embedx == kRemovedRow) return true;
  size_t cells = size_t{low} * layout_->full_floats();
  if (!all_full_) {
    FlagCounts before;
    before.full = static_cast<uint32_t>(std::count(flags, flags + low, 1));
    before.removed = static_cast<uint32_t>(std::count(flags, flags + low, kRemovedRow));
    cells = before.cells(low, *layout_);
  }
  const uint32_t floats = layout_->floats(*has_embedx != 0);
  std::memcpy(value, bytes_.data() + CellOffset(rows_) + cells * sizeof(float),
              floats * sizeof(float));
  std::fill(value + floats, value + layout_->full_floats(), 0.0f);
  return true;
}

}  // namespace cistern::server
