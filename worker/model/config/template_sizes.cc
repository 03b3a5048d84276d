// The sizes of a model file for data of a given size.
#include <algorithm>
#include <cmath>

#include "worker/model/config/model_template.h"

namespace cistern::model {

namespace {

constexpr uint32_t kMaxEpochs = 60;

// The largest power of two that gives an epoch at least `steps` steps, from 8 to 4096.
uint32_t BatchFor(uint64_t samples, uint64_t steps) {
  uint32_t batch = 8;
  while (batch < 4096 && samples / (2 * batch) >= steps) batch *= 2;
  return batch;
}

// The vectors of a factorization machine begin large and learn fast, so that pairs that mean
// something are found before the network knows the rows by heart. Their L2 is as large as what
// chance makes of pairs that mean nothing: the spectral norm of a square matrix of noise is twice
// the root of the sum of a row's variances. Where the product of two vectors decides (60,000 rows
// of 400 users and items, and two numbers), deepfm has an AUC of .810, and .712 with vectors
// thinned out.
void SizeForPairs(uint64_t samples, uint64_t keys, uint64_t rarer, uint32_t slots,
                  TemplateSizes* sizes) {
  const double n = static_cast<double>(samples), share = static_cast<double>(rarer) / n;
  const double of_key = n * slots / static_cast<double>(keys);
  sizes->embedding_l2 = 2 * std::sqrt(of_key * share * (1 - share)) / n;
  sizes->row_range = 0.2;
  sizes->row_learning_rate = 0.01;
  sizes->learning_rate = 0.0005;
  sizes->zero_linear = true;
}

// With so rare a class, too few rows are held out to tell a good epoch from a lucky one. So all
// epochs are trained, in batches that hold some samples of the class, and a prior takes the place
// of early stopping. With batches this large, a value is in nearly every one, so embedding_l2 is
// that of weights with deviation 0.6; in small batches a rare value has hardly any, because it is
// added for the values of a batch only. That also holds for the batches of a table below
// kFewSamples, so the L2 is three times as large there: without it, dcnv2 had a log loss of .228
// with 96 rows of the rarer class among 2,000 (.190 with it; a constant: .202). deepfm, whose rows
// can express the same in two ways, needs ten times (.689 with 60 among 3,000; .164 with three
// times, .094 with ten; .098), and gains from three in larger tables, too, where the other kinds
// lose .008 to .012 of the AUC (20,000 rows, 60 of the class).
void SizeForFew(ModelKind kind, uint64_t samples, uint64_t rarer, bool few_of_keys,
                TemplateSizes* sizes) {
  constexpr uint64_t kStepsOfEpoch = 13, kFewSamples = 10000;
  const bool linear = kind == ModelKind::kLr;
  double times = 1;
  if (rarer < kMinRarerForDeep && !linear && !PredictsSeveral(kind)) {
    const bool small = samples < kFewSamples;
    times = kind == ModelKind::kDeepFm ? (small ? 10 : 3) : (small ? 3 : 1);
  }
  sizes->batch = BatchFor(samples, kStepsOfEpoch);
  sizes->epochs = linear ? kMaxEpochs : 40;
  sizes->patience = 0;
  sizes->embedding_l2 = 3 * times / static_cast<double>(std::max<uint64_t>(samples, 1));
  sizes->learning_rate = linear ? 0.01 : kind == ModelKind::kDlrm ? 0.001 : 0.002;
  sizes->row_learning_rate = linear ? 0.01 : 0.005;
  sizes->row_range = linear ? 1e-4 : 1e-3;
  sizes->batch_norm = false;
  sizes->zero_start = true;
  sizes->zero_linear = true;
  sizes->hidden = {16, 8};
  sizes->dropout = 0.5;
  sizes->vector_dropout = kind == ModelKind::kFm && !few_of_keys ? 0.5 : 0.8;
  sizes->linear_part = true;
  sizes->crosses = 1;
}

}  // namespace

uint64_t RarerClass(uint64_t samples, double positives) {
  if (positives <= 0 || positives >= 1) return samples;
  const double share = std::min(positives, 1 - positives);
  return static_cast<uint64_t>(std::llround(share * static_cast<double>(samples)));
}

TemplateSizes SizesFor(ModelKind kind, uint64_t samples, uint64_t keys, uint64_t rarer,
                       uint32_t paired_slots) {
  constexpr uint64_t kSmall = 100000, kLarge = 5000000;
  TemplateSizes sizes;
  const bool small = samples < kSmall, large = samples >= kLarge;
  const bool rare_keys = keys > samples / 2;
  const bool shallow = kind == ModelKind::kLr || kind == ModelKind::kFm;
  // With more samples of the class for each value, vectors learn what values mean together, which
  // the strong prior of SizeForFew would forbid.
  const bool few_of_keys = rarer < 3 * keys;
  // With this many for each value, vectors need no help; in larger tables fewer are enough. On
  // Frappe thinning vectors out gained .006 of the AUC with 3.9 (60,000 rows), and lost .011
  // with 6.3, .035 with 8.8 and .041 with 12.6 (all rows); tables of 6,000 in the class gained up
  // to 7.5.
  const uint64_t rarer_per_key = rarer < 2 * kMinRarerForNorm ? 15 : 5;
  const bool some_of_keys = rarer < rarer_per_key * keys && !rare_keys;
  // A linear model has no vectors.
  const bool few = rarer < kMinRarerForDeep || (rarer < kMinRarerForStopping && few_of_keys) ||
                   (rarer < 2 * kMinRarerForNorm && some_of_keys && kind == ModelKind::kLr);
  // Too few samples of a class, or of each key, for batch norm and its strong embedding_l2.
  const bool scarce = rarer < kMinRarerForNorm || (keys > samples / 20 && keys <= samples / 5);
  sizes.vector = small ? 8 : large ? 16 : 10;
  sizes.hidden = small   ? std::vector<uint32_t>{128, 64}
                 : large ? std::vector<uint32_t>{400, 400, 400}
                         : std::vector<uint32_t>{256, 128};
  sizes.batch_norm = !rare_keys && !scarce;
  sizes.zero_start = !rare_keys && scarce;
  // What a random weight adds to the log-odds of every row is learned away in small tables only
  // after epochs that look like losses: 960 rows, 365 of the rarer class, kept a log loss of .92.
  sizes.zero_linear = rarer < kMinRarerForNorm;
  sizes.linear_part = scarce && kind == ModelKind::kDlrm;  // the others have one, or a cross
  sizes.dropout = small ? 0.1 : 0.2;
  sizes.crosses = small ? 2 : 3;
  // Rules that count epochs need epochs of enough steps, and a small table needs enough epochs.
  constexpr uint64_t kStepsOfEpoch = 256, kSteps = 5000;
  sizes.batch = BatchFor(samples, kStepsOfEpoch);
  const uint64_t steps = std::max<uint64_t>(samples / sizes.batch, 1);
  sizes.epochs = std::clamp(static_cast<uint32_t>(kSteps / steps), shallow ? 40u : 20u, kMaxEpochs);
  sizes.patience = std::max(3u, static_cast<uint32_t>((3 * kStepsOfEpoch + steps - 1) / steps));
  sizes.learning_rate = shallow ? 0.005 : 0.001;
  sizes.row_learning_rate = rare_keys ? 0.0002 : shallow || !scarce ? 0.003 : 0.001;
  sizes.embedding_l2 = rare_keys ? 1e-2 : shallow ? 1e-4 : scarce ? 0.003 : 0.05;
  // Of rows that are in every batch, 1 / samples is the prior of weights with deviation 1; a fixed
  // number would hold the weights of a large table down.
  const double prior = 1.0 / static_cast<double>(std::max<uint64_t>(samples, 1));
  if (kind == ModelKind::kLr && !rare_keys) {
    sizes.embedding_l2 = std::min(sizes.embedding_l2, 2 * prior);
  }
  // Values that have few samples of the rarer class each teach a weight, but hardly a vector,
  // unless pairs of them say so much that it shows in few. In the other kinds of model, the larger
  // start costs .03 to .05 where the factorization machine gains .1.
  if (some_of_keys && paired_slots > 0) {
    const bool has_pairs = kind == ModelKind::kFm || kind == ModelKind::kDeepFm;
    if (has_pairs) SizeForPairs(samples, keys, rarer, paired_slots, &sizes);
  } else if (some_of_keys && kind != ModelKind::kLr && !PredictsSeveral(kind)) {
    sizes.embedding_l2 = std::min(sizes.embedding_l2, 3 * prior);
    sizes.vector_dropout = 0.8;
    sizes.linear_part = kind == ModelKind::kDlrm;  // the weight, which its products cannot hold
  }
  // Vectors that begin near zero hardly move: from .01 and at a rate of .003, two of three seeds of
  // Frappe ended as a linear model (an AUC of .933; .968 for the third), now all have .971. A rate
  // of .01 gave .973 there, but .781 in place of .789 where 60,000 rows have 1,000 values.
  if (kind == ModelKind::kFm && !rare_keys && !some_of_keys) {
    sizes.row_learning_rate = 0.005;
    sizes.row_range = 0.05;
  }
  if (kind == ModelKind::kLr && rare_keys) {  // a weight a key can learn faster than a vector
    sizes.row_learning_rate = 0.001;
    sizes.embedding_l2 = 1e-3;
  }
  if (few) SizeForFew(kind, samples, rarer, few_of_keys, &sizes);
  return sizes;
}

// A step of Adam moves all weights by the learning rate, so it moves the log-odds of a sample by up
// to that times dense_dim. On 2,000 columns of noise and 1,600 rows of the rarer class a rate of
// .001 gave a log loss of .99 (a constant: .67), and 3e-5 .59.
bool SizeForWide(uint32_t dense_dim, uint64_t rarer, TemplateSizes* sizes) {
  constexpr uint32_t kWideFrom = 100;
  constexpr uint64_t kRarerPerNumber = 10;
  constexpr double kStep = 0.05;
  constexpr uint32_t kMinBatch = 32;
  if (dense_dim < kWideFrom || rarer >= kRarerPerNumber * dense_dim) return false;
  sizes->learning_rate = std::min(sizes->learning_rate, kStep / dense_dim);
  sizes->batch = std::max(sizes->batch, kMinBatch);
  sizes->zero_start = true;
  sizes->zero_linear = true;
  return true;
}

}  // namespace cistern::model
