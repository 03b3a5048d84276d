// An immutable, checksummed file of rows: a base or a delta of one server's shards.
//
// Byte by byte (little-endian; docs/formats.md, golden file in test/golden):
//
//   header   64 bytes: magic "CISTROWS", u16 major, u16 minor, u32 flags (bit 0: base),
//            u64 cluster_id, u64 schema_hash, u32 server, u32 server_num, u32 shard_num, u32 zero,
//            u64 commit, u64 epoch
//   blocks   one after another, each at most kMaxBlockBytes. Of a sparse section: u32 rows, u32
//   zero,
//            keys u64[rows], full u8[rows] padded to 8 bytes, then the cells of each row,
//            value_floats (full) of them; keys ascend through the section. Of a dense section: u32
//            rows, u32 zero, cells [rows, columns].
//   footer   header again, u64 section_num, sections, u64 block_num, XXH3-64 of each block u64[],
//            size of each block u64[]; a section is u32 dense, u32 table, u32 shard, u32 stride,
//            u64 begin, u64 rows, u64 total_rows, u64 digest, u64 first_block, u64 block_num, u64
//            bytes
//   trailer  32 bytes: u64 footer offset, u64 footer bytes, u64 XXH3-64 of the footer, magic
//   "CISTREND"
//
// `root`, which a manifest records, is the XXH3-64 of the footer: it covers every byte of the file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/types.h"
#include "common/io/file_system.h"
#include "common/io/piece_reader.h"
#include "common/value/value_layout.h"
#include "proto/checkpoint.pb.h"
#include "server/table/value_block.h"

namespace cistern {

struct RowFileFooter;

// A row that is larger has a block of its own.
inline constexpr size_t kMaxBlockBytes = size_t{64} << 10;

struct RowFileHeader {
  bool base = false;
  uint64_t cluster_id = 0, schema_hash = 0;
  uint32_t server = 0, server_num = 1, shard_num = 1;
  uint64_t commit = 0;
  Epoch epoch = 0;
};

// The rows of one shard of a sparse table, or of one range of a dense table.
struct RowSection {
  bool dense = false;
  TableId table = 0;
  ShardIndex shard = 0;     // sparse
  uint32_t stride = 0;      // sparse: full_floats; dense: columns
  uint64_t begin = 0;       // dense: first row
  uint64_t rows = 0;        // in this file
  uint64_t total_rows = 0;  // of the shard or range after the commit
  uint64_t digest = 0;      // of the whole shard or range after the commit (SparseTable::Digest)
  uint64_t first_block = 0, block_num = 0, bytes = 0;  // filled by the writer
};

// Cuts rows into blocks: payloads that RowFileWriter takes. Independent of any file, so that the
// sections of one file can be made by several threads.
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
    std::string bytes_;  // the payload from begin_ on
    size_t begin_ = 0;
    uint64_t hash_ = 0;
    uint32_t rows_ = 0;
  };
  // layout: null for a dense section of `columns`.
  explicit RowBlockBuilder(const ValueLayout* layout, uint32_t columns = 0);
  // Keys must ascend: a check stops the process otherwise. value: full_floats cells, of which only
  // floats(full) are kept.
  void Add(Key key, const float* value, bool full);
  void AddDense(const float* cells);  // [columns]
  uint64_t rows() const { return rows_; }
  // Blocks that are complete so far; with `finish` the last one too. They are taken out.
  std::vector<Block> Take(bool finish);

 private:
  void AddCells(const float* cells, size_t bytes);
  void Cut();
  size_t HeadBytes(size_t rows) const;  // all but the cells

  const ValueLayout* const layout_;
  const uint32_t columns_;
  const size_t head_room_;  // what stands before the cells of a block has room in it
  uint64_t rows_ = 0;
  Key last_key_ = 0;
  // Of the block that is being filled: its cells lie where they stay, behind head_room_ bytes.
  Block block_;
  std::vector<Key> keys_;
  std::string full_;
  std::vector<Block> done_;
};

// Writes one row file under its final name: it counts only once a manifest names it.
//
// Threads: one at a time.
class RowFileWriter {
 public:
  // kAlreadyExists if the file is there.
  static absl::StatusOr<std::unique_ptr<RowFileWriter>> Create(FileSystem& files,
                                                               const std::string& folder,
                                                               const std::string& name,
                                                               const RowFileHeader& header);
  ~RowFileWriter();  // removes the file unless Finish succeeded

  // A section: Begin, blocks, End with what is known only then. The first error stays.
  absl::Status BeginSection(const RowSection& section);
  absl::Status Append(const RowBlockBuilder::Block& block);
  absl::Status EndSection(uint64_t total_rows, uint64_t digest);
  // Footer, trailer, sync of file and folder. kInternal if the sections make no file that could be
  // read back: two of one shard, a shard of another server, rows that are not those of a base.
  absl::StatusOr<v1::RowFile> Finish();

 private:
  RowFileWriter(FileSystem& files, const std::string& folder, const std::string& name);
  absl::Status Write(absl::string_view bytes);

  FileSystem& files_;
  const std::string folder_, name_, path_;
  std::unique_ptr<WritableFile> file_;
  uint64_t bytes_ = 0;
  const std::unique_ptr<RowFileFooter> footer_;
  bool in_section_ = false, finished_ = false;
};

// Reads a row file; every byte that is given out was checked against the footer, and the footer
// against the manifest. Errors are kDataLoss with the path, and the block where it lies.
//
// Threads: any thread.
class RowFileReader {
 public:
  // expected: the manifest's entry; size, root, server, commit ... must match. With an empty root
  // (tools that look at a single file) only the file's own trailer is checked.
  // cluster_id, schema_hash and shard_num, which an entry does not have, are the caller's to check.
  static absl::StatusOr<std::unique_ptr<RowFileReader>> Open(FileSystem& files,
                                                             const std::string& folder,
                                                             const v1::RowFile& expected);
  const RowFileHeader& header() const { return header_; }
  const std::vector<RowSection>& sections() const { return sections_; }
  // Null if the file has none for it.
  const RowSection* FindSparse(TableId table, ShardIndex shard) const;

  // Rows of a sparse section in ascending key order, a block of them at a time: values have
  // full_floats cells, zeros where absent, and are valid until visit returns. An error of `visit`
  // is passed on. layout must be the table's.
  absl::Status ReadSparse(const RowSection& section, const ValueLayout& layout,
                          const std::function<absl::Status(const ValueBlock& rows)>& visit) const;
  // [rows, columns] of a dense section, appended to *out; after an error a part of it.
  absl::Status ReadDense(const RowSection& section, std::vector<float>* out) const;
  // Reads and checks every block.
  absl::Status Verify() const;

  // Walks a sparse section row by row: what a merge needs.
  //
  // Threads: one at a time. The reader outlives it.
  class Cursor {
   public:
    // Moves to the next row; false at the end.
    absl::StatusOr<bool> Next();
    // Moves to the next block and takes all of its rows, which Next then does not give; false at
    // the end. *rows is good until the next call. Not to be mixed with Next.
    absl::StatusOr<bool> NextBlock(ValueBlock* rows);
    Key key() const { return key_; }
    const float* value() const { return value_.data(); }
    bool full() const { return full_; }

   private:
    friend class RowFileReader;
    Cursor(const RowFileReader* reader, const RowSection* section, const ValueLayout* layout)
        : reader_(reader),
          section_(section),
          layout_(layout),
          pieces_(reader->PiecesOf(*section)),
          value_(layout->full_floats()) {}
    absl::Status LoadBlock();
    // Loads the next block, if there is one.
    absl::StatusOr<bool> Advance();
    // The cells of the next row, zeros where absent.
    void CopyValue(bool full, float* out);

    const RowFileReader* reader_;
    const RowSection* section_;
    const ValueLayout* layout_;
    PieceReader pieces_;
    uint64_t next_block_ = 0, rows_seen_ = 0;
    absl::string_view block_;  // in pieces_
    uint32_t row_ = 0, block_rows_ = 0;
    size_t cell_offset_ = 0;
    Key key_ = 0;
    bool full_ = false;
    std::vector<float> value_;
    std::vector<float> values_;  // of a block with values that lack cells
  };
  Cursor Walk(const RowSection& section, const ValueLayout& layout) const {
    return Cursor(this, &section, &layout);
  }

 private:
  RowFileReader() = default;
  absl::Status ReadFooter(const v1::RowFile& expected);
  // What reads the blocks of a section.
  PieceReader PiecesOf(const RowSection& section) const;
  // A block of the file, whose hash was checked; good until the next one.
  absl::StatusOr<absl::string_view> ReadBlock(uint64_t block, PieceReader& pieces) const;
  absl::Status Bad(uint64_t block, const std::string& why) const;

  std::string path_;
  std::unique_ptr<ReadableFile> file_;
  RowFileHeader header_;
  std::vector<RowSection> sections_;
  std::vector<uint64_t> block_offsets_, block_hashes_;  // one offset more than blocks
};

}  // namespace cistern
