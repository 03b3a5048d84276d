#include "worker/data/format/key_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "test/support/temp_folder.h"
#include "test/worker/data/scratch.h"
#include "worker/data/format/data_set.h"
#include "worker/data/format/norm_writer.h"
#include "worker/data/format/sample_set_writer.h"
#include "worker/data/format/tar_shard_writer.h"

namespace cistern::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two inputs of 2 and 1 slots; the keys of the first have weights.
DataSetOptions Options(const std::string& source, bool wide) {
  DataSetOptions options;
  options.source = source;
  options.check = NormCheck::kSum;
  options.wide_keys = wide;
  options.shape = {1, 0, {2, 1}, {}, false, {true, false}};
  return options;
}

// Two samples; all weights of the second one are 1.
SampleBlock TwoSamples() {
  SampleBlock block;
  block.Reset(2);
  block.size = 2;
  block.label = {1, 0};
  block.sparse[0] = {{0, 2, 2, 3, 4}, {5, 6, 7, 8}, {0.5f, -3, 1, 1}};
  block.sparse[1] = {{0, 1, 3}, {9, 10, 11}, {}};
  return block;
}

class KeyWeights : public testing::TestWithParam<bool> {
 protected:
  absl::Status Read(const std::string& path, SampleBlock* block) {
    block->Reset(2);
    auto reader = OpenDataSet(Options(path, GetParam()));
    if (!reader.ok()) return reader.status();
    return (*reader)->Read(10, block).status();
  }
  void Write(const SampleBlock& block, const std::string& name) {
    auto writer = NormWriter::Create(Disk(), scratch_.Path(name),
                                     {NormCheck::kSum, GetParam(), Options("", false).shape});
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE((*writer)->Append(block).ok());
    ASSERT_TRUE((*writer)->Close().ok());
  }
  // A file whose slots, of both inputs and the weights, are these.
  std::string File(const std::string& name, const std::vector<std::vector<uint64_t>>& slots) {
    const std::string sample = NormSampleBytes(GetParam(), {1}, slots);
    return scratch_.Write(name, NormHeaderBytes(false, 1, 1, 0, 5) + sample);
  }
  std::string ErrorOf(const std::string& path) {
    DataSetOptions options = Options(path, GetParam());
    options.check = NormCheck::kNone;
    SampleBlock block;
    block.Reset(2);
    const absl::Status status = (*OpenDataSet(options))->Read(10, &block).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_EQ(block.size, 0u);
    EXPECT_TRUE(block.sparse[0].keys.empty());
    return std::string(status.message());
  }
  Scratch scratch_;
};

TEST_P(KeyWeights, AreReadAsTheyWereWritten) {
  Write(TwoSamples(), "a.norm");
  SampleBlock block;
  ASSERT_TRUE(Read(scratch_.Path("a.norm"), &block).ok());
  EXPECT_EQ(block.size, 2u);
  EXPECT_EQ(block.label, TwoSamples().label);
  EXPECT_EQ(block.sparse[0].offsets, TwoSamples().sparse[0].offsets);
  EXPECT_EQ(block.sparse[0].keys, TwoSamples().sparse[0].keys);
  EXPECT_EQ(block.sparse[0].weights, TwoSamples().sparse[0].weights);
  EXPECT_EQ(block.sparse[1].keys, TwoSamples().sparse[1].keys);
  EXPECT_TRUE(block.sparse[1].weights.empty());
}

// The bytes that docs/formats.md describes.
TEST_P(KeyWeights, AreSlotsOfBitsAfterAllInputs) {
  Write(TwoSamples(), "a.norm");
  const std::string first =
      NormSampleBytes(GetParam(), {1}, {{5, 6}, {}, {9}, {0x3F000000, 0xC0400000}, {}});
  EXPECT_THAT(scratch_.Read("a.norm"), HasSubstr(first));
  const std::string second = NormSampleBytes(GetParam(), {0}, {{7}, {8}, {10, 11}, {}, {}});
  EXPECT_THAT(scratch_.Read("a.norm"), HasSubstr(second));
  // A program that knows nothing of weights refuses the file.
  DataSetOptions without = Options(scratch_.Path("a.norm"), GetParam());
  without.shape.key_weights.clear();
  EXPECT_THAT(std::string(OpenDataSet(without).status().message()), HasSubstr("slot_num"));
  // So is a file without weights refused where they are expected.
  const std::string plain = scratch_.Write(
      "b.norm", NormHeaderBytes(false, 1, 1, 0, 3) + NormSampleBytes(false, {1}, {{1}, {}, {2}}));
  DataSetOptions with = Options(plain, GetParam());
  with.check = NormCheck::kNone;
  EXPECT_THAT(std::string(OpenDataSet(with).status().message()),
              HasSubstr("with weights of keys (cistern.key_weights)"));
}

TEST_P(KeyWeights, RefusesWeightsThatFitNoKeysOrAreNotFinite) {
  const std::string count = File("count.norm", {{5, 6}, {}, {9}, {0x3F000000}, {}});
  EXPECT_THAT(ErrorOf(count),
              HasSubstr("count.norm: record 0: slot 0 of input 0: 2 keys have 1 weights"));
  const std::string none = File("none.norm", {{5}, {}, {9}, {}, {0x3F000000}});
  EXPECT_THAT(ErrorOf(none), HasSubstr("slot 1 of input 0: 0 keys have 1 weights"));
  for (const uint64_t bits : {0x7FC00000, 0x7F800000}) {
    const std::string odd = File("odd.norm", {{5, 6}, {}, {9}, {0x3F800000, bits}, {}});
    EXPECT_THAT(ErrorOf(odd), HasSubstr("slot 0 of input 0: weight 1 is not a finite float"));
  }
}

TEST_P(KeyWeights, ASecondBadSampleLeavesTheFirst) {
  const std::string path = scratch_.Write(
      "a.norm", NormHeaderBytes(false, 2, 1, 0, 5) +
                    NormSampleBytes(GetParam(), {1}, {{5}, {}, {9}, {0x3F000000}, {}}) +
                    NormSampleBytes(GetParam(), {0}, {{5}, {}, {9}, {1, 2}, {}}));
  DataSetOptions options = Options(path, GetParam());
  options.check = NormCheck::kNone;
  SampleBlock block;
  block.Reset(2);
  const absl::Status status = (*OpenDataSet(options))->Read(10, &block).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("a.norm: record 1"));
  EXPECT_THAT(block.label, ElementsAre(1));
  EXPECT_THAT(block.sparse[0].weights, ElementsAre(0.5f));
}

TEST_P(KeyWeights, StayBesideTheirKeysWhenBlocksAreCutAndJoined) {
  SampleBlock block = TwoSamples(), other = TwoSamples();
  block.Append(other, 1, 1);
  EXPECT_THAT(block.sparse[0].weights, ElementsAre(0.5f, -3, 1, 1, 1, 1));
  block.Truncate(1);
  EXPECT_THAT(block.sparse[0].weights, ElementsAre(0.5f, -3));
  block.Reset(2);
  EXPECT_TRUE(block.sparse[0].weights.empty());
}

// One key and one weight a slot, as in Raw and Parquet files.
SampleBlock OneKeyASlot() {
  SampleBlock block;
  block.Reset(2);
  block.size = 2;
  block.label = {1, 0};
  block.sparse[0] = {{0, 1, 2, 3, 4}, {5, 6, 7, 8}, {0.5f, -3, 1, 0}};
  block.sparse[1] = {{0, 1, 2}, {9, 10}, {}};
  return block;
}

absl::StatusOr<SampleBlock> ReadSet(const DataSetOptions& options) {
  CISTERN_ASSIGN_OR_RETURN(const auto reader, OpenDataSet(options));
  SampleBlock block;
  block.Reset(2);
  CISTERN_RETURN_IF_ERROR(reader->Read(10, &block).status());
  return block;
}

TEST(KeyWeightsOfRaw, FollowTheKeysOfASampleAsFloats) {
  const Scratch scratch;
  DataSetOptions options = Options("", false);
  options.format = DataFormat::kRaw;
  options.slot_sizes = {10, 20, 30};
  const auto writer = CreateSampleSetWriter(Disk(), scratch.Path("."), options, 0);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Append(OneKeyASlot()).ok());
  SampleBlock odd = OneKeyASlot();
  odd.sparse[0].weights[3] = std::nanf("");
  EXPECT_TRUE(absl::IsDataLoss((*writer)->Append(odd)));
  ASSERT_TRUE((*writer)->Close().ok());
  const std::string first = Bytes(1) + Bytes(5) + Bytes(6) + Bytes(9) + Bytes(0.5f) + Bytes(-3.0f);
  const std::string second = Bytes(0) + Bytes(7) + Bytes(8) + Bytes(10) + Bytes(1.0f) + Bytes(0.0f);
  EXPECT_EQ(scratch.Read("data.bin"), first + second);
  options.source = scratch.Path("data.bin");
  const auto block = ReadSet(options);
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_EQ(block->sparse[0].weights, OneKeyASlot().sparse[0].weights);
  EXPECT_THAT(block->sparse[0].keys, ElementsAre(5, 16, 7, 18));  // offset by slot_sizes
  EXPECT_THAT(block->sparse[1].keys, ElementsAre(39, 40));
  EXPECT_TRUE(block->sparse[1].weights.empty());
  for (const uint32_t bits : {0x7FC00000u, 0x7F800000u, 0xFFFFFFFFu}) {
    options.source = scratch.Write("odd.bin", first.substr(0, 20) + Bytes(bits));
    EXPECT_THAT(std::string(ReadSet(options).status().message()),
                HasSubstr("odd.bin: record 0: slot 1 of input 0: weight 0 is not a finite float"));
  }
  options.source = scratch.Write("short.bin", first.substr(0, 16));  // without weights
  EXPECT_THAT(std::string(ReadSet(options).status().message()),
              HasSubstr("3 slots with weights of keys (cistern.key_weights) make samples of 24"));
}

// The objects of docs/formats.md.
TEST(KeyWeightsOfTar, AreFieldsBesideTheTokens) {
  const Scratch scratch;
  const auto shard = [&](const std::string& json) {
    auto writer = TarShardWriter::Create(Disk(), scratch.Path("a.tar"));
    EXPECT_TRUE((*writer)->Append("0.json", json).ok());
    EXPECT_TRUE((*writer)->Close().ok());
    return scratch.Path("a.tar");
  };
  DataSetOptions options = Options("", true);
  options.format = DataFormat::kTar;
  const auto read = [&](const std::string& json) {
    options.source = shard(json);
    return ReadSet(options);
  };
  const auto block =
      read(R"({"label":1,"slots":[[5,null,6,""],7,[8,9]],"weights":[[0.5,9,"-3",9],null]})");
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_THAT(block->sparse[0].offsets, ElementsAre(0, 2, 3));
  EXPECT_THAT(block->sparse[0].weights, ElementsAre(0.5f, -3, 1));
  EXPECT_THAT(block->sparse[1].keys, ElementsAre(8, 9));
  EXPECT_TRUE(block->sparse[1].weights.empty());
  const auto one = read(R"({"label":1,"slots":[5,[],8],"weights":[0.25,[]]})");
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_THAT(one->sparse[0].weights, ElementsAre(0.25f));
  const auto error = [&](const std::string& weights) {
    const auto bad = read(R"({"label":1,"slots":[[5,6],[],8])" + weights + "}");
    EXPECT_TRUE(absl::IsDataLoss(bad.status())) << bad.status();
    return std::string(bad.status().message());
  };
  EXPECT_THAT(error(""), HasSubstr("field 'weights' is missing"));
  EXPECT_THAT(error(R"(,"weights":[[1,2]])"), HasSubstr("is not an array of 2 slots"));
  EXPECT_THAT(error(R"(,"weights":[[1],[]])"), HasSubstr("holds 1 weights for 2 tokens"));
  EXPECT_THAT(error(R"(,"weights":[[1,2],[3]])"), HasSubstr("holds 1 weights for 0 tokens"));
  EXPECT_THAT(error(R"(,"weights":[[1,null],[]])"), HasSubstr("not a number"));
  EXPECT_THAT(error(R"(,"weights":[[1,1e39],[]])"), HasSubstr("finite float"));
  options.columns = {{"label"}, {}, {"a", "b", "c"}, {"w", "v"}};
  const auto named = read(R"({"label":1,"a":[5,6],"w":[2,4],"b":7,"v":-1,"c":8})");
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_THAT(named->sparse[0].weights, ElementsAre(2, 4, -1));
}

INSTANTIATE_TEST_SUITE_P(Keys, KeyWeights, testing::Bool());

}  // namespace
}  // namespace cistern::data
