// Packing into tar shards: groups by length, limits of a shard, resuming after a kill, and that
// packed samples read as the text converts.
#include "worker/data/prepare/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/worker/data/scratch.h"
#include "worker/data/format/file_list.h"
#include "worker/data/prepare/convert.h"

namespace cistern::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Csv(int rows) {
  std::string text = "label,I1,C1,C2\n";
  for (int i = 0; i < rows; ++i) {
    absl::StrAppend(&text, i % 2, ",", i, ".5,u", i % 7, ",");
    for (int k = 0; k < i % 5; ++k) absl::StrAppend(&text, k > 0 ? "|" : "", "g", k);
    text += "\n";
  }
  return text;
}

PackOptions Options(const Scratch& scratch, int rows = 100) {
  PackOptions options;
  options.input = {scratch.Write("in.csv", Csv(rows))};
  options.multi = {"C2"};
  options.out = scratch.Path("out");
  options.samples_per_shard = 30;
  return options;
}

std::vector<std::string> Names(const ShardManifest& manifest) {
  std::vector<std::string> names;
  for (const auto& shard : manifest.shards) {
    names.push_back(absl::StrCat(shard.name, " ", shard.samples));
  }
  return names;
}

absl::StatusOr<SampleBlock> ReadAll(const DataSetOptions& options) {
  CISTERN_ASSIGN_OR_RETURN(const auto reader, OpenDataSet(options));
  SampleBlock block;
  block.Reset(options.shape.slot_nums.size());
  while (true) {
    CISTERN_ASSIGN_OR_RETURN(const size_t got, reader->Read(1000, &block));
    if (got == 0) return block;
  }
}

TEST(Pack, RefusesTextWhoseFieldsHoldSeveralFeatures) {
  const Scratch scratch;
  PackOptions options = Options(scratch);
  options.input = {scratch.Write("in.ffm", "1 0:3:1 0:4:1\n")};
  options.format = TextFormat::kLibffm;
  options.multi = {};
  const absl::Status packed = Pack(options).status();
  EXPECT_EQ(packed.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(packed.message()), HasSubstr("cannot pack text of the format libffm"));
}

TEST(Pack, PackedTextReadsAsConvertedText) {
  const Scratch scratch;
  const PackOptions options = Options(scratch);
  const auto packed = Pack(options);
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_THAT(Names(packed->manifest), ElementsAre("data-00000.tar 30", "data-00001.tar 30",
                                                   "data-00002.tar 30", "data-00003.tar 10"));
  ConvertOptions convert;
  convert.input = options.input;
  convert.out = scratch.Path("norm");
  convert.dense = {"I1"};
  convert.multi = {"C2"};
  for (const int bits : {32, 64}) {
    convert.key_bits = bits;
    convert.overwrite = true;
    ASSERT_TRUE(Convert(convert).ok());
    DataSetOptions norm, tar;
    norm.source = scratch.Path("norm/file_list.txt");
    norm.check = NormCheck::kSum;
    norm.shape = tar.shape = {1, 1, {2}, {0}};
    norm.wide_keys = tar.wide_keys = bits == 64;
    tar.format = DataFormat::kTar;
    tar.source = scratch.Path("out/data-{00000..00003}.tar");
    tar.columns = {{"label"}, {"I1"}, {"C1", "C2"}};
    const auto expected = ReadAll(norm), read = ReadAll(tar);
    ASSERT_TRUE(expected.ok() && read.ok()) << expected.status() << read.status();
    EXPECT_EQ(read->size, 100u);
    EXPECT_EQ(read->label, expected->label);
    EXPECT_EQ(read->dense, expected->dense);
    EXPECT_EQ(read->sparse[0].offsets, expected->sparse[0].offsets);
    EXPECT_EQ(read->sparse[0].keys, expected->sparse[0].keys);
    // A data set packs too, and keeps its keys and floats.
    PackOptions again;
    again.data = norm;
    again.out = scratch.Path("again");
    again.overwrite = true;
    const auto repacked = Pack(again);
    ASSERT_TRUE(repacked.ok()) << repacked.status();
    tar.source = repacked->file_list;
    tar.columns = {};
    const auto back = ReadAll(tar);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->dense, expected->dense);
    EXPECT_EQ(back->sparse[0].keys, expected->sparse[0].keys);
  }
}

TEST(Pack, ShardsOfADataSetKeepTheWeightsOfKeys) {
  const Scratch scratch;
  DataSetOptions data;
  data.wide_keys = true;
  data.shape = {1, 0, {1, 1}, {}, false, {false, true}};
  const auto bits = [](float weight) { return uint64_t{std::bit_cast<uint32_t>(weight)}; };
  data.source = scratch.Write(
      "a.norm", NormHeaderBytes(false, 2, 1, 0, 3) +
                    NormSampleBytes(true, {1}, {{4}, {5, 6}, {bits(0.1f), bits(-1e-30f)}}) +
                    NormSampleBytes(true, {0}, {{}, {7}, {}}));
  PackOptions options;
  options.data = data;
  options.out = scratch.Path("out");
  ASSERT_TRUE(Pack(options).ok());
  DataSetOptions tar = data;
  tar.format = DataFormat::kTar;
  tar.source = scratch.Path("out/file_list.txt");
  const auto packed = ReadAll(tar), read = ReadAll(data);
  ASSERT_TRUE(packed.ok() && read.ok()) << packed.status() << read.status();
  EXPECT_EQ(packed->sparse[1].keys, read->sparse[1].keys);
  EXPECT_THAT(packed->sparse[1].weights, ElementsAre(0.1f, -1e-30f, 1));
  EXPECT_EQ(read->sparse[1].weights, packed->sparse[1].weights);
}

TEST(Pack, LengthGroupsAreFoldersAndTheRestIsReported) {
  const Scratch scratch;
  PackOptions options = Options(scratch);
  options.groups = {{1, 3}, {3, 4}};
  options.length_column = "C2";
  const auto packed = Pack(options);
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_THAT(Names(packed->manifest), ElementsAre("1_3/data-00000.tar 30", "1_3/data-00001.tar 10",
                                                   "3_4/data-00000.tar 20"));
  ASSERT_EQ(packed->manifest.skipped.size(), 1u);
  EXPECT_EQ(packed->manifest.skipped[0].cause, "length in no group");
  EXPECT_EQ(packed->manifest.skipped[0].samples, 40u);
  EXPECT_EQ(ReadFileList(packed->file_list)->size(), 3u);
  options.groups = {{1, 3}, {2, 4}};
  EXPECT_THAT(std::string(Pack(options).status().message()), HasSubstr("overlap"));
}

TEST(Pack, ClosesShardsByBytes) {
  const Scratch scratch;
  PackOptions options = Options(scratch);
  options.bytes_per_shard = 11 * 1024;  // each sample takes 1024, and the end of a shard too
  const auto packed = Pack(options);
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_EQ(packed->manifest.shards.size(), 10u);
  for (const auto& shard : packed->manifest.shards) {
    EXPECT_EQ(shard.bytes, options.bytes_per_shard);
    EXPECT_EQ(std::filesystem::file_size(options.out + "/" + shard.name), shard.bytes);
  }
}

TEST(Pack, ContinuesAfterAStopWithTheSameBytes) {
  const Scratch scratch;
  PackOptions options = Options(scratch, 5000);
  const auto whole = Pack(options);
  ASSERT_TRUE(whole.ok()) << whole.status();
  options.out = scratch.Path("stopped");
  for (const uint64_t stop : {1024, 3072}) {  // a second stop comes while the first is continued
    EXPECT_EQ(Pack(options, [stop](uint64_t samples) { return samples < stop; }).status().code(),
              absl::StatusCode::kCancelled);
    EXPECT_FALSE(ReadShardManifest(options.out + "/manifest.json")->complete);
  }
  // What another process would have left.
  scratch.Write("stopped/data-00160.tar.tmp", "half a shard");
  const auto rest = Pack(options);
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_GE(rest->resumed_shards, 90u);
  EXPECT_EQ(rest->manifest.shards, whole->manifest.shards);
  for (const auto& shard : whole->manifest.shards) {
    EXPECT_EQ(scratch.Read("stopped/" + shard.name), scratch.Read("out/" + shard.name));
  }
  EXPECT_EQ(scratch.Read("stopped/manifest.json").size(), scratch.Read("out/manifest.json").size());
}

TEST(Pack, RefusesFoldersThatItMustNotContinue) {
  const Scratch scratch;
  PackOptions options = Options(scratch);
  ASSERT_TRUE(Pack(options).ok());
  EXPECT_THAT(std::string(Pack(options).status().message()), HasSubstr("overwrite it"));
  options.overwrite = true;
  options.samples_per_shard = 60;
  const auto again = Pack(options);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_THAT(Names(again->manifest), ElementsAre("data-00000.tar 60", "data-00001.tar 40"));
  EXPECT_FALSE(std::filesystem::exists(options.out + "/data-00002.tar"));
  options.overwrite = false;
  options.out = scratch.Path("stopped");
  scratch.Write("other/x", "x");
  options.out = scratch.Path("other");
  EXPECT_THAT(std::string(Pack(options).status().message()), HasSubstr("holds no shards"));
}

TEST(Pack, BadRowsStopOrAreCountedByCause) {
  const Scratch scratch;
  PackOptions options = Options(scratch);
  options.input = {
      scratch.Write("bad.csv", "label,I1,C1,C2\n1,2,a,b\n1,2,3\n0,1,\xff,c\n1,1,1,1,1\n0,1,z,y\n")};
  EXPECT_THAT(std::string(Pack(options).status().message()), HasSubstr("line 3: has 3 fields"));
  options.skip_bad = true;
  options.out = scratch.Path("skipped");
  const auto packed = Pack(options);
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_EQ(packed->manifest.samples(), 2u);
  ASSERT_EQ(packed->manifest.skipped.size(), 2u);
  EXPECT_EQ(packed->manifest.skipped[0].cause, "wrong number of fields");
  EXPECT_EQ(packed->manifest.skipped[0].samples, 2u);
  EXPECT_THAT(packed->manifest.skipped[1].first, HasSubstr("bad.csv: line 4: column 'C1'"));
}

TEST(Pack, ADataSetIsPackedByItsModel) {
  const Scratch scratch;
  PackOptions options = Options(scratch);
  options.input = {scratch.Write("a.norm", std::string(64, '\0'))};
  EXPECT_THAT(std::string(Pack(options).status().message()),
              HasSubstr("name the model that reads it"));
  options.input.clear();
  options.data.emplace().source = scratch.Path("a.norm");
  options.skip_bad = true;
  EXPECT_THAT(std::string(Pack(options).status().message()), HasSubstr("rows of text"));
}

}  // namespace
}  // namespace cistern::data
