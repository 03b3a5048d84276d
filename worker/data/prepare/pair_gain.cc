#include "worker/data/prepare/pair_gain.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <unordered_map>
#include <utility>

#include "common/base/hash.h"

namespace cistern::data {
namespace {

constexpr size_t kHeldOutOneIn = 4;

// Rows of numbered values.
struct NumberedRows {
  size_t slots = 0, values = 0;  // of a row; in all
  std::vector<uint32_t> value;   // [rows, slots]
  std::vector<uint8_t> positive;

  size_t size() const { return positive.size(); }
  bool IsHeldOut(size_t row) const { return row % kHeldOutOneIn == 0; }
};

// Which hashes of the label are those of positive texts, by the sampled rows.
std::unordered_map<uint32_t, bool> LabelsByHash(const TableProfile& profile,
                                                const LabelChoice& label) {
  std::unordered_map<uint32_t, bool> labels;
  for (const std::vector<std::string>& row : profile.sample) {
    const std::string& text = row[label.column];
    labels.emplace(HashOfField(text), label.IsPositive(text));
  }
  return labels;
}

NumberedRows NumberRows(const TableProfile& profile, const LabelChoice& label,
                        const std::vector<size_t>& slots) {
  constexpr uint32_t kRowsOfValue = 5;  // at least; rarer values of a slot are one
  const size_t columns = profile.columns.size();
  const size_t all = profile.field_hashes.size() / columns;
  const std::unordered_map<uint32_t, bool> labels = LabelsByHash(profile, label);
  NumberedRows rows;
  rows.slots = slots.size();
  std::vector<size_t> places;
  for (size_t row = 0; row < all; ++row) {
    const auto found = labels.find(profile.field_hashes[row * columns + label.column]);
    if (found == labels.end()) continue;
    places.push_back(row);
    rows.positive.push_back(found->second);
  }
  rows.value.resize(places.size() * slots.size());
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    const auto hash = [&](size_t row) {
      return profile.field_hashes[places[row] * columns + slots[slot]];
    };
    std::unordered_map<uint32_t, uint32_t> counts, numbers;
    for (size_t row = 0; row < places.size(); ++row) ++counts[hash(row)];
    const uint32_t rare = static_cast<uint32_t>(rows.values++);
    for (size_t row = 0; row < places.size(); ++row) {
      uint32_t number = rare;
      if (counts[hash(row)] >= kRowsOfValue) {
        const auto [at, is_new] =
            numbers.try_emplace(hash(row), static_cast<uint32_t>(rows.values));
        rows.values += is_new;
        number = at->second;
      }
      rows.value[row * slots.size() + slot] = number;
    }
  }
  return rows;
}

// A linear model with a factorization machine beside it, unless dim is 0, trained by Adam.
class SmallMachine {
 public:
  SmallMachine(const NumberedRows& rows, uint32_t dim);
  // The least log loss of the rows held out after any epoch.
  double Train();

 private:
  static constexpr size_t kBatch = 256;
  static constexpr float kLearningRate = 0.01f;

  // Also the sum of the row's vectors, in sum_.
  float LogOdds(size_t row);
  void AddGradient(size_t row, float scale);
  void Step();
  double HeldOutLoss();
  float* RowOf(std::vector<float>* floats, uint32_t value) const {
    return floats->data() + size_t{value} * width_;
  }
  uint32_t ValueOf(size_t row, size_t slot) const { return rows_.value[row * rows_.slots + slot]; }

  const NumberedRows& rows_;
  const uint32_t dim_, width_;  // of a vector; of a vector and its weight, which is the first float
  float bias_ = 0, weight_l2_ = 0, vector_l2_ = 0;
  std::vector<size_t> order_;  // of the rows to train on
  std::mt19937_64 draw_{1};
  std::vector<float> floats_, gradient_, moment_, square_;  // [values, width_]
  std::vector<float> sum_;
  std::vector<uint32_t> touched_;  // by the batch
  std::vector<uint8_t> is_touched_;
  double decay_ = 1, square_decay_ = 1;  // of Adam's moments, after all steps
};

SmallMachine::SmallMachine(const NumberedRows& rows, uint32_t dim)
    : rows_(rows), dim_(dim), width_(dim + 1), sum_(dim), is_touched_(rows.values) {
  constexpr double kFirstDeviation = 0.3;
  double positive = 0;
  for (size_t row = 0; row < rows.size(); ++row) {
    if (rows.IsHeldOut(row)) continue;
    order_.push_back(row);
    positive += rows.positive[row];
  }
  const double n = static_cast<double>(order_.size()), share = positive / n;
  bias_ = static_cast<float>(std::log(share / (1 - share)));
  weight_l2_ = static_cast<float>(3 / n);
  // The spectral norm of a square matrix of noise is twice the root of a row's sum of variances.
  const double rows_of_value =
      n * static_cast<double>(rows.slots) / static_cast<double>(rows.values);
  vector_l2_ = static_cast<float>(2 * std::sqrt(rows_of_value * share * (1 - share)) / n);
  for (std::vector<float>* const floats : {&floats_, &gradient_, &moment_, &square_}) {
    floats->assign(rows.values * width_, 0);
  }
  for (size_t i = 0; i < floats_.size(); ++i) {
    const double uniform = static_cast<double>(draw_() >> 11) * 0x1p-53;
    if (i % width_ != 0) {
      floats_[i] = static_cast<float>((2 * uniform - 1) * std::sqrt(3) * kFirstDeviation);
    }
  }
}

float SmallMachine::LogOdds(size_t row) {
  float odds = bias_, squares = 0;
  std::fill(sum_.begin(), sum_.end(), 0);
  for (size_t slot = 0; slot < rows_.slots; ++slot) {
    const float* const floats = RowOf(&floats_, ValueOf(row, slot));
    odds += floats[0];
    for (uint32_t i = 0; i < dim_; ++i) {
      sum_[i] += floats[i + 1];
      squares += floats[i + 1] * floats[i + 1];
    }
  }
  for (uint32_t i = 0; i < dim_; ++i) odds += sum_[i] * sum_[i] / 2;
  return odds - squares / 2;
}

void SmallMachine::AddGradient(size_t row, float scale) {
  for (size_t slot = 0; slot < rows_.slots; ++slot) {
    const uint32_t value = ValueOf(row, slot);
    if (!is_touched_[value]) touched_.push_back(value);
    is_touched_[value] = 1;
    const float* const floats = RowOf(&floats_, value);
    float* const gradient = RowOf(&gradient_, value);
    gradient[0] += scale;
    for (uint32_t i = 0; i < dim_; ++i) gradient[i + 1] += scale * (sum_[i] - floats[i + 1]);
  }
}

// Adam (Kingma and Ba 2015).
void SmallMachine::Step() {
  constexpr float kBeta1 = 0.9f, kBeta2 = 0.999f, kEpsilon = 1e-8f;
  decay_ *= kBeta1;
  square_decay_ *= kBeta2;
  const float correction = static_cast<float>(1 / (1 - decay_));
  const float square_correction = static_cast<float>(1 / (1 - square_decay_));
  for (const uint32_t value : touched_) {
    is_touched_[value] = 0;
    for (size_t i = size_t{value} * width_; i < (size_t{value} + 1) * width_; ++i) {
      const float l2 = i % width_ == 0 ? weight_l2_ : vector_l2_;
      const float g = gradient_[i] + l2 * floats_[i];
      gradient_[i] = 0;
      moment_[i] = kBeta1 * moment_[i] + (1 - kBeta1) * g;
      square_[i] = kBeta2 * square_[i] + (1 - kBeta2) * g * g;
      floats_[i] -= kLearningRate * moment_[i] * correction /
                    (std::sqrt(square_[i] * square_correction) + kEpsilon);
    }
  }
  touched_.clear();
}

double SmallMachine::HeldOutLoss() {
  double loss = 0, count = 0;
  for (size_t row = 0; row < rows_.size(); ++row) {
    if (!rows_.IsHeldOut(row)) continue;
    const double odds = LogOdds(row);
    // log(1 + exp(-x)), x being the log-odds of the row's label
    const double x = rows_.positive[row] ? odds : -odds;
    loss += std::max(-x, 0.0) + std::log1p(std::exp(-std::abs(x)));
    ++count;
  }
  return loss / count;
}

double SmallMachine::Train() {
  constexpr size_t kEpochs = 12, kPatience = 2;
  double best = HeldOutLoss();
  size_t best_epoch = 0;
  for (size_t epoch = 1; epoch <= kEpochs && epoch <= best_epoch + kPatience + 1; ++epoch) {
    for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[draw_() % i]);
    for (size_t i = 0; i < order_.size(); ++i) {
      const float odds = LogOdds(order_[i]);
      const float error = 1 / (1 + std::exp(-odds)) - rows_.positive[order_[i]];
      AddGradient(order_[i], error / kBatch);
      if ((i + 1) % kBatch == 0 || i + 1 == order_.size()) Step();
    }
    const double loss = HeldOutLoss();
    if (loss >= best) continue;
    best = loss;
    best_epoch = epoch;
  }
  return best;
}

}  // namespace

double PairGain(const TableProfile& profile, const LabelChoice& label,
                const std::vector<size_t>& slots) {
  constexpr uint32_t kDim = 4;
  if (slots.size() < 2) return 0;
  const NumberedRows rows = NumberRows(profile, label, slots);
  const size_t positive = std::accumulate(rows.positive.begin(), rows.positive.end(), size_t{0});
  if (std::min(positive, rows.size() - positive) < kMinPairGain) return 0;
  const double linear = SmallMachine(rows, 0).Train();
  return 1 - SmallMachine(rows, kDim).Train() / linear;
}

}  // namespace cistern::data
