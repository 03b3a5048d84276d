// Tar shards: archives that other programs write (test/golden/tar, from make.py: Python's tarfile
// in three formats, GNU tar and PyPI's webdataset), and every way in which a shard can be damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/io/gzip.h"
#include "test/support/temp_folder.h"
#include "test/worker/data/scratch.h"
#include "worker/data/format/shard_manifest.h"
#include "worker/data/format/tar_archive.h"
#include "worker/data/format/tar_reader.h"
#include "worker/data/format/tar_shard_writer.h"

namespace cistern::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string Golden(const std::string& name) {
  return std::string(CISTERN_SOURCE_DIR "/test/golden/tar/") + name;
}

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// One label, two dense features, inputs with 2 slots and 1 slot.
TarSampleOptions Options() {
  TarSampleOptions options;
  options.shape = {1, 2, {2, 1}, {5, 0}};
  options.wide_keys = true;
  return options;
}

absl::StatusOr<SampleBlock> ReadAll(const TarSampleOptions& options,
                                    const std::vector<std::string>& paths, uint64_t skip = 0,
                                    size_t step = 1000) {
  CISTERN_ASSIGN_OR_RETURN(const auto reader, OpenTar(options, paths));
  SampleBlock block;
  block.Reset(options.shape.slot_nums.size());
  CISTERN_RETURN_IF_ERROR(reader->Skip(skip, &block).status());
  while (true) {
    CISTERN_ASSIGN_OR_RETURN(const size_t got, reader->Read(step, &block));
    if (got == 0) return block;
  }
}

// A shard of {name, contents}, written by our writer.
std::string Shard(const Scratch& scratch, const std::string& name,
                  const std::vector<std::pair<std::string, std::string>>& members) {
  auto writer = TarShardWriter::Create(Disk(), scratch.Path(name));
  EXPECT_TRUE(writer.ok()) << writer.status();
  for (const auto& [member, contents] : members) {
    EXPECT_TRUE((*writer)->Append(member, contents).ok());
  }
  EXPECT_TRUE((*writer)->Close().ok());
  EXPECT_EQ((*writer)->bytes(), std::filesystem::file_size(scratch.Path(name)));
  return scratch.Path(name);
}

std::string ErrorOf(const absl::StatusOr<SampleBlock>& block, absl::StatusCode code) {
  EXPECT_EQ(block.status().code(), code) << block.status();
  return std::string(block.status().message());
}

class TarKinds : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Golden, TarKinds,
                         testing::Values("ustar.tar", "pax.tar", "gnu.tar", "gnu_tar.tar",
                                         "webdataset.tar", "webdataset.tar.gz"));

// make.py writes the same four samples to each.
TEST_P(TarKinds, ReadsEverySampleInAnyStep) {
  for (const size_t step : {1, 3, 100}) {
    const auto block = ReadAll(Options(), {Golden(GetParam())}, 0, step);
    ASSERT_TRUE(block.ok()) << block.status();
    EXPECT_THAT(block->label, ElementsAre(1, 0, 1, 0));
    EXPECT_THAT(block->dense, ElementsAre(0.5f, -2, 0, 1e30f, 0.1f, 3, 0, 0));
    EXPECT_THAT(block->sparse[0].offsets, ElementsAre(0, 2, 2, 3, 4, 4, 4, 5, 6));
    // Numbers, and 63 bits of XXH3 (xxhsum -H3) of "0=a", "0=b c", "1=" with a snowman, "2=last".
    EXPECT_THAT(block->sparse[0].keys,
                ElementsAre(7, 8, 0x141d535b52564696, 9, 0x371892598d2c3fff, 0x4f5e931ea8addf10));
    EXPECT_THAT(block->sparse[1].offsets, ElementsAre(0, 1, 1, 4, 5));
    EXPECT_THAT(block->sparse[1].keys, ElementsAre(1, 1, 2, 3, 0x45a33f1a2a1d33e1));
  }
}

TEST_P(TarKinds, ContinuesAfterAnySample) {
  const std::vector<std::string> paths = {Golden(GetParam()), Golden("ustar.tar")};
  const auto whole = ReadAll(Options(), paths);
  ASSERT_TRUE(whole.ok()) << whole.status();
  ASSERT_EQ(whole->size, 8u);
  for (uint64_t skip = 0; skip <= 9; ++skip) {
    const auto rest = ReadAll(Options(), paths, skip);
    ASSERT_TRUE(rest.ok()) << rest.status();
    EXPECT_EQ(rest->label, std::vector<float>(whole->label.begin() + std::min<uint64_t>(skip, 8),
                                              whole->label.end()));
  }
}

TEST_P(TarKinds, EveryTruncationIsAnError) {
  const std::string bytes = Contents(Golden(GetParam()));
  // The two zero blocks end an archive; padding may follow.
  size_t end = bytes.size();
  if (bytes[0] != '\x1f') {
    while (end > 0 && bytes[end - 1] == '\0') --end;
    end = (end + 511) / 512 * 512;
  }
  const Scratch scratch;
  for (size_t size = 1; size < end; size += size % 512 < 500 ? 61 : 1) {
    const auto block = ReadAll(Options(), {scratch.Write("a.tar", bytes.substr(0, size))});
    ASSERT_EQ(block.status().code(), absl::StatusCode::kDataLoss) << size << block.status();
    EXPECT_THAT(
        std::string(block.status().message()),
        AllOf(HasSubstr("a.tar"), testing::AnyOf(HasSubstr("cut short"), HasSubstr("tar"))));
  }
}

TEST(Tar, ReadsItsOwnShards) {
  const Scratch scratch;
  const std::string path =
      Shard(scratch, "a.tar",
            {{"x/1.json", R"({"label":1,"dense":[1,2],"slots":[[1],[],[3,4]]})"},
             {"x/1.jpg", std::string(100000, 'j')},
             {"x/2.json", R"({"label":[0],"dense":[null,""],"slots":[5,null,"t"]})"}});
  const auto block = ReadAll(Options(), {path});
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_THAT(block->label, ElementsAre(1, 0));
  EXPECT_THAT(block->dense, ElementsAre(1, 2, 0, 0));
  EXPECT_THAT(block->sparse[0].keys, ElementsAre(1, 5));
}

TEST(Tar, ColumnsNameTheFieldsAndPrefixTheirHashes) {
  const Scratch scratch;
  const std::string path = Shard(
      scratch, "a.tar",
      {{"1.json", R"({"id":"u","click":"1","I1":"5","I2":2.5,"C1":"x","C2":["y","z"],"C3":""})"}});
  TarSampleOptions options = Options();
  options.columns = {{"click"}, {"I2", "I1"}, {"C1", "C2", "C3"}};
  const auto block = ReadAll(options, {path});
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_THAT(block->label, ElementsAre(1));
  EXPECT_THAT(block->dense, ElementsAre(2.5f, 5));
  EXPECT_THAT(block->sparse[0].offsets, ElementsAre(0, 1, 3));
  // 63 bits of XXH3 (xxhsum -H3) of "C1=x", "C2=y" and "C2=z".
  EXPECT_THAT(block->sparse[0].keys,
              ElementsAre(0x656067d5d189327a, 0x358f4229387ab529, 0x44ad4e61f6090038));
  EXPECT_THAT(block->sparse[1].keys, ElementsAre());
  options.columns.slots[2] = "C4";
  EXPECT_THAT(ErrorOf(ReadAll(options, {path}), absl::StatusCode::kDataLoss),
              AllOf(HasSubstr("a.tar: sample 0: '1': "), HasSubstr("field 'C4' is missing")));
}

TEST(Tar, RefusesSamplesThatDoNotFit) {
  const Scratch scratch;
  const auto error = [&](const std::string& json, absl::StatusCode code) {
    return ErrorOf(
        ReadAll(Options(), {Shard(scratch, "a.tar",
                                  {{"1.json", R"({"label":1,"dense":[1,2],"slots":[1,2,3]})"},
                                   {"2.json", json}})}),
        code);
  };
  const auto lost = absl::StatusCode::kDataLoss, range = absl::StatusCode::kOutOfRange;
  EXPECT_THAT(error("{", lost), HasSubstr("sample 1: '2': its .json is not JSON"));
  EXPECT_THAT(error("[1]", lost), HasSubstr("not a JSON object"));
  EXPECT_THAT(error(R"({"dense":[1,2],"slots":[1,2,3]})", lost), HasSubstr("'label' is missing"));
  EXPECT_THAT(error(R"({"label":[1,1],"dense":[1,2],"slots":[1,2,3]})", lost),
              HasSubstr("2 labels"));
  EXPECT_THAT(error(R"({"label":"x","dense":[1,2],"slots":[1,2,3]})", lost), HasSubstr("number"));
  EXPECT_THAT(error(R"({"label":1,"dense":[1],"slots":[1,2,3]})", lost), HasSubstr("dense_dim 2"));
  EXPECT_THAT(error(R"({"label":1,"dense":[1,1e39],"slots":[1,2,3]})", lost), HasSubstr("finite"));
  EXPECT_THAT(error(R"({"label":1,"dense":[1,2],"slots":[1,2]})", lost), HasSubstr("3 slots"));
  EXPECT_THAT(error(R"({"label":1,"dense":[1,2],"slots":[1.5,2,3]})", lost),
              HasSubstr("slot 0 of input 0 holds a number"));
  EXPECT_THAT(error(R"({"label":1,"dense":[1,2],"slots":[-1,2,3]})", range), HasSubstr("key -1"));
  EXPECT_THAT(error(R"({"label":1,"dense":[1,2],"slots":[1,9223372036854775807,3]})", range),
              HasSubstr("slot 1 of input 0: key 9223372036854775807"));
  EXPECT_THAT(error(R"({"label":1,"dense":[1,2],"slots":[[1,2,3],[4,5,6],3]})", range),
              HasSubstr("max_feature_num_per_sample"));
}

TEST(Tar, RefusesGroupsThatAreNoSample) {
  const Scratch scratch;
  const std::string json = R"({"label":1,"dense":[1,2],"slots":[1,2,3]})";
  const auto lost = absl::StatusCode::kDataLoss;
  EXPECT_THAT(ErrorOf(ReadAll(Options(), {Shard(scratch, "a.tar", {{"1.cls", "1"}})}), lost),
              HasSubstr("'1' has no member .json"));
  EXPECT_THAT(
      ErrorOf(ReadAll(Options(), {Shard(scratch, "a.tar", {{"1.json", json}, {"1.json", json}})}),
              lost),
      HasSubstr("two members .json"));
  // Members without a dot, and __names__, belong to no sample.
  const auto block = ReadAll(
      Options(), {Shard(scratch, "a.tar", {{"README", "x"}, {"__key__", "x"}, {"1.JSON", json}})});
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_EQ(block->size, 1u);
}

TEST(Tar, RefusesBytesAfterTheEnd) {
  const Scratch scratch;
  const std::string bytes = Contents(Golden("ustar.tar"));
  EXPECT_THAT(ErrorOf(ReadAll(Options(), {scratch.Write("a.tar", bytes + bytes)}),
                      absl::StatusCode::kDataLoss),
              HasSubstr("bytes follow the end of the archive"));
  EXPECT_TRUE(ReadAll(Options(), {scratch.Write("a.tar", bytes + std::string(5000, '\0'))}).ok());
}

// The bytes of a shard of one sample whose first header has the type `type`.
std::string ShardOfType(const Scratch& scratch, char type) {
  std::string bytes = Contents(
      Shard(scratch, "typed.tar", {{"1.json", R"({"label":1,"dense":[1,2],"slots":[1,2,3]})"}}));
  bytes[156] = type;
  bytes.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (size_t i = 0; i < kTarBlock; ++i) sum += static_cast<unsigned char>(bytes[i]);
  char digits[8];
  std::snprintf(digits, sizeof(digits), "%06o", sum);
  bytes.replace(148, 7, digits, 7);
  return bytes;
}

TEST(Tar, RefusesSparseFilesAndVolumes) {
  const Scratch scratch;
  for (const auto& [type, why] : std::vector<std::pair<char, const char*>>{
           {'S', "member '1.json' is a sparse file"}, {'M', "archive of several volumes"}}) {
    EXPECT_THAT(ErrorOf(ReadAll(Options(), {scratch.Write("a.tar", ShardOfType(scratch, type))}),
                        absl::StatusCode::kUnimplemented),
                AllOf(HasSubstr("a.tar"), HasSubstr(why)));
  }
}

TEST(Tar, UnknownTypesAreFiles) {
  const Scratch scratch;
  const auto samples = [&](char type) {
    const auto block = ReadAll(Options(), {scratch.Write("a.tar", ShardOfType(scratch, type))});
    EXPECT_TRUE(block.ok()) << block.status();
    return block.ok() ? block->size : 99;
  };
  EXPECT_EQ(samples('Z'), 1u);
  EXPECT_EQ(samples('V'), 0u);  // the name of a volume
}

TEST(Tar, ACheckedHeaderDetectsEveryChangedByte) {
  const Scratch scratch;
  const std::string bytes = Contents(Golden("ustar.tar"));
  for (size_t i = 0; i < 512; ++i) {
    if (i >= 148 && i < 156) continue;  // the checksum itself: leading zeros may be blanks
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_EQ(ReadAll(Options(), {scratch.Write("a.tar", changed)}).status().code(),
              absl::StatusCode::kDataLoss)
        << i;
  }
}

TEST(Tar, SkipsWholeShardsByTheirManifest) {
  const Scratch scratch;
  const std::string json = R"({"label":1,"dense":[1,2],"slots":[1,2,3]})";
  const std::string a = Shard(scratch, "g/a.tar", {{"1.json", json}, {"2.json", json}});
  const std::string b = Shard(scratch, "g/b.tar", {{"3.json", json}});
  ShardManifest manifest;
  const uint64_t bytes = std::filesystem::file_size(a);
  manifest.shards = {{"g/a.tar", 2, bytes, ""}};
  ASSERT_TRUE(WriteShardManifest(Disk(), scratch.Path(kShardManifestName), manifest).ok());
  // With the manifest, a shard is skipped unread: what is damaged in it is not seen.
  std::string changed = Contents(a);
  changed[0] = 'y';
  scratch.Write("g/a.tar", changed);
  const auto reader = OpenTar(Options(), {a, b});
  SampleBlock block;
  block.Reset(2);
  EXPECT_EQ(*(*reader)->Skip(2, &block), 2u);
  EXPECT_EQ(*(*reader)->Read(10, &block), 1u);
  // A file of another size is not the listed one.
  scratch.Write("g/a.tar", changed + std::string(512, '\0'));
  EXPECT_FALSE((*OpenTar(Options(), {a, b}))->Skip(2, &block).ok());
}

TEST(Tar, NamesAMissingShard) {
  EXPECT_THAT(ErrorOf(ReadAll(Options(), {"no/such.tar"}), absl::StatusCode::kNotFound),
              HasSubstr("no/such.tar"));
}

TEST(ShardManifest, ReadsBackWhatItWrites) {
  ShardManifest manifest;
  manifest.complete = false;
  manifest.plan = "a\nplan \xff";
  manifest.shards = {{"10_500/data-00000.tar", 3, 4096, "0123456789abcdef"}};
  manifest.skipped = {{"length in no group", 7, "'1' has length 3"}};
  const auto back = ParseShardManifest(manifest.ToJson());
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->shards, manifest.shards);
  EXPECT_EQ(back->skipped, manifest.skipped);
  EXPECT_FALSE(back->complete);
  EXPECT_EQ(ParseShardManifest("{}").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ParseShardManifest(R"({"format":2})").status().code(),
            absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace cistern::data
