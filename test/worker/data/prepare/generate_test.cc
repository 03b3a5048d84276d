// Generated data: the same seed gives the same samples in all formats.
#include "worker/data/prepare/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "test/worker/data/scratch.h"
#include "worker/data/format/parquet_reader.h"

namespace cistern::data {
namespace {

using testing::HasSubstr;

GenerateOptions Options(const std::string& out, DataFormat format) {
  GenerateOptions options;
  options.out = out;
  options.data.format = format;
  options.data.shape = {2, 3, {2, 1}, {0, 0}};
  options.data.slot_sizes = {1000, 7, 50};
  options.data.wide_keys = true;
  options.data.float_label_dense = true;
  options.train_samples = 5000;
  options.test_samples = 500;
  options.samples_per_file = 1200;
  return options;
}

// The samples of `source` as a model sees them.
SampleBlock ReadAll(const GenerateOptions& options, const std::string& source) {
  DataSetOptions data = options.data;
  data.source = source;
  if (data.format == DataFormat::kNorm) data.slot_sizes.clear();
  SampleBlock block;
  block.Reset(data.shape.slot_nums.size());
  auto reader = OpenDataSet(data);
  EXPECT_TRUE(reader.ok()) << reader.status();
  if (!reader.ok()) return block;
  for (size_t got = 1; got > 0;) {
    auto read = (*reader)->Read(777, &block);
    EXPECT_TRUE(read.ok()) << read.status();
    got = read.ok() ? *read : 0;
  }
  return block;
}

SampleBlock Made(const GenerateOptions& options) {
  const auto summary = Generate(options);
  EXPECT_TRUE(summary.ok()) << summary.status();
  return summary.ok() ? ReadAll(options, summary->train_source) : SampleBlock();
}

void ExpectSame(const SampleBlock& seen, const SampleBlock& expected) {
  EXPECT_EQ(seen.size, expected.size);
  EXPECT_EQ(seen.label, expected.label);
  EXPECT_EQ(seen.dense, expected.dense);
  for (size_t i = 0; i < expected.sparse.size(); ++i) {
    EXPECT_EQ(seen.sparse[i].offsets, expected.sparse[i].offsets);
    EXPECT_EQ(seen.sparse[i].keys, expected.sparse[i].keys);
  }
}

TEST(Generate, AllFormatsHoldTheSameSamples) {
  Scratch scratch;
  const SampleBlock norm = Made(Options(scratch.Path("norm"), DataFormat::kNorm));
  EXPECT_EQ(norm.size, 5000u);
  ExpectSame(Made(Options(scratch.Path("raw"), DataFormat::kRaw)), norm);
  if (ParquetLibrary().empty()) GTEST_SKIP() << "this build has no Parquet";
  ExpectSame(Made(Options(scratch.Path("parquet"), DataFormat::kParquet)), norm);
}

TEST(Generate, TheSameSeedWritesTheSameBytes) {
  Scratch scratch;
  GenerateOptions options = Options(scratch.Path("a"), DataFormat::kRaw);
  ASSERT_TRUE(Generate(options).ok());
  options.out = scratch.Path("b");
  ASSERT_TRUE(Generate(options).ok());
  EXPECT_EQ(scratch.Read("a/train/data.bin"), scratch.Read("b/train/data.bin"));
  EXPECT_NE(scratch.Read("a/train/data.bin").substr(0, 28 * 500), scratch.Read("a/test/data.bin"));
  options.overwrite = true;
  options.seed = 2;
  ASSERT_TRUE(Generate(options).ok());
  EXPECT_NE(scratch.Read("a/train/data.bin"), scratch.Read("b/train/data.bin"));
}

TEST(Generate, RawFilesOfIntegersReadBack) {
  Scratch scratch;
  GenerateOptions options = Options(scratch.Path("raw"), DataFormat::kRaw);
  options.data.float_label_dense = false;
  const SampleBlock block = Made(options);
  ASSERT_EQ(block.size, 5000u);
  for (float x : block.dense) {
    const float whole = std::exp(x) - 1;
    EXPECT_NEAR(whole, std::round(whole), 1e-3);
    EXPECT_LT(whole, 100);
  }
}

TEST(Generate, KeysFollowTheBoundedParetoDistribution) {
  Scratch scratch;
  GenerateOptions options = Options(scratch.Path("power"), DataFormat::kRaw);
  options.train_samples = 40000;
  const SampleBlock power = Made(options);
  size_t first = 0, half = 0;
  for (size_t k = 0; k < power.sparse[0].keys.size(); k += 2) {
    first += power.sparse[0].keys[k] == 0;
    half += power.sparse[0].keys[k] < 500;
  }
  // P(y < x) = (1 - x^(1-a)) / (1 - n^(1-a)); key 0 is y in [1, 1.5).
  const auto share = [](double x) { return (1 - std::pow(x, -0.2)) / (1 - std::pow(1000, -0.2)); };
  EXPECT_NEAR(static_cast<double>(first) / 40000, share(1.5), 0.01);
  EXPECT_NEAR(static_cast<double>(half) / 40000, share(500.5), 0.01);

  options.out = scratch.Path("uniform");
  options.keys = KeyDistribution::kUniform;
  const SampleBlock uniform = Made(options);
  std::map<Key, size_t> seen;
  for (size_t k = 1; k < uniform.sparse[0].keys.size(); k += 2) ++seen[uniform.sparse[0].keys[k]];
  EXPECT_EQ(seen.size(), 7u);
  for (const auto& [key, count] : seen) EXPECT_NEAR(static_cast<double>(count), 40000 / 7.0, 400);
}

TEST(Generate, NormSlotsHoldUpToMaxNnzKeys) {
  Scratch scratch;
  GenerateOptions options = Options(scratch.Path("norm"), DataFormat::kNorm);
  options.max_nnz = 4;
  const SampleBlock block = Made(options);
  std::map<uint32_t, size_t> sizes;
  for (size_t i = 0; i + 1 < block.sparse[1].offsets.size(); ++i) {
    ++sizes[block.sparse[1].offsets[i + 1] - block.sparse[1].offsets[i]];
  }
  EXPECT_EQ(sizes.size(), 4u);
  EXPECT_EQ(sizes.begin()->first, 1u);
  for (Key key : block.sparse[1].keys) EXPECT_TRUE(key >= 1007 && key < 1057) << key;
}

TEST(Generate, LabelsDependMoreOnKeysWithMoreSignal) {
  Scratch scratch;
  // The mean over the keys of slot 1: how far their mean label is from the mean of all labels.
  const auto spread = [&](double signal, const std::string& name) {
    GenerateOptions options = Options(scratch.Path(name), DataFormat::kRaw);
    options.signal = signal;
    options.click_rate = 0.5;
    options.keys = KeyDistribution::kUniform;
    const SampleBlock block = Made(options);
    std::map<Key, std::pair<double, double>> by_key;
    for (size_t i = 0; i < block.size; ++i) {
      auto& [sum, count] = by_key[block.sparse[0].keys[2 * i + 1]];
      sum += block.label[2 * i];
      ++count;
    }
    double far = 0;
    for (const auto& [key, sums] : by_key) far += std::abs(sums.first / sums.second - 0.5);
    return far / 7;
  };
  EXPECT_LT(spread(0, "coins"), 0.03);
  EXPECT_GT(spread(3, "signal"), 0.08);
}

TEST(Generate, RefusesWhatAFormatCannotHold) {
  Scratch scratch;
  GenerateOptions options = Options(scratch.Path("raw"), DataFormat::kRaw);
  options.max_nnz = 2;
  EXPECT_THAT(std::string(Generate(options).status().message()), HasSubstr("only Norm"));
  options = Options(scratch.Path("raw"), DataFormat::kRaw);
  options.data.slot_sizes = {10, 10};
  EXPECT_THAT(std::string(Generate(options).status().message()), HasSubstr("3 slots"));
  options = Options(scratch.Path("raw"), DataFormat::kRaw);
  options.data.slot_sizes[0] = uint64_t{1} << 40;
  options.keys = KeyDistribution::kUniform;
  EXPECT_THAT(std::string(Generate(options).status().message()), HasSubstr("32 bits"));
  EXPECT_FALSE(std::filesystem::exists(scratch.Path("raw")));
}

}  // namespace
}  // namespace cistern::data
