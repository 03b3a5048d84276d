#include "server/checkpoint/row_file_footer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "common/base/check.h"
#include "common/value/shard_map.h"

namespace cistern::server {
namespace {

static_assert(std::endian::native == std::endian::little, "row files are little-endian");

constexpr absl::string_view kMagic = "CISTROWS", kEndMagic = "CISTREND";
constexpr uint32_t kBaseFlag = 1, kIndexedFlag = 2, kRemovalsFlag = 4;
constexpr size_t kSectionBytes = 72;

template <typename T>
void Put(T number, std::string* out) {
  out->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

// Reads numbers from the front of bytes whose presence the caller has checked.
class Bytes {
 public:
  explicit Bytes(absl::string_view bytes) : rest_(bytes) {}

  size_t left() const { return rest_.size(); }

  absl::string_view Take(size_t size) {
    CISTERN_CHECK(size <= rest_.size());
    const absl::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  template <typename T>
  void Take(T* number) {
    std::memcpy(number, Take(sizeof(*number)).data(), sizeof(*number));
  }

  std::vector<uint64_t> TakeList(size_t size) {
    std::vector<uint64_t> list(size);
    if (size > 0) std::memcpy(list.data(), Take(size * 8).data(), size * 8);
    return list;
  }

 private:
  absl::string_view rest_;
};

absl::StatusOr<RowFileHeader> DecodeHeader(Bytes& bytes) {
  const absl::string_view magic = bytes.Take(kMagic.size());
  if (magic != kMagic) {
    return absl::DataLossError(
        absl::StrCat("it begins with '", absl::CHexEscape(magic), "': it is not a row file"));
  }
  uint16_t major = 0, minor = 0;
  uint32_t flags = 0, zero = 0;
  RowFileHeader header;
  bytes.Take(&major);
  bytes.Take(&minor);
  bytes.Take(&flags);
  bytes.Take(&header.cluster_id);
  bytes.Take(&header.schema_hash);
  bytes.Take(&header.server);
  bytes.Take(&header.server_num);
  bytes.Take(&header.shard_num);
  bytes.Take(&zero);
  bytes.Take(&header.commit);
  bytes.Take(&header.term);
  header.base = (flags & kBaseFlag) != 0;
  header.indexed = (flags & kIndexedFlag) != 0;
  header.removals = (flags & kRemovalsFlag) != 0;
  if (major != kRowFileMajor) {
    return absl::DataLossError(absl::StrCat("its version is ", major, ".", minor,
                                            "; this program reads versions ", kRowFileMajor,
                                            ".x only: use the version that wrote it"));
  }
  const uint32_t unknown = flags & ~(kBaseFlag | kIndexedFlag | kRemovalsFlag);
  if (unknown != 0 || zero != 0 || (header.base && header.removals)) {
    return absl::DataLossError(
        absl::StrCat("its header has flags ", flags, ", which this program does not know"));
  }
  const absl::Status map = ShardMap::Create(header.shard_num, header.server_num).status();
  if (!map.ok()) return absl::DataLossError(absl::StrCat("its header: ", map.message()));
  if (header.server < header.server_num) return header;
  return absl::DataLossError(absl::StrCat("its header names server ", header.server, " of ",
                                          header.server_num, ", which does not exist"));
}

RowSection DecodeSection(Bytes& bytes) {
  RowSection section;
  uint32_t dense = 0;
  bytes.Take(&dense);
  bytes.Take(&section.table);
  bytes.Take(&section.shard);
  bytes.Take(&section.stride);
  bytes.Take(&section.begin);
  bytes.Take(&section.rows);
  bytes.Take(&section.total_rows);
  bytes.Take(&section.digest);
  bytes.Take(&section.first_block);
  bytes.Take(&section.block_num);
  bytes.Take(&section.bytes);
  section.dense = dense != 0;
  return section;
}

// The size of `rows` whole rows in `blocks` blocks; it may exceed 64 bits.
unsigned __int128 WholeBytes(const RowSection& section, uint64_t rows) {
  const unsigned __int128 row = uint64_t{section.stride} * sizeof(float) + (section.dense ? 0 : 9);
  return row * rows + 8 * static_cast<unsigned __int128>(section.block_num);
}

// The fault of a section, apart from its blocks; null if there is none.
const char* SectionFault(const RowSection& section, const RowFileHeader& header) {
  if (section.stride == 0) return "has a stride of 0";
  if (section.dense && section.shard != 0) return "is dense but has a shard";
  if (!section.dense && section.begin != 0) return "is sparse but has a first row";
  if (!section.dense &&
      (section.shard >= header.shard_num || section.shard % header.server_num != header.server)) {
    return "belongs to a shard that its server does not own";
  }
  const bool may_remove = header.removals && !section.dense;
  if (section.rows > section.total_rows && !may_remove) {
    return "has more rows than its shard or range";
  }
  if (header.base && section.rows != section.total_rows) return "is incomplete in a base";
  if ((section.rows == 0) != (section.block_num == 0))
    return "has rows without blocks, or blocks without rows";
  return nullptr;
}

// The same for its blocks, whose sizes are given.
const char* BlocksFault(const RowSection& section, absl::Span<const uint64_t> block_bytes) {
  uint64_t total = 0;
  const uint64_t limit =
      std::max<uint64_t>(kMaxBlockBytes, 24 + uint64_t{section.stride} * sizeof(float));
  for (const uint64_t bytes : block_bytes) {
    if (bytes <= 8 || bytes > limit) return "has a block of an impossible size";
    total += bytes;
  }
  if (total != section.bytes) return "differs in size from its blocks";
  if (section.rows > section.bytes) return "has more rows than bytes";
  const unsigned __int128 whole = WholeBytes(section, section.rows);
  // Sparse rows may be short, and their flags are padded.
  if (section.dense ? whole != total : whole + 7 * section.block_num < total) {
    return "differs in size from its rows";
  }
  return nullptr;
}

// What is wrong with a section's first keys or its filter; null: nothing. First keys must ascend.
const char* IndexFault(const RowSection& section, absl::Span<const Key> first_keys,
                       const FilterPlace& filter) {
  if (section.dense || section.rows == 0) {
    return filter.bytes == 0 ? nullptr : "has a filter but no keys";
  }
  if (std::adjacent_find(first_keys.begin(), first_keys.end(), std::greater_equal<>()) !=
      first_keys.end()) {
    return "has blocks whose first keys do not ascend";
  }
  constexpr uint64_t kMaxFilterBits = 64;  // a key
  if (filter.bytes == 0 || filter.bytes % KeyFilter::kLineBytes != 0 ||
      filter.bytes > KeyFilter::BytesOf(section.rows, kMaxFilterBits)) {
    return "has a filter of an impossible size";
  }
  return nullptr;
}

absl::Status CheckSections(const RowFileFooter& footer, uint64_t footer_offset) {
  std::set<std::pair<uint64_t, uint64_t>> seen;
  uint64_t next_block = 0, offset = kRowFileHeaderBytes;
  for (size_t i = 0; i < footer.sections.size(); ++i) {
    const RowSection& section = footer.sections[i];
    const auto bad = [&](const char* why) {
      return absl::DataLossError(absl::StrCat("section ", i, " (",
                                              section.dense ? "dense table " : "table ",
                                              section.table, ", shard ", section.shard, ") ", why));
    };
    if (const char* fault = SectionFault(section, footer.header)) return bad(fault);
    if (section.first_block != next_block ||
        section.block_num > footer.block_bytes.size() - next_block) {
      return bad("does not begin where the previous one ends, or has more blocks than the file");
    }
    const auto blocks =
        absl::MakeConstSpan(footer.block_bytes).subspan(next_block, section.block_num);
    if (const char* fault = BlocksFault(section, blocks)) return bad(fault);
    if (section.bytes > footer_offset - offset) return bad("ends after the last block");
    if (footer.header.indexed) {
      const auto keys =
          absl::MakeConstSpan(footer.first_keys).subspan(next_block, section.block_num);
      if (const char* fault = IndexFault(section, keys, footer.filters[i])) return bad(fault);
    }
    const uint64_t place = section.dense ? uint64_t{1} << 32 : section.shard;
    if (!seen.emplace(section.table, place).second) return bad("occurs twice");
    next_block += section.block_num;
    offset += section.bytes;
  }
  for (const FilterPlace& filter : footer.filters) {
    if (filter.bytes > footer_offset - offset) {
      return absl::DataLossError("its filters end after its footer begins");
    }
    offset += filter.bytes;
  }
  if (next_block == footer.block_bytes.size() && offset == footer_offset) return absl::OkStatus();
  return absl::DataLossError("its sections do not cover all of its blocks");
}

}  // namespace

std::string EncodeRowFileHeader(const RowFileHeader& header) {
  std::string bytes(kMagic);
  Put(kRowFileMajor, &bytes);
  Put(kRowFileMinor, &bytes);
  Put((header.base ? kBaseFlag : 0) | (header.indexed ? kIndexedFlag : 0) |
          (header.removals ? kRemovalsFlag : 0),
      &bytes);
  Put(header.cluster_id, &bytes);
  Put(header.schema_hash, &bytes);
  Put(header.server, &bytes);
  Put(header.server_num, &bytes);
  Put(header.shard_num, &bytes);
  Put(uint32_t{0}, &bytes);
  Put(header.commit, &bytes);
  Put(header.term, &bytes);
  CISTERN_CHECK(bytes.size() == kRowFileHeaderBytes);
  return bytes;
}

std::string EncodeRowFileFooter(const RowFileFooter& footer) {
  std::string bytes = EncodeRowFileHeader(footer.header);
  Put(uint64_t{footer.sections.size()}, &bytes);
  for (const RowSection& section : footer.sections) {
    Put(uint32_t{section.dense}, &bytes);
    Put(section.table, &bytes);
    Put(section.shard, &bytes);
    Put(section.stride, &bytes);
    for (const uint64_t number : {section.begin, section.rows, section.total_rows, section.digest,
                                  section.first_block, section.block_num, section.bytes}) {
      Put(number, &bytes);
    }
  }
  Put(uint64_t{footer.block_hashes.size()}, &bytes);
  for (const uint64_t hash : footer.block_hashes) Put(hash, &bytes);
  for (const uint64_t size : footer.block_bytes) Put(size, &bytes);
  if (!footer.header.indexed) return bytes;
  for (const Key key : footer.first_keys) Put(key, &bytes);
  for (const FilterPlace& filter : footer.filters) {
    Put(filter.bytes, &bytes);
    Put(filter.hash, &bytes);
  }
  return bytes;
}

std::string EncodeRowFileTrailer(const RowFileTrailer& trailer) {
  std::string bytes;
  Put(trailer.footer_offset, &bytes);
  Put(trailer.footer_bytes, &bytes);
  Put(trailer.footer_hash, &bytes);
  bytes.append(kEndMagic.data(), kEndMagic.size());
  return bytes;
}

absl::StatusOr<RowFileTrailer> DecodeRowFileTrailer(absl::string_view encoded,
                                                    uint64_t file_bytes) {
  CISTERN_CHECK(encoded.size() == kRowFileTrailerBytes);
  Bytes bytes(encoded);
  RowFileTrailer trailer;
  bytes.Take(&trailer.footer_offset);
  bytes.Take(&trailer.footer_bytes);
  bytes.Take(&trailer.footer_hash);
  const absl::string_view magic = bytes.Take(kEndMagic.size());
  if (magic != kEndMagic) {
    return absl::DataLossError(absl::StrCat("it ends with '", absl::CHexEscape(magic),
                                            "': it is not a row file, or its end is missing"));
  }
  const uint64_t end = file_bytes - kRowFileTrailerBytes;
  if (trailer.footer_offset >= kRowFileHeaderBytes && trailer.footer_offset <= end &&
      trailer.footer_bytes == end - trailer.footer_offset &&
      trailer.footer_bytes <= kMaxFooterBytes) {
    return trailer;
  }
  return absl::DataLossError(absl::StrCat("its trailer places a footer of ", trailer.footer_bytes,
                                          " bytes at ", trailer.footer_offset, " in a file of ",
                                          file_bytes));
}

absl::StatusOr<RowFileFooter> DecodeRowFileFooter(absl::string_view encoded,
                                                  uint64_t footer_offset) {
  const absl::Status cut = absl::DataLossError(
      absl::StrCat("its footer of ", encoded.size(), " bytes does not match its own counts"));
  if (encoded.size() < kRowFileHeaderBytes + 16) return cut;
  Bytes bytes(encoded);
  RowFileFooter footer;
  CISTERN_ASSIGN_OR_RETURN(footer.header, DecodeHeader(bytes));
  uint64_t section_num = 0, block_num = 0;
  bytes.Take(&section_num);
  if (section_num > (bytes.left() - 8) / kSectionBytes) return cut;
  for (uint64_t i = 0; i < section_num; ++i) footer.sections.push_back(DecodeSection(bytes));
  bytes.Take(&block_num);
  const uint64_t block_part = footer.header.indexed ? 24 : 16;
  const uint64_t filter_part = footer.header.indexed ? section_num * 16 : 0;
  if (bytes.left() < filter_part || (bytes.left() - filter_part) % block_part != 0 ||
      block_num != (bytes.left() - filter_part) / block_part) {
    return cut;
  }
  footer.block_hashes = bytes.TakeList(block_num);
  footer.block_bytes = bytes.TakeList(block_num);
  if (footer.header.indexed) {
    footer.first_keys = bytes.TakeList(block_num);
    footer.filters.resize(section_num);
    for (FilterPlace& filter : footer.filters) {
      bytes.Take(&filter.bytes);
      bytes.Take(&filter.hash);
    }
  }
  CISTERN_RETURN_IF_ERROR(CheckSections(footer, footer_offset));
  uint64_t offset = footer_offset;
  for (size_t i = footer.filters.size(); i-- > 0;) {
    offset -= footer.filters[i].bytes;
    footer.filters[i].offset = offset;
  }
  return footer;
}

}  // namespace cistern::server
