// Rows of a shard that are found one by one in a base and its deltas, against a map.
#include "server/checkpoint/cold_shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "test/server/checkpoint/row_file_sample.h"
#include "test/support/memory_file_system.h"

namespace cistern::server {
namespace {

using TableRows = std::map<Key, SparseRow>;

// The row of a key as file number `version` has it.
SparseRow Version(const ValueLayout& layout, Key key, uint32_t version) {
  const bool has_embedx = !layout.embedx_is_optional() || (key / 4 + version) % 3 == 0;
  std::vector<float> value(layout.full_floats());
  for (uint32_t i = 0; i < layout.floats(has_embedx); ++i) {
    value[i] =
        static_cast<float>(key % 977) + static_cast<float>(version) + 0.5f * static_cast<float>(i);
  }
  return SparseRow(key, value, has_embedx);
}

class ColdRowsOf : public testing::TestWithParam<bool> {  // whether the files are indexed
 protected:
  static constexpr ShardIndex kShard = 1;

  ColdRowsOf() { EXPECT_TRUE(files_.MakeFolders("data").ok()); }

  // Writes a file with these rows of both tables.
  void Write(const std::vector<std::vector<SparseRow>>& tables, bool base) {
    RowFileHeader header = SampleHeader();
    header.base = base;
    header.indexed = GetParam();
    header.commit = readers_.size() + 1;
    const auto writer =
        RowFileWriter::Create(files_, "data", absl::StrCat("file-", header.commit), header).value();
    for (TableId t = 0; t < 2; ++t) {
      const ValueLayout& layout = layouts_[t];
      RowSection section;
      section.table = t;
      section.shard = kShard;
      section.stride = layout.full_floats();
      ASSERT_TRUE(writer->BeginSection(section).ok());
      RowBlockBuilder builder(&layout, 0, GetParam() ? IndexedBlockBytes(layout) : kMaxBlockBytes);
      for (const auto& [key, value, has_embedx] : tables[t]) {
        builder.Add(key, value.data(), has_embedx);
      }
      ASSERT_TRUE(writer->Append(builder.Take(true)).ok());
      ASSERT_TRUE(
          writer->EndSection(std::max<uint64_t>(tables[t].size(), base ? 0 : 1000000), 0).ok());
    }
    files_of_.push_back(writer->Finish().value());
    Open(files_of_.back());
  }

  void Open(const v1::RowFile& file) {
    std::unique_ptr<RowFileReader> reader = RowFileReader::Open(files_, "data", file).value();
    ASSERT_EQ(reader->Verify(), absl::OkStatus());
    ASSERT_EQ(reader->LoadIndex({&layouts_[0], &layouts_[1]}), absl::OkStatus());
    readers_.push_back(std::move(reader));
  }

  ColdShard Shard(TableId table) const {
    std::vector<ColdShard::Run> runs;
    for (size_t i = readers_.size(); i-- > 0;) {
      runs.push_back({readers_[i], readers_[i]->FindSparse(table, kShard)});
    }
    return ColdShard(std::move(runs), &layouts_[table]);
  }

  // A base of every third key, and deltas of some; *rows: what they hold together.
  void WriteChain(std::vector<TableRows>* rows) {
    std::mt19937_64 random(7);
    rows->resize(2);
    for (uint32_t version = 0; version < 6; ++version) {
      std::vector<std::vector<SparseRow>> tables(2);
      for (TableId t = 0; t < 2; ++t) {
        for (Key key = kShard; key < 4 * 30000; key += 4) {
          const bool has = version == 0 ? key / 4 % 3 == 0 : random() % 40 == 0;
          if (!has) continue;
          tables[t].push_back(Version(layouts_[t], key, version));
          (*rows)[t].insert_or_assign(key, tables[t].back());
        }
      }
      Write(tables, version == 0);
    }
  }

  MemoryFileSystem files_;
  const std::vector<ValueLayout> layouts_ = {SampleLayout(0), SampleLayout(1)};
  std::vector<v1::RowFile> files_of_;
  std::vector<std::shared_ptr<const RowFileReader>> readers_;
};

TEST_P(ColdRowsOf, ABaseAndDeltasAreFoundWithTheirNewestValues) {
  std::vector<TableRows> rows;
  WriteChain(&rows);
  std::mt19937_64 random(8);
  for (TableId t = 0; t < 2; ++t) {
    const ColdShard shard = Shard(t);
    const size_t stride = layouts_[t].full_floats();
    for (const size_t count : {size_t{1}, size_t{2}, size_t{500}, size_t{60000}}) {
      std::vector<Key> keys;
      for (size_t i = 0; i < count; ++i) keys.push_back(kShard + 4 * (random() % 40000));
      std::vector<float> values(count * stride, -7);
      std::vector<uint8_t> has_embedx(count);
      std::vector<ColdRead> reads;
      for (size_t i = 0; i < count; ++i) {
        reads.push_back({keys[i], &values[i * stride], &has_embedx[i]});
      }
      ASSERT_EQ(shard.Read(reads), absl::OkStatus());
      for (size_t i = 0; i < count; ++i) {
        const std::vector<float> value(&values[i * stride], &values[i * stride] + stride);
        const auto expected = rows[t].find(keys[i]);
        if (expected == rows[t].end()) {
          ASSERT_EQ(has_embedx[i], kAbsent) << keys[i];
          ASSERT_EQ(value, std::vector<float>(stride, -7));
          continue;
        }
        ASSERT_TRUE(shard.MayHave(keys[i]));
        ASSERT_EQ(SparseRow(keys[i], value, has_embedx[i] != 0), expected->second);
      }
    }
  }
}

// More blocks than one round has room for, some of them of a changed shard.
TEST_P(ColdRowsOf, SeveralShardsAreReadTogether) {
  std::vector<TableRows> rows;
  WriteChain(&rows);
  const auto plain = std::make_shared<const ColdShard>(Shard(0));
  const RowChange drop_thirds = [](Key key, float* value, bool) {
    value[0] += 1;
    return key % 3 == 0 ? RowFate::kRemove : RowFate::kKeep;
  };
  const ColdShard others[] = {Shard(1), Shard(0)};
  const auto changed = Changed(plain, drop_thirds, layouts_[0].full_floats());
  const std::vector<std::pair<const ColdRows*, TableId>> shards = {
      {&others[0], 1}, {changed.get(), 0}, {&others[1], 0}, {plain.get(), 0}};
  std::mt19937_64 random(9);
  for (const size_t count : {size_t{1}, size_t{40}, size_t{20000}}) {
    std::vector<std::vector<float>> values(shards.size());
    std::vector<std::vector<uint8_t>> has_embedx(shards.size());
    std::vector<std::vector<ColdRead>> reads(shards.size());
    std::vector<std::unique_ptr<ColdReading>> readings;
    for (size_t s = 0; s < shards.size(); ++s) {
      const size_t stride = layouts_[shards[s].second].full_floats();
      values[s].assign(count * stride, -7);
      has_embedx[s].resize(count);
      for (size_t i = 0; i < count; ++i) {
        reads[s].push_back(
            {kShard + 4 * (random() % 40000), &values[s][i * stride], &has_embedx[s][i]});
      }
      readings.push_back(shards[s].first->Begin(reads[s]));
    }
    ASSERT_EQ(ReadTogether(readings), absl::OkStatus());
    for (size_t s = 0; s < shards.size(); ++s) {
      const TableId t = shards[s].second;
      for (size_t i = 0; i < count; ++i) {
        const ColdRead& read = reads[s][i];
        const std::vector<float> value(read.value, read.value + layouts_[t].full_floats());
        const auto expected = rows[t].find(read.key);
        const bool is_changed = shards[s].first == changed.get();
        if (expected == rows[t].end() || (is_changed && read.key % 3 == 0)) {
          ASSERT_EQ(*read.has_embedx, kAbsent) << read.key;
          ASSERT_EQ(value, std::vector<float>(value.size(), -7));
          continue;
        }
        auto [key, wanted, wanted_embedx] = expected->second;
        if (is_changed) wanted[0] += 1;
        ASSERT_EQ(SparseRow(read.key, value, *read.has_embedx != 0),
                  SparseRow(key, wanted, wanted_embedx));
      }
    }
  }
}

TEST_P(ColdRowsOf, PartsHoldEveryRowOnceInOrder) {
  std::vector<TableRows> rows;
  WriteChain(&rows);
  for (TableId t = 0; t < 2; ++t) {
    const ColdShard shard = Shard(t);
    std::vector<SparseRow> found;
    for (uint64_t part = 0; part < shard.part_num(); ++part) {
      ASSERT_EQ(shard.ReadPart(part,
                               [&](Key key, const float* value, bool has_embedx) {
                                 found.emplace_back(
                                     key,
                                     std::vector<float>(value, value + layouts_[t].full_floats()),
                                     has_embedx);
                                 return absl::OkStatus();
                               }),
                absl::OkStatus());
    }
    std::vector<SparseRow> expected;
    for (const auto& [key, row] : rows[t]) expected.push_back(row);
    EXPECT_EQ(found, expected);
  }
}

TEST_P(ColdRowsOf, NoFilesHaveNoRows) {
  const ColdShard shard({}, &layouts_[0]);
  std::vector<float> value(layouts_[0].full_floats());
  uint8_t has_embedx = 0;
  const ColdRead read = {5, value.data(), &has_embedx};
  EXPECT_EQ(shard.Read(absl::MakeConstSpan(&read, 1)), absl::OkStatus());
  EXPECT_EQ(has_embedx, kAbsent);
  EXPECT_EQ(shard.part_num(), 0u);
  EXPECT_FALSE(shard.MayHave(5));
}

// A block that changed on the disk after the file was opened.
TEST_P(ColdRowsOf, ADamagedBlockIsNamed) {
  std::vector<TableRows> rows;
  WriteChain(&rows);
  const std::string path = "data/" + files_of_[0].name();
  const std::string bytes = ReadWhole(files_, path, 64 << 20).value();
  const uint64_t offset = readers_[0]->block_offset(1) + 200;
  std::string damaged = bytes;
  damaged[offset] ^= 1;
  MemoryFileSystem disk;
  disk.Put(path, damaged);
  // The footer and the filters are intact, so it opens.
  std::unique_ptr<RowFileReader> reader = RowFileReader::Open(disk, "data", files_of_[0]).value();
  if (!GetParam()) {  // every block is read at once
    EXPECT_EQ(reader->LoadIndex({&layouts_[0], &layouts_[1]}).code(), absl::StatusCode::kDataLoss);
    return;
  }
  ASSERT_EQ(reader->LoadIndex({&layouts_[0], &layouts_[1]}), absl::OkStatus());
  readers_ = {std::move(reader)};
  const ColdShard shard = Shard(0);
  std::vector<float> value(layouts_[0].full_floats());
  uint8_t has_embedx = 0;
  const ColdRead read = {readers_[0]->first_key(1), value.data(), &has_embedx};
  const absl::Status status = shard.Read(absl::MakeConstSpan(&read, 1));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(path + ": block 1 at byte "));
}

INSTANTIATE_TEST_SUITE_P(, ColdRowsOf, testing::Bool(), [](const auto& tested) {
  return tested.param ? "Indexed" : "NotIndexed";
});

}  // namespace
}  // namespace cistern::server
