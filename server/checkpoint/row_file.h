// An immutable, checksummed file of rows: a base or a delta of one server's shards.
//
// Byte by byte (little-endian; docs/formats.md, golden file in test/golden):
//
//   header   64 bytes: magic "CISTROWS", u16 major, u16 minor,
//            u32 flags (bit 0: base, bit 1: indexed, bit 2: removals),
//            u64 cluster_id, u64 schema_hash, u32 server, u32 server_num, u32 shard_num, u32 zero,
//            u64 commit, u64 term
//   blocks   one after another, each at most kMaxBlockBytes
//            sparse section: u32 rows, u32 zero, keys u64[rows], has_embedx u8[rows] padded to 8,
//                            then the cells of each row, ValueLayout::floats(has_embedx) of them;
//                            keys ascend through the section; in a file with removals has_embedx
//                            may be kRemovedRow: the row is gone, and has no cells
//            dense section:  u32 rows, u32 zero, cells [rows, columns]
//   filters  of an indexed file: the words of each sparse section's filter (key_filter.h)
//   footer   header again, u64 section_num, sections, u64 block_num,
//            XXH3-64 of each block u64[], size of each block u64[];
//            of an indexed file also: first key of each block u64[] (0 if dense),
//            and for each section u64 bytes and u64 XXH3-64 of its filter
//            section: u32 dense, u32 table, u32 shard, u32 stride, u64 begin, u64 rows,
//                     u64 total_rows, u64 digest, u64 first_block, u64 block_num, u64 bytes
//   trailer  32 bytes: u64 footer offset, u64 footer bytes, u64 XXH3-64 of the footer,
//            magic "CISTREND"
//
// `root`, recorded in the manifest, is the XXH3-64 of the footer. It covers every byte of the file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/types.h"
#include "common/io/file_system.h"
#include "common/io/piece_reader.h"
#include "common/value/value_layout.h"
#include "proto/checkpoint.pb.h"
#include "server/checkpoint/key_filter.h"
#include "server/table/value_block.h"

namespace cistern::server {

struct RowFileFooter;

// Where the filter of a section is, and the hash of its bytes.
struct FilterPlace {
  uint64_t offset = 0, bytes = 0, hash = 0;
};

// In place of has_embedx: the commit has removed the row.
inline constexpr uint8_t kRemovedRow = 2;

// A larger row has a block of its own.
inline constexpr size_t kMaxBlockBytes = size_t{64} << 10;
inline constexpr size_t kBlockHeadBytes = 8;  // u32 rows, u32 zero

// The block size of an indexed file whose rows have values of so many bytes: the smallest of 4, 8,
// 16, 32 and 64 KiB that whole rows fill to 94 %. Reading one row reads one block.
size_t IndexedBlockBytes(size_t value_bytes);
size_t IndexedBlockBytes(const ValueLayout& layout);

struct RowFileHeader {
  bool base = false;
  bool indexed = false;   // has first keys and filters, so that single rows can be found in it
  bool removals = false;  // a delta that may hold removed rows
  uint64_t cluster_id = 0, schema_hash = 0;
  uint32_t server = 0, server_num = 1, shard_num = 1;
  uint64_t commit = 0;
  Term term = 0;
};

// The rows of one shard of a sparse table, or of one range of a dense table.
struct RowSection {
  bool dense = false;
  TableId table = 0;
  ShardIndex shard = 0;     // sparse
  uint32_t stride = 0;      // sparse: full_floats; dense: columns
  uint64_t begin = 0;       // dense: first row
  uint64_t rows = 0;        // in this file, with those that it removes
  uint64_t total_rows = 0;  // of the shard or range after the commit
  uint64_t digest = 0;      // of the whole shard or range after the commit (SparseTable::Digest)
  uint64_t first_block = 0, block_num = 0, bytes = 0;  // filled by the writer
};

// Cuts rows into blocks, the payloads that RowFileWriter takes. It is independent of any file, so
// several threads can make the sections of one file.
//
// Threads: one at a time.
class RowBlockBuilder {
 public:
  class Block {
   public:
    absl::string_view payload() const { return absl::string_view(bytes_).substr(begin_); }
    uint64_t hash() const { return hash_; }  // of the payload
    uint32_t rows() const { return rows_; }

   private:
    friend class RowBlockBuilder;
    std::string bytes_;  // the payload, from begin_ on
    size_t begin_ = 0;
    uint64_t hash_ = 0;
    uint32_t rows_ = 0;
  };
  // layout: null for a dense section of `columns`. block_bytes: the most that a block takes, unless
  // a single row is larger.
  explicit RowBlockBuilder(const ValueLayout* layout, uint32_t columns = 0,
                           size_t block_bytes = kMaxBlockBytes);
  // Keys must ascend; a check enforces it.
  // value: full_floats cells; only the first floats(has_embedx) are kept.
  void Add(Key key, const float* value, bool has_embedx);
  // A row that is gone; only in a file with removals.
  void AddRemoved(Key key);
  void AddDense(const float* cells);  // [columns]
  uint64_t rows() const { return rows_; }
  // Removes and returns the complete blocks; with `finish` the last one too.
  std::vector<Block> Take(bool finish);

 private:
  void AddKey(Key key, uint8_t has_embedx);
  void AddCells(const float* cells, size_t bytes);
  void Cut();
  size_t HeadBytes(size_t rows) const;  // of all that precedes the cells

  const ValueLayout* const layout_;
  const uint32_t columns_;
  const size_t block_bytes_;
  const size_t max_rows_;   // of a block; 0: any number (dense)
  const size_t head_room_;  // enough for what precedes the cells of a block
  uint64_t rows_ = 0;
  Key last_key_ = 0;
  // The block being filled. Its cells are at their final place, after head_room_ bytes.
  Block block_;
  std::vector<Key> keys_;
  std::string has_embedx_;
  std::vector<Block> done_;
};

// Writes one row file under its final name. The file counts only once a manifest names it.
//
// Threads: one at a time.
class RowFileWriter {
 public:
  // kAlreadyExists if the file exists.
  static absl::StatusOr<std::unique_ptr<RowFileWriter>> Create(FileSystem& files,
                                                               const std::string& folder,
                                                               const std::string& name,
                                                               const RowFileHeader& header);
  ~RowFileWriter();  // removes the file unless Finish succeeded

  // Writes a section: BeginSection, blocks, EndSection with the totals, which are known only then.
  // The first error is final.
  absl::Status BeginSection(const RowSection& section);
  absl::Status Append(const std::vector<RowBlockBuilder::Block>& blocks);
  absl::Status EndSection(uint64_t total_rows, uint64_t digest);
  // Writes footer and trailer, and syncs file and folder. kInternal if the sections form a file
  // that could not be read back: two sections of one shard, a shard of another server, a base
  // without all rows of a shard.
  absl::StatusOr<v1::RowFile> Finish();

 private:
  RowFileWriter(FileSystem& files, const std::string& folder, const std::string& name);
  absl::Status Write(absl::string_view bytes);
  void AddKeys(const RowBlockBuilder::Block& block, bool dense);
  absl::Status WriteFilters();

  FileSystem& files_;
  const std::string folder_, name_, path_;
  std::unique_ptr<WritableFile> file_;
  uint64_t bytes_ = 0;
  const std::unique_ptr<RowFileFooter> footer_;
  std::vector<Key> section_keys_;   // of the current sparse section of an indexed file
  std::vector<KeyFilter> filters_;  // of an indexed file, by section
  bool in_section_ = false, finished_ = false;
};

// Reads a row file. Every returned byte is checked against the footer, and the footer against the
// manifest. Errors are kDataLoss with the path and the block.
//
// Threads: any thread.
class RowFileReader {
 public:
  // expected: the manifest's entry; size, root, server, commit and so on must match. With an empty
  // root (tools that read a single file) only the file's own trailer is checked.
  // The caller checks cluster_id, schema_hash and shard_num, which an entry does not have.
  static absl::StatusOr<std::unique_ptr<RowFileReader>> Open(FileSystem& files,
                                                             const std::string& folder,
                                                             const v1::RowFile& expected);
  const RowFileHeader& header() const { return header_; }
  const std::vector<RowSection>& sections() const { return sections_; }
  // Null if the file has no such section.
  const RowSection* FindSparse(TableId table, ShardIndex shard) const;

  // Visits the rows of a sparse section in ascending key order, one block at a time. Values have
  // full_floats cells, zeros where absent, and are valid until visit returns. has_embedx is
  // kRemovedRow for a row that the file removes. An error of `visit` is returned. layout must be
  // the table's.
  absl::Status ReadSparse(const RowSection& section, const ValueLayout& layout,
                          const std::function<absl::Status(const ValueBlock& rows)>& visit) const;
  // Appends the [rows, columns] of a dense section to *out; after an error *out holds a part of
  // them.
  absl::Status ReadDense(const RowSection& section, std::vector<float>* out) const;
  // Reads and checks every block, and the filters of an indexed file.
  absl::Status Verify() const;

  // --- single rows

  // Makes single rows of the sparse sections findable: reads the filters of an indexed file, or
  // every key of any other. Call it once, before any other thread uses this. layouts: by table.
  absl::Status LoadIndex(absl::Span<const ValueLayout* const> layouts);
  const KeyFilter& FilterOf(const RowSection& section) const {
    return filters_[static_cast<size_t>(&section - sections_.data())];
  }
  // The block that holds `key` if the section does; unset if the key is before the first one. from:
  // a block of the section at or before that block, where the search begins.
  std::optional<uint64_t> BlockOf(const RowSection& section, Key key, uint64_t from) const;
  Key first_key(uint64_t block) const { return first_keys_[block]; }
  uint64_t block_offset(uint64_t block) const { return block_offsets_[block]; }
  uint64_t block_bytes(uint64_t block) const {
    return block_offsets_[block + 1] - block_offsets_[block];
  }
  const ReadableFile& file() const { return *file_; }

  // The rows of a sparse block, to look keys up in.
  class Block {
   public:
    // Finds a key: full_floats cells, zeros where absent. has_embedx: 0, 1, or kRemovedRow, which
    // leaves the value unchanged. False: the block has no such row.
    bool Find(Key key, float* value, uint8_t* has_embedx) const;

   private:
    friend class RowFileReader;
    const ValueLayout* layout_ = nullptr;
    absl::string_view bytes_;
    uint32_t rows_ = 0;
    bool all_full_ = false;  // every row holds its embedx
  };
  // Checks a block of `section`, whose bytes outlive the result. kDataLoss: they are not the ones
  // that were written.
  absl::StatusOr<Block> OpenBlock(const RowSection& section, uint64_t block,
                                  const ValueLayout& layout, absl::string_view bytes) const;

  // Iterates over a sparse section row by row, as a merge needs.
  //
  // Threads: one thread at a time. The reader must outlive the cursor.
  class Cursor {
   public:
    // Moves to the next row; false at the end.
    absl::StatusOr<bool> Next();
    // Moves to the next block and returns all its rows, which Next then skips; false at the end.
    // *rows is valid until the next call. Do not mix with Next.
    absl::StatusOr<bool> NextBlock(ValueBlock* rows);
    Key key() const { return key_; }
    const float* value() const { return value_.data(); }
    bool has_embedx() const { return has_embedx_ == 1; }
    bool is_removed() const { return has_embedx_ == kRemovedRow; }

   private:
    friend class RowFileReader;
    Cursor(const RowFileReader* reader, const RowSection* section, const ValueLayout* layout,
           uint64_t begin, uint64_t end, size_t piece_bytes)
        : reader_(reader),
          section_(section),
          layout_(layout),
          pieces_(reader->file_.get(), reader->block_offsets_[section->first_block + end],
                  piece_bytes),
          next_block_(begin),
          end_block_(end),
          whole_(begin == 0 && end == section->block_num),
          value_(layout->full_floats()) {}
    absl::Status LoadBlock();
    // Loads the next block, if there is one.
    absl::StatusOr<bool> Advance();
    // The cells of the next row, zeros where absent.
    void CopyValue(uint8_t has_embedx, float* out);

    const RowFileReader* reader_;
    const RowSection* section_;
    const ValueLayout* layout_;
    PieceReader pieces_;
    uint64_t next_block_ = 0, end_block_ = 0;  // counted from the section's first block
    bool whole_ = true;                        // walks all blocks of the section
    uint64_t rows_seen_ = 0;
    absl::string_view block_;  // points into pieces_
    uint32_t row_ = 0, block_rows_ = 0;
    size_t cell_offset_ = 0;
    Key key_ = 0;
    uint8_t has_embedx_ = 0;
    std::vector<float> value_;
    std::vector<float> values_;  // of a block in which some values lack embedx
  };
  // piece_bytes: of memory for what is read ahead.
  Cursor Walk(const RowSection& section, const ValueLayout& layout,
              size_t piece_bytes = PieceReader::kPieceBytes) const {
    return Cursor(this, &section, &layout, 0, section.block_num, piece_bytes);
  }
  // Only the blocks begin .. end-1, counted from the section's first one.
  Cursor WalkBlocks(const RowSection& section, const ValueLayout& layout, uint64_t begin,
                    uint64_t end) const {
    return Cursor(this, &section, &layout, begin, end, PieceReader::kPieceBytes);
  }

 private:
  RowFileReader() = default;
  absl::Status ReadFooter(const v1::RowFile& expected);
  // A reader for the blocks of a section.
  PieceReader PiecesOf(const RowSection& section) const;
  // Reads a block and checks its hash; valid until the next call.
  absl::StatusOr<absl::string_view> ReadBlock(uint64_t block, PieceReader& pieces) const;
  absl::Status CheckBlockHash(uint64_t block, absl::string_view bytes) const;
  // Empty if the file is not indexed.
  absl::StatusOr<KeyFilter> ReadFilter(size_t section) const;
  absl::Status CheckIndex(uint64_t block, absl::string_view bytes, uint32_t rows,
                          const KeyFilter& filter) const;
  absl::Status IndexSection(size_t section, const ValueLayout& layout);
  absl::Status Bad(uint64_t block, const std::string& why) const;

  std::string path_;
  std::unique_ptr<ReadableFile> file_;
  RowFileHeader header_;
  std::vector<RowSection> sections_;
  std::vector<uint64_t> block_offsets_, block_hashes_;  // block_offsets_ has one more
  std::vector<Key> first_keys_;                         // by block; empty: not indexed
  std::vector<FilterPlace> filter_places_;              // by section, of an indexed file
  std::vector<KeyFilter> filters_;                      // by section, after LoadIndex
};

}  // namespace cistern::server
