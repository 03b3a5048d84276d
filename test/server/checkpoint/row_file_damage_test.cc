// Damaged row files: each is refused with an error that names the file and the block.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <iostream>

#include "test/server/checkpoint/row_file_sample.h"
#include "test/support/memory_file_system.h"

namespace cistern::server {
namespace {

using ::testing::HasSubstr;

class DamagedRowFile : public testing::Test {
 protected:
  explicit DamagedRowFile(bool indexed = false) {
    MemoryFileSystem files;
    EXPECT_TRUE(files.MakeFolders("data").ok());
    RowFileHeader header = SampleHeader();
    header.indexed = indexed;
    file_ = WriteSample(files, "data", "delta-1", header).value();
    unnamed_.set_name("delta-1");
    bytes_ = ReadWhole(files, "data/delta-1", 1 << 20).value();
  }

  // The result of reading `bytes` as the file: as named by a manifest, and by its own trailer.
  static absl::Status Read(const std::string& bytes, const v1::RowFile& expected) {
    MemoryFileSystem files;
    files.Put("data/" + expected.name(), bytes);
    return ReadEverything(files, "data", expected);
  }

  static void ExpectLoss(const absl::Status& status, const std::string& message) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("data/delta-1"));
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }

  void ExpectRefused(const std::string& bytes, const std::string& message = "") {
    ExpectLoss(Read(bytes, file_), "");
    ExpectLoss(Read(bytes, unnamed_), message);
  }

  // The file with changed parts and matching hashes.
  std::string Forged(const std::function<void(RowFileParts&)>& change) {
    RowFileParts parts = TakeApart(bytes_);
    change(parts);
    return PutTogether(std::move(parts));
  }

  v1::RowFile file_, unnamed_;  // as in a manifest, and with its name only
  std::string bytes_;
};

TEST_F(DamagedRowFile, ReadsAnUnchangedFile) {
  EXPECT_TRUE(Read(bytes_, file_).ok());
  EXPECT_TRUE(Read(bytes_, unnamed_).ok());
  EXPECT_TRUE(Read(Forged([](RowFileParts&) {}), file_).ok());
}

TEST_F(DamagedRowFile, DetectsEveryFlippedByte) {
  const RowFileParts parts = TakeApart(bytes_);
  size_t block_end = kRowFileHeaderBytes, block = 0;
  for (size_t i = 0; i < bytes_.size(); ++i) {
    if (block < parts.blocks.size() && i >= block_end) block_end += parts.blocks[block++].size();
    for (const int mask : {1 << (i % 8), 0xff}) {
      std::string flipped = bytes_;
      flipped[i] = static_cast<char>(flipped[i] ^ mask);
      // A change in a block is detected by that block's hash.
      const bool in_block = i >= kRowFileHeaderBytes && i < block_end;
      const std::string named = absl::StrCat(": block ", block - 1, " at byte ");
      ExpectRefused(flipped, in_block ? named : "");
    }
  }
  EXPECT_EQ(block, parts.blocks.size());
  std::cout << "each of " << bytes_.size() << " bytes flipped in two ways\n";
}

class DamagedIndexedFile : public DamagedRowFile {
 protected:
  DamagedIndexedFile() : DamagedRowFile(/*indexed=*/true) {}
};

TEST_F(DamagedIndexedFile, DetectsEveryFlippedByteAndTruncation) {
  EXPECT_TRUE(Read(bytes_, file_).ok());
  for (size_t i = 0; i < bytes_.size(); ++i) {
    for (const int mask : {1 << (i % 8), 0xff}) {
      std::string flipped = bytes_;
      flipped[i] = static_cast<char>(flipped[i] ^ mask);
      ExpectRefused(flipped);
    }
    ExpectRefused(bytes_.substr(0, i));
  }
}

// A filter or first keys that lie, in a file whose hashes match.
TEST_F(DamagedIndexedFile, RefusesAnIndexThatDoesNotFitTheRows) {
  const auto refused = [&](const std::function<void(RowFileParts&)>& change,
                           const std::string& message) {
    ExpectLoss(Read(Forged(change), unnamed_), message);
  };
  EXPECT_TRUE(Read(Forged([](RowFileParts&) {}), unnamed_).ok());
  refused([](RowFileParts& p) { p.filters[0].assign(p.filters[0].size(), '\0'); },
          "the filter lacks key 1");
  refused([](RowFileParts& p) { p.filters[0] += p.filters[0]; }, "a filter of an impossible size");
  refused([](RowFileParts& p) { p.filters[1] = p.filters[0]; }, "has a filter but no keys");
  refused([](RowFileParts& p) { p.filters[0].clear(); }, "a filter of an impossible size");
  refused([](RowFileParts& p) { p.footer.first_keys[0] += 4; }, "its first key is 1, but 5");
}

TEST_F(DamagedRowFile, DetectsEveryTruncation) {
  for (size_t size = 0; size < bytes_.size(); ++size) ExpectRefused(bytes_.substr(0, size));
  std::cout << "each of " << bytes_.size() << " truncations\n";
}

TEST_F(DamagedRowFile, DetectsAddedBytes) {
  ExpectRefused(bytes_ + '\0');
  ExpectRefused(bytes_ + bytes_);
  for (size_t at = 0; at <= bytes_.size(); at += 7) {
    ExpectRefused(std::string(bytes_).insert(at, 1, '\0'));
  }
}

TEST_F(DamagedRowFile, NamesAMissingFileOrAFolderInItsPlace) {
  MemoryFileSystem files;
  const std::string missing = "the state is incomplete without this file";
  ExpectLoss(ReadEverything(files, "data", file_), missing);
  ASSERT_TRUE(files.MakeFolders("data/delta-1").ok());
  ExpectLoss(ReadEverything(files, "data", file_), missing);
}

// Intact files, each in the place of another.
TEST_F(DamagedRowFile, RefusesAFileFromAnotherPlace) {
  const auto other = [](const std::function<void(RowFileHeader&)>& change) {
    MemoryFileSystem files;
    EXPECT_TRUE(files.MakeFolders("data").ok());
    RowFileHeader header = SampleHeader();
    change(header);
    EXPECT_TRUE(WriteSample(files, "data", "delta-1", header).ok());
    return ReadWhole(files, "data/delta-1", 1 << 20).value();
  };
  for (const std::string& bytes : {
           other([](RowFileHeader& h) { h.commit = 8; }),
           other([](RowFileHeader& h) { h.term = 4; }),
           other([](RowFileHeader& h) { h.cluster_id = 1; }),
           other([](RowFileHeader& h) { h.schema_hash = 1; }),
       }) {
    EXPECT_EQ(bytes.size(), bytes_.size());
    EXPECT_TRUE(Read(bytes, unnamed_).ok());
    ExpectLoss(Read(bytes, file_), "in the manifest");
  }
}

TEST_F(DamagedRowFile, RefusesTheEntryOfAnotherFile) {
  const auto refused = [&](const std::function<void(v1::RowFile&)>& change,
                           const std::string& message) {
    v1::RowFile entry = file_;
    change(entry);
    ExpectLoss(Read(bytes_, entry), message);
  };
  refused([](v1::RowFile& f) { f.set_base(true); }, "its kind (1: base) is 0, not 1");
  refused([](v1::RowFile& f) { f.set_server(0); }, "its server is 1, not 0");
  refused([](v1::RowFile& f) { f.set_server_num(3); }, "its number of servers is 2, not 3");
  refused([](v1::RowFile& f) { f.set_commit(6); }, "its commit is 7, not 6");
  refused([](v1::RowFile& f) { f.set_epoch(2); }, "its epoch is 3, not 2");
  refused([](v1::RowFile& f) { f.set_rows(20); }, "its number of rows is 21, not 20");
  refused([](v1::RowFile& f) { f.set_bytes(20); }, "its size is ");
  refused([](v1::RowFile& f) { f.set_root(20); }, "the hash of its footer is ");
}

TEST_F(DamagedRowFile, RefusesATableWithAnotherLayout) {
  MemoryFileSystem files;
  files.Put("data/delta-1", bytes_);
  const auto reader = RowFileReader::Open(files, "data", file_).value();
  ExpectLoss(ReadSparseRows(*reader, *reader->FindSparse(0, 1), SampleLayout(1)).status(),
             "table 0 has rows of 6 numbers here, but of 12 in the schema");
  ExpectLoss(ReadSparseRows(*reader, reader->sections()[4], SampleLayout(0)).status(),
             "dense rows of 2 numbers");
}

// The hashes match but the content is wrong, as a bug or an attacker would write it.
TEST_F(DamagedRowFile, RefusesAnImpossibleHeader) {
  const auto with_byte = [&](size_t at, uint8_t byte) {
    RowFileParts parts = TakeApart(bytes_);
    std::string footer = EncodeRowFileFooter(parts.footer);
    footer[at] = static_cast<char>(byte);
    std::string bytes = PutTogether(parts, footer);
    bytes[at] = static_cast<char>(byte);  // the header at the front gets the same change
    return bytes;
  };
  ExpectRefused(with_byte(0, 'X'), "it begins with 'XISTROWS': it is not a row file");
  ExpectRefused(with_byte(8, 2), "its version is 2.0; this program reads versions 1.x only");
  EXPECT_TRUE(Read(with_byte(10, 9), unnamed_).ok());  // readers skip what a minor version adds
  ExpectRefused(with_byte(12, 8), "has flags 8, which this program does not know");
  ExpectRefused(with_byte(12, 5), "has flags 5");  // a base removes nothing
  ExpectRefused(with_byte(44, 1), "which this program does not know");
  ExpectRefused(with_byte(32, 2), "its header names server 2 of 2, which does not exist");
  ExpectRefused(with_byte(36, 0), "its header: ");  // no server
  ExpectRefused(with_byte(40, 1), "its header: ");  // fewer shards than servers
}

TEST_F(DamagedRowFile, RefusesImpossibleSections) {
  using Change = std::function<void(RowSection&)>;
  const auto refused = [&](size_t section, const Change& change, const std::string& message) {
    ExpectRefused(Forged([&](RowFileParts& p) { change(p.footer.sections[section]); }),
                  absl::StrCat("section ", section));
    ExpectRefused(Forged([&](RowFileParts& p) { change(p.footer.sections[section]); }), message);
  };
  refused(
      0, [](RowSection& s) { s.shard = 2; }, "belongs to a shard that its server does not own");
  refused(
      0, [](RowSection& s) { s.shard = 5; }, "belongs to a shard that its server does not own");
  refused(
      0, [](RowSection& s) { s.stride = 0; }, "has a stride of 0");
  refused(
      0, [](RowSection& s) { s.begin = 1; }, "is sparse but has a first row");
  refused(
      4, [](RowSection& s) { s.shard = 1; }, "is dense but has a shard");
  refused(
      0, [](RowSection& s) { s.rows = 101; }, "has more rows than its shard or range");
  refused(
      0, [](RowSection& s) { s.rows = 0; }, "has rows without blocks, or blocks without rows");
  refused(
      1, [](RowSection& s) { s.rows = 1; }, "has rows without blocks, or blocks without rows");
  refused(
      0, [](RowSection& s) { s.rows = s.total_rows = uint64_t{1} << 60; },
      "has more rows than bytes");
  refused(
      0, [](RowSection& s) { s.rows = 1; }, "differs in size from its rows");
  refused(
      4, [](RowSection& s) { s.rows = s.total_rows = 5; }, "differs in size from its rows");
  refused(
      4, [](RowSection& s) { s.stride = 0xffffffff; }, "differs in size from its rows");
  refused(
      0, [](RowSection& s) { s.bytes += 1; }, "differs in size from its blocks");
  refused(
      0, [](RowSection& s) { s.first_block = 1; }, "does not begin where the previous one ends");
  refused(
      0, [](RowSection& s) { s.block_num = ~uint64_t{0}; }, "has more blocks than the file");
  refused(
      3, [](RowSection& s) { s.shard = 1; }, "occurs twice");
}

TEST_F(DamagedRowFile, DoesNotTrustCounts) {
  const auto with_number = [&](size_t at, uint64_t number) {
    RowFileParts parts = TakeApart(bytes_);
    std::string footer = EncodeRowFileFooter(parts.footer);
    std::memcpy(&footer[at], &number, sizeof(number));
    return PutTogether(parts, footer);
  };
  const size_t section_num = kRowFileHeaderBytes, block_num = section_num + 8 + 5 * 72;
  for (const uint64_t number : {uint64_t{0}, uint64_t{6}, uint64_t{1} << 60, ~uint64_t{0}}) {
    ExpectRefused(with_number(section_num, number));
    ExpectRefused(with_number(block_num, number), "does not match its own counts");
  }
  const size_t first_size = block_num + 8 + 4 * 8;
  for (const uint64_t number : {uint64_t{0}, uint64_t{8}, uint64_t{70000}, ~uint64_t{0}}) {
    ExpectRefused(with_number(first_size, number), "section 0");
  }
  RowFileParts parts = TakeApart(bytes_);
  for (size_t size = 0; size < 80; ++size) {
    ExpectRefused(PutTogether(parts, EncodeRowFileFooter(parts.footer).substr(0, size)),
                  "does not match its own counts");
  }
}

TEST_F(DamagedRowFile, RefusesATrailerThatPlacesTheFooterElsewhere) {
  const size_t at = bytes_.size() - kRowFileTrailerBytes;
  for (const uint64_t number : {uint64_t{0}, uint64_t{64}, uint64_t{1} << 63, ~uint64_t{0}}) {
    for (const size_t field : {size_t{0}, size_t{8}}) {
      std::string bytes = bytes_;
      std::memcpy(&bytes[at + field], &number, sizeof(number));
      ExpectRefused(bytes, "its trailer places a footer of ");
    }
  }
}

TEST_F(DamagedRowFile, RefusesImpossibleBlocks) {
  // Block 0: five rows of table 0, shard 1. Block 1: six rows of table 1, shard 1, some without
  // embedx.
  const auto refused = [&](size_t block, size_t at, uint8_t byte, const std::string& message) {
    const std::string bytes =
        Forged([&](RowFileParts& p) { p.blocks[block][at] = static_cast<char>(byte); });
    ExpectRefused(bytes, absl::StrCat(": block ", block, " at byte "));
    ExpectRefused(bytes, message);
  };
  refused(0, 0, 0, "it does not begin with a number of rows");
  refused(0, 4, 1, "it does not begin with a number of rows");
  refused(0, 0, 200, "its 200 rows do not fit its ");
  refused(0, 0, 4, "");
  refused(0, 8, 2, "row 0: key 2 belongs to shard 2, not to shard 1");
  refused(0, 8, 9, "row 1: key 5 is not greater than the previous key 9");
  refused(0, 8, 5, "row 1: key 5 is not greater than the previous key 5");
  refused(0, 48, 2, "row 0: its flag is 2");
  refused(0, 53, 1, "row 5: its flag is 1");  // padding
  refused(1, 57, 1, "do not fit its ");       // a row without embedx whose flag claims one
}

TEST_F(DamagedRowFile, RefusesARowCountThatDiffersFromTheFooter) {
  // A ctr row may lack its embedx, so the size of the blocks does not determine the row count.
  const std::string bytes = Forged([](RowFileParts& p) { p.footer.sections[2].rows = 7; });
  ExpectRefused(bytes, "table 1, shard 1 has 6 rows, but 7 according to its footer");
  MemoryFileSystem files;
  files.Put("data/delta-1", bytes);
  ExpectLoss(RowFileReader::Open(files, "data", unnamed_).value()->Verify(),
             "table 1, shard 1 has 6 rows, but 7 according to its footer");
}

TEST_F(DamagedRowFile, RefusesKeysThatDoNotAscendAcrossBlocks) {
  // The section's only block twice: each by itself is valid.
  const std::string bytes = Forged([](RowFileParts& p) {
    p.blocks.insert(p.blocks.begin(), p.blocks[0]);
    for (RowSection& section : p.footer.sections) ++section.first_block;
    RowSection& section = p.footer.sections[0];
    section.first_block = 0;
    section.block_num = 2;
    section.rows *= 2;
    section.bytes *= 2;
  });
  ExpectRefused(bytes, ": block 1 at byte ");
  ExpectRefused(bytes, "row 0: key 1 is not greater than the previous key 17");
  MemoryFileSystem files;
  files.Put("data/delta-1", bytes);
  ExpectLoss(RowFileReader::Open(files, "data", unnamed_).value()->Verify(),
             "row 0: key 1 is not greater than the previous key 17");
}

}  // namespace
}  // namespace cistern::server
