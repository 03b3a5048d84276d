// The shuffle buffer: exact, resumable, and how far from a uniform shuffle it is.
#include "worker/data/source/shuffled_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "common/base/permutation.h"
#include "test/worker/data/sample_list.h"

namespace cistern::data {
namespace {

std::vector<float> Order(const std::vector<Sample>& samples, const ShuffleBuffer& options,
                         uint64_t skip = 0, size_t step = 100, size_t source_step = 64) {
  const auto reader =
      Shuffled(std::make_unique<ListReader>(samples, source_step), kSlots.size(), options);
  SampleBlock block;
  block.Reset(kSlots.size());
  EXPECT_TRUE(reader->Skip(skip, &block).ok());
  while (true) {
    const auto got = reader->Read(step, &block);
    EXPECT_TRUE(got.ok());
    if (*got == 0) return block.label;
  }
}

TEST(ShuffledReader, ReturnsEverySampleOnceWithAllItsFields) {
  const std::vector<Sample> samples = MakeSamples(3000);
  const auto reader = Shuffled(std::make_unique<ListReader>(samples, 50), kSlots.size(), {70, 1});
  SampleBlock block;
  block.Reset(kSlots.size());
  while (*reader->Read(33, &block) > 0) {
  }
  ASSERT_EQ(block.size, 3000u);
  std::vector<bool> seen(3000);
  for (size_t i = 0; i < block.size; ++i) {
    const size_t number = static_cast<size_t>(block.label[i]);
    ASSERT_FALSE(seen[number]);
    seen[number] = true;
    EXPECT_EQ(block.dense[2 * i], samples[number].dense[0]);
    for (size_t input = 0; input < kSlots.size(); ++input) {
      const SparseColumn& column = block.sparse[input];
      for (size_t slot = 0; slot < kSlots[input]; ++slot) {
        const uint32_t* offsets = column.offsets.data() + i * kSlots[input] + slot;
        EXPECT_EQ(
            std::vector<Key>(column.keys.begin() + offsets[0], column.keys.begin() + offsets[1]),
            samples[number].keys[input][slot]);
      }
    }
  }
}

TEST(ShuffledReader, ContinuesExactlyAfterAnyNumberOfSamples) {
  const std::vector<Sample> samples = MakeSamples(2500);
  for (const uint64_t buffer : {1, 10, 300, 2500, 9999}) {
    const ShuffleBuffer options = {buffer, 5, 2, 1};
    const std::vector<float> whole = Order(samples, options);
    for (const uint64_t skip : {1, 299, 1000, 2490, 2500, 2600}) {
      const size_t from = std::min<size_t>(skip, whole.size());
      // In other steps, too.
      EXPECT_EQ(Order(samples, options, skip, 7, 1000),
                std::vector<float>(whole.begin() + from, whole.end()));
    }
  }
}

TEST(ShuffledReader, OrderDependsOnSeedEpochAndStream) {
  const std::vector<Sample> samples = MakeSamples(500);
  const std::vector<float> order = Order(samples, {50, 1, 0, 0});
  EXPECT_EQ(Order(samples, {50, 1, 0, 0}), order);
  EXPECT_NE(Order(samples, {50, 2, 0, 0}), order);
  EXPECT_NE(Order(samples, {50, 1, 1, 0}), order);
  EXPECT_NE(Order(samples, {50, 1, 0, 1}), order);
}

TEST(ShuffledReader, ABufferOfOneKeepsTheOrder) {
  std::vector<float> expected(500);
  std::iota(expected.begin(), expected.end(), 0.0f);
  EXPECT_EQ(Order(MakeSamples(500), {1, 1}), expected);
}

// The mean distance between the place of a sample in the data and its place in the order, as a
// share of that of a uniform shuffle, which is a third of the number of samples.
double Spread(const std::vector<float>& order) {
  double sum = 0;
  for (size_t i = 0; i < order.size(); ++i) sum += std::abs(order[i] - static_cast<float>(i));
  return sum / static_cast<double>(order.size()) / (static_cast<double>(order.size()) / 3);
}

// Files of 1/100 of the data in a random order, then a buffer of 1 % of the data: what a training
// on 100 shards does. Measured: 0.02 for the buffer alone and 1.0 for both, where the uniform
// shuffle has 1; neighbours in the data end 1.2 % of the data apart, where the uniform shuffle has
// 33 %.
TEST(ShuffledReader, WithShuffledFilesABufferOf1PercentSpreadsAsAUniformShuffle) {
  constexpr size_t kSamples = 20000, kFiles = 100, kPerFile = kSamples / kFiles;
  const std::vector<Sample> samples = MakeSamples(kSamples, 10);
  std::vector<Sample> by_files;
  for (const size_t file : Permutation(3, 0, kFiles)) {
    by_files.insert(by_files.end(), samples.begin() + file * kPerFile,
                    samples.begin() + (file + 1) * kPerFile);
  }
  const double buffer_only = Spread(Order(samples, {kPerFile, 3}));
  const std::vector<float> order = Order(by_files, {kPerFile, 3});
  const double both = Spread(order);
  std::vector<size_t> place(kSamples);
  for (size_t i = 0; i < kSamples; ++i) place[static_cast<size_t>(order[i])] = i;
  double apart = 0;  // places between samples that are neighbours in the data
  for (size_t i = 1; i < kSamples; ++i) {
    apart += std::abs(static_cast<double>(place[i]) - static_cast<double>(place[i - 1]));
  }
  apart /= static_cast<double>(kSamples) * kSamples;
  printf("spread: buffer %.4f, files and buffer %.4f; neighbours apart %.4f (uniform 0.3333)\n",
         buffer_only, both, apart);
  EXPECT_LT(buffer_only, 0.1);
  EXPECT_NEAR(both, 1, 0.15);
  EXPECT_GT(apart, 0.005);
}

}  // namespace
}  // namespace cistern::data
