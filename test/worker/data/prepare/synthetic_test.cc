// Synthetic data: click rates counted on the training data reach the best AUC, but not more.
#include "worker/data/prepare/synthetic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <map>

#include "test/worker/data/scratch.h"

namespace cistern::data {
namespace {

SampleBlock ReadAll(const SyntheticOptions& options, const SyntheticSummary& summary,
                    const std::string& list) {
  const NormOptions norm = {list, options.check, options.wide_keys, summary.shape, {}};
  SampleBlock block;
  block.Reset(1);
  auto reader = OpenNorm(norm);
  EXPECT_TRUE(reader.ok()) << reader.status();
  while (*(*reader)->Read(10000, &block) > 0) {
  }
  return block;
}

SyntheticOptions Small(const Scratch& scratch) {
  SyntheticOptions options;
  options.out = scratch.Path("synthetic");
  options.overwrite = true;
  options.train_samples = 100000;
  options.test_samples = 20000;
  options.slots = 2;
  options.dense = 0;
  options.keys_per_slot = 5;
  return options;
}

// Area under the ROC curve by its definition: counts pairs of scores.
double PairAuc(const std::map<double, std::pair<double, double>>& by_score) {
  double wins = 0, positives = 0, negatives = 0;
  for (const auto& [score, count] : by_score) {
    positives += count.first;
    negatives += count.second;
    for (const auto& [other, other_count] : by_score) {
      if (other < score) wins += count.first * other_count.second;
      if (other == score) wins += count.first * other_count.second / 2;
    }
  }
  return wins / (positives * negatives);
}

// AUC on the test data if a sample's score is the click rate of its keys in the training data.
double CounterAuc(const SampleBlock& train, const SampleBlock& test, size_t slots) {
  using Cell = std::vector<Key>;
  const auto cell = [slots](const SampleBlock& block, size_t sample) {
    const Key* keys = block.sparse[0].keys.data() + sample * slots;
    return Cell(keys, keys + slots);
  };
  std::map<Cell, std::pair<double, double>> counts;
  for (size_t i = 0; i < train.size; ++i) {
    counts[cell(train, i)].first += train.label[i];
    counts[cell(train, i)].second += 1;
  }
  std::map<double, std::pair<double, double>> by_score;
  for (size_t i = 0; i < test.size; ++i) {
    const auto& [clicks, shows] = counts[cell(test, i)];
    auto& count = by_score[clicks / shows];
    (test.label[i] > 0 ? count.first : count.second) += 1;
  }
  return PairAuc(by_score);
}

TEST(Synthetic, CountingReachesTheBestAucWithFewKeys) {
  Scratch scratch;
  for (double factor_scale : {0.0, 0.8}) {  // with interactions, cells need both keys
    SyntheticOptions options = Small(scratch);
    options.factor_scale = factor_scale;
    const auto summary = WriteSynthetic(options);
    ASSERT_TRUE(summary.ok()) << summary.status();
    const SampleBlock train = ReadAll(options, *summary, summary->train_list);
    const SampleBlock test = ReadAll(options, *summary, summary->test_list);
    ASSERT_EQ(train.size, 100000u);
    ASSERT_EQ(test.size, 20000u);
    EXPECT_GT(summary->best_auc, 0.55);
    EXPECT_NEAR(CounterAuc(train, test, 2), summary->best_auc, 0.005);
    EXPECT_NEAR(summary->expected_auc, summary->best_auc, 0.01);
  }
}

TEST(Synthetic, WithoutWeightsTheBestAucIsOneHalf) {
  Scratch scratch;
  SyntheticOptions options = Small(scratch);
  options.weight_scale = options.factor_scale = 0;
  const auto summary = WriteSynthetic(options);
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(summary->best_auc, 0.5);  // all probabilities are tied
  const double rate = 1 / (1 + std::exp(1.0));
  EXPECT_NEAR(summary->train_positives / 100000.0, rate, 0.005);
  EXPECT_NEAR(summary->best_logloss, -rate * std::log(rate) - (1 - rate) * std::log(1 - rate),
              0.01);
}

TEST(Synthetic, CanBeInterrupted) {
  Scratch scratch;
  SyntheticOptions options = Small(scratch);
  options.train_samples = uint64_t{1} << 60;
  const std::atomic<bool> interrupted{true};
  options.interrupted = &interrupted;
  EXPECT_EQ(WriteSynthetic(options).status().code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(std::filesystem::exists(options.out));
}

TEST(Synthetic, AKeyDoesNotInteractWithItself) {
  Scratch scratch;
  SyntheticOptions options = Small(scratch);
  options.slots = 1;
  options.weight_scale = 0;
  EXPECT_EQ(WriteSynthetic(options)->best_auc, 0.5);
  options.slots = 2;
  EXPECT_GT(WriteSynthetic(options)->best_auc, 0.51);
}

TEST(Synthetic, KeysFollowTheParetoDistribution) {
  Scratch scratch;
  SyntheticOptions options = Small(scratch);
  options.keys_per_slot = 1000;
  options.dense = 3;
  const auto summary = WriteSynthetic(options);
  ASSERT_TRUE(summary.ok());
  const SampleBlock train = ReadAll(options, *summary, summary->train_list);
  std::map<Key, double> counts;
  for (size_t i = 0; i < train.size; ++i) {
    for (Key slot = 0; slot < 2; ++slot) {
      const Key key = train.sparse[0].keys[2 * i + slot];
      ASSERT_GE(key, slot * 1000);
      ASSERT_LT(key, slot * 1000 + 1000);
      ++counts[key];
    }
  }
  // P(y <= t) = (t^(1-a) - 1) / (M^(1-a) - 1); key r stands for y in [r + 0.5, r + 1.5).
  const auto below = [](double t) {
    return (std::pow(t, -0.2) - 1) / (std::pow(1000.0, -0.2) - 1);
  };
  EXPECT_NEAR(counts[0] / train.size, below(1.5), 0.01);
  EXPECT_NEAR(counts[1001] / train.size, below(2.5) - below(1.5), 0.01);
  EXPECT_NEAR(counts[9] / train.size, below(10.5) - below(9.5), 0.003);
  for (float x : train.dense) ASSERT_TRUE(x >= -1 && x < 1);
}

TEST(Synthetic, IsAFunctionOfItsOptions) {
  Scratch scratch;
  SyntheticOptions options = Small(scratch);
  ASSERT_TRUE(WriteSynthetic(options).ok());
  const std::string first = scratch.Read("synthetic/train/part-00001.norm");
  ASSERT_TRUE(WriteSynthetic(options).ok());
  EXPECT_EQ(scratch.Read("synthetic/train/part-00001.norm"), first);
  options.seed = 2;
  ASSERT_TRUE(WriteSynthetic(options).ok());
  EXPECT_NE(scratch.Read("synthetic/train/part-00001.norm"), first);
}

TEST(Synthetic, RefusesInvalidOptions) {
  Scratch scratch;
  const auto code = [&](const auto& change) {
    SyntheticOptions options = Small(scratch);
    change(options);
    return WriteSynthetic(options).status().code();
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code([](SyntheticOptions& o) { o.alpha = 1; }), kInvalid);
  EXPECT_EQ(code([](SyntheticOptions& o) { o.slots = 0; }), kInvalid);
  EXPECT_EQ(code([](SyntheticOptions& o) { o.test_samples = 0; }), kInvalid);
  EXPECT_EQ(code([](SyntheticOptions& o) { o.keys_per_slot = 1ull << 31, o.wide_keys = false; }),
            kInvalid);
  EXPECT_EQ(code([](SyntheticOptions& o) { o.out = ""; }), kInvalid);
}

}  // namespace
}  // namespace cistern::data
