// Compares deferred updates with single steps that have a zero gradient.
#include "common/value/deferred_updates.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace cistern {
namespace {

struct Row {
  std::vector<float> weight, state;
  bool operator==(const Row&) const = default;
};

constexpr uint32_t kDim = 21;  // one whole block of lanes and a partial one

RuleParams Rule(RuleKind kind, UpdateType missed) {
  RuleParams rule;
  rule.kind = kind;
  rule.update_type = missed;
  return rule;
}

std::vector<float> SizesOf(const RuleParams& rule, uint64_t steps) {
  std::vector<float> sizes;
  for (uint64_t t = 1; t <= steps; ++t) {
    const double warm = std::min(1.0, static_cast<double>(t) / 50);
    sizes.push_back(StepSize(rule, 0.01 * warm, t));
  }
  return sizes;
}

// Returns a row after the first `touches` steps, each with a gradient.
Row Touched(const RuleParams& rule, const std::vector<float>& sizes, uint64_t touches) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 0.01f);
  Row row{std::vector<float>(kDim, 0.1f), std::vector<float>(RuleStateFloats(rule.kind, kDim))};
  std::vector<float> grad(kDim);
  for (uint64_t t = 0; t < touches; ++t) {
    for (float& g : grad) g = normal(random);
    ApplyRule(rule, sizes[t], kDim, grad.data(), row.weight.data(), row.state.data());
  }
  return row;
}

void Untouched(const RuleParams& rule, const std::vector<float>& sizes, uint64_t from, uint64_t to,
               Row* row) {
  const std::vector<float> zero(kDim, 0.0f);
  for (uint64_t t = from; t < to; ++t) {
    ApplyRule(rule, sizes[t], kDim, zero.data(), row->weight.data(), row->state.data());
  }
}

void ApplyDeferred(const RuleParams& rule, const std::vector<float>& sizes, uint64_t from,
                   uint64_t to, Row* row) {
  ApplyDeferredUpdates(rule, sizes.data(), FadingSteps(rule), from, to, kDim, row->weight.data(),
                       row->state.data());
}

TEST(DeferredUpdates, AdamIsBitIdentical) {
  const RuleParams rule = Rule(RuleKind::kAdam, UpdateType::kGlobal);
  const std::vector<float> sizes = SizesOf(rule, 300);
  for (const uint64_t missed : {1, 2, 3, 50, 198}) {
    Row made_up = Touched(rule, sizes, 5), stepped = made_up;
    ApplyDeferred(rule, sizes, 5, 5 + missed, &made_up);
    Untouched(rule, sizes, 5, 5 + missed, &stepped);
    EXPECT_EQ(made_up, stepped) << missed;
  }
}

RuleParams GlobalAdamW() {
  RuleParams rule = Rule(RuleKind::kAdamW, UpdateType::kGlobal);
  rule.weight_decay = 0.3f;
  return rule;
}

double RateAt(uint64_t t) {
  return 0.01 * std::min(1.0, static_cast<double>(t) / 50);
}

// A step of AdamW at RateAt(t); grad null: of zeros.
void StepAdamW(const RuleParams& rule, uint64_t t, const float* grad, Row* row) {
  const std::vector<float> zero(kDim, 0.0f);
  ApplyRule(RuleAtStep(rule, RateAt(t), t), StepSize(rule, RateAt(t), t), kDim,
            grad == nullptr ? zero.data() : grad, row->weight.data(), row->state.data());
}

Row TouchedByAdamW(const RuleParams& rule, uint64_t touches) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 0.01f);
  Row row{std::vector<float>(kDim, 0.1f), std::vector<float>(2 * kDim)};
  std::vector<float> grad(kDim);
  for (uint64_t t = 1; t <= touches; ++t) {
    for (float& g : grad) g = normal(random);
    StepAdamW(rule, t, grad.data(), &row);
  }
  return row;
}

TEST(DeferredUpdates, AdamWDecaysInEveryStep) {
  const RuleParams rule = GlobalAdamW();
  std::vector<float> steps;
  for (uint64_t t = 1; t <= 20000; ++t) AppendStep(rule, RateAt(t), t, &steps);
  for (const uint64_t missed : {1, 2, 50, 198}) {
    Row made_up = TouchedByAdamW(rule, 5), stepped = made_up, parts = made_up;
    ApplyDeferred(rule, steps, 5, 5 + missed, &made_up);
    for (uint64_t t = 6; t <= 5 + missed; ++t) StepAdamW(rule, t, nullptr, &stepped);
    EXPECT_EQ(made_up, stepped) << missed;
    for (uint64_t t = 5; t < 5 + missed; ++t) ApplyDeferred(rule, steps, t, t + 1, &parts);
    EXPECT_EQ(made_up, parts) << missed;
  }
  // Beyond the steps that are repeated, against steps in double.
  for (const uint64_t to : {300u, 2000u}) {
    Row row = TouchedByAdamW(rule, 40);
    std::vector<double> w(row.weight.begin(), row.weight.end());
    std::vector<double> state(row.state.begin(), row.state.end());
    for (uint64_t t = 41; t <= to; ++t) {
      const double lr = RateAt(t), n = static_cast<double>(t);
      for (uint32_t i = 0; i < kDim; ++i) {
        double &m = state[i], &v = state[kDim + i];
        w[i] *= 1 - lr * double(rule.weight_decay);
        m *= double(rule.beta1);
        v *= double(rule.beta2);
        const double root = std::sqrt(v / (1 - std::pow(double(rule.beta2), n)));
        w[i] -= lr / (1 - std::pow(double(rule.beta1), n)) * m / (root + double(rule.epsilon));
      }
    }
    ApplyDeferred(rule, steps, 40, to, &row);
    for (uint32_t i = 0; i < kDim; ++i) {
      EXPECT_NEAR(row.weight[i], w[i], 3e-7) << to;
      EXPECT_NEAR(row.state[kDim + i], state[kDim + i], 2e-5 * state[kDim + i]) << to;
    }
  }
}

TEST(DeferredUpdates, MayBeAppliedInAnyNumberOfParts) {
  const RuleParams rule = Rule(RuleKind::kAdam, UpdateType::kGlobal);
  const std::vector<float> sizes = SizesOf(rule, 300);
  Row once = Touched(rule, sizes, 3), often = once;
  ApplyDeferred(rule, sizes, 3, 120, &once);
  for (uint64_t from = 3; from < 120; from += 13)
    ApplyDeferred(rule, sizes, from, from + 13, &often);
  EXPECT_EQ(once, often);
}

// The reference is in double, so that the difference is the omitted remainder and not the rounding
// of thousands of steps.
TEST(DeferredUpdates, AdamOmitsLessThanARoundingError) {
  const RuleParams rule = Rule(RuleKind::kAdam, UpdateType::kGlobal);
  EXPECT_EQ(FadingSteps(rule), 199u);
  const std::vector<float> sizes = SizesOf(rule, 20000);
  Row row = Touched(rule, sizes, 40);
  std::vector<double> w(row.weight.begin(), row.weight.end());
  std::vector<double> state(row.state.begin(), row.state.end());
  for (uint64_t t = 40; t < 20000; ++t) {
    for (uint32_t i = 0; i < kDim; ++i) {
      double& m = state[i];
      double& v = state[kDim + i];
      m *= rule.beta1;
      v *= rule.beta2;
      w[i] -= sizes[t] * m / (std::sqrt(v) + rule.epsilon);
    }
  }
  ApplyDeferred(rule, sizes, 40, 20000, &row);
  for (uint32_t i = 0; i < kDim; ++i) {
    EXPECT_NEAR(row.weight[i], w[i], 2e-7) << i;
    EXPECT_NEAR(row.state[i], state[i], 1e-30) << i;
    EXPECT_NEAR(row.state[kDim + i], state[kDim + i], 2e-5 * state[kDim + i]) << i;
  }
}

// beta1 above sqrt(beta2): each update is larger than the one before, so none may be omitted.
TEST(DeferredUpdates, AdamThatDoesNotDecayIsAppliedInFull) {
  RuleParams rule = Rule(RuleKind::kAdam, UpdateType::kGlobal);
  rule.beta2 = 0.5f;
  EXPECT_EQ(FadingSteps(rule), 0u);
  const std::vector<float> sizes = SizesOf(rule, 1000);
  Row made_up = Touched(rule, sizes, 5), stepped = made_up;
  ApplyDeferred(rule, sizes, 5, 1000, &made_up);
  Untouched(rule, sizes, 5, 1000, &stepped);
  EXPECT_EQ(made_up, stepped);
}

TEST(DeferredUpdates, VelocityIsSummedInClosedForm) {
  for (const RuleKind kind : {RuleKind::kMomentum, RuleKind::kNesterov}) {
    for (const UpdateType missed : {UpdateType::kGlobal, UpdateType::kLazyGlobal}) {
      const RuleParams rule = Rule(kind, missed);
      const std::vector<float> sizes = SizesOf(rule, 5000);
      for (const uint64_t to : {6u, 7u, 40u, 5000u}) {
        Row made_up = Touched(rule, sizes, 5), stepped = made_up;
        ApplyDeferred(rule, {}, 5, to, &made_up);
        Untouched(rule, sizes, 5, to, &stepped);
        for (uint32_t i = 0; i < kDim; ++i) {
          EXPECT_NEAR(made_up.weight[i], stepped.weight[i], 1e-7) << to;
          EXPECT_NEAR(made_up.state[i], stepped.state[i], 1e-9) << to;
        }
      }
    }
  }
}

TEST(DeferredUpdates, VelocityWithoutMomentumDoesNotMove) {
  RuleParams rule = Rule(RuleKind::kMomentum, UpdateType::kGlobal);
  rule.beta1 = 0;
  const std::vector<float> sizes = SizesOf(rule, 100);
  Row row = Touched(rule, sizes, 5);
  const std::vector<float> before = row.weight;
  ApplyDeferred(rule, {}, 5, 50, &row);
  EXPECT_EQ(row.weight, before);
}

// HugeCTR v2.3, for a touch in step t of a row last touched in step `prev`, with k = t - prev:
// w -= lr / (1 - b1) * sqrt(1 - b2^prev) / (1 - b1^prev) * (1 - b1^k) * m / (sqrt(v) + eps),
// including the gradient of `prev`. Here the update of that gradient is applied in step `prev`.
TEST(DeferredUpdates, LazyGlobalEqualsTheFormulaOfHugeCtr) {
  const RuleParams rule = Rule(RuleKind::kAdam, UpdateType::kLazyGlobal);
  constexpr double kRate = 0.02, kBeta1 = 0.9f, kBeta2 = 0.999f, kEpsilon = 1e-7f;
  std::vector<float> sizes;
  for (uint64_t t = 1; t <= 100; ++t) sizes.push_back(StepSize(rule, kRate, t));
  double w = 0.3, m = 0, v = 0;
  uint64_t prev = 1;
  std::vector<float> weight = {0.3f}, state = {0.0f, 0.0f};
  uint64_t last = 0;
  for (const uint64_t t : {4u, 5u, 40u, 100u}) {
    const float grad = 0.01f * static_cast<float>(t % 7) - 0.02f;
    const uint64_t k = t - prev;
    w -= kRate / (1 - kBeta1) * std::sqrt(1 - std::pow(kBeta2, prev)) /
         (1 - std::pow(kBeta1, prev)) * (1 - std::pow(kBeta1, k)) * m / (std::sqrt(v) + kEpsilon);
    m = std::pow(kBeta1, k) * m + (1 - kBeta1) * grad;
    v = std::pow(kBeta2, k) * v + (1 - kBeta2) * grad * grad;
    prev = t;

    ApplyDeferredUpdates(rule, sizes.data(), FadingSteps(rule), last, t - 1, 1, weight.data(),
                         state.data());
    EXPECT_NEAR(weight[0], w, 1e-6) << "before step " << t;
    ApplyRule(rule, sizes[t - 1], 1, &grad, weight.data(), state.data());
    EXPECT_NEAR(state[0], m, 1e-8) << t;
    EXPECT_NEAR(state[1], v, 1e-9) << t;
    last = t;
  }
}

TEST(DeferredUpdates, RowThatNoStepHasTouchedDoesNotMove) {
  for (const RuleKind kind : {RuleKind::kAdam, RuleKind::kMomentum, RuleKind::kNesterov}) {
    const RuleParams rule = Rule(kind, UpdateType::kGlobal);
    const std::vector<float> sizes = SizesOf(rule, 50);
    std::vector<float> weight(kDim, 0.25f), state(RowStateFloats(rule, kDim));
    ApplyDeferredUpdatesToRow(rule, sizes.data(), FadingSteps(rule), 49, 50, kDim, weight.data(),
                              state.data());
    EXPECT_EQ(weight, std::vector<float>(kDim, 0.25f));
    EXPECT_EQ(state.back(), 50.0f);
  }
}

// A saved model keeps the state of its rows and restarts at step 0.
TEST(DeferredUpdates, RowLoadedWithItsStateMoves) {
  const RuleParams rule = Rule(RuleKind::kAdam, UpdateType::kGlobal);
  const std::vector<float> sizes = SizesOf(rule, 100);
  Row made_up = Touched(rule, sizes, 20), stepped = made_up;
  ApplyDeferred(rule, sizes, 0, 60, &made_up);
  Untouched(rule, sizes, 0, 60, &stepped);
  EXPECT_EQ(made_up, stepped);
  Row lazy = Touched(rule, sizes, 20);
  const std::vector<float> before = lazy.weight;
  ApplyDeferred(Rule(RuleKind::kAdam, UpdateType::kLazyGlobal), sizes, 0, 60, &lazy);
  EXPECT_NE(lazy.weight, before);
}

TEST(DeferredUpdates, RowAheadOfTheStepDoesNotMove) {
  const RuleParams rule = Rule(RuleKind::kAdam, UpdateType::kGlobal);
  const std::vector<float> sizes = SizesOf(rule, 50);
  Row row = Touched(rule, sizes, 20), before = row;
  ApplyDeferred(rule, sizes, 20, 20, &row);
  ApplyDeferred(rule, sizes, 20, 10, &row);
  EXPECT_EQ(row, before);
}

TEST(DeferredUpdates, OnlyTheirTablesStoreTheLastStep) {
  EXPECT_EQ(RowStateFloats(Rule(RuleKind::kAdam, UpdateType::kLocal), 8), 16u);
  EXPECT_EQ(RowStateFloats(Rule(RuleKind::kAdam, UpdateType::kGlobal), 8), 17u);
  EXPECT_EQ(RowStateFloats(Rule(RuleKind::kNesterov, UpdateType::kLazyGlobal), 8), 9u);
  EXPECT_EQ(RowStateFloats(Rule(RuleKind::kAdam, UpdateType::kGlobal), 0), 0u);
}

TEST(DeferredUpdates, PowersAreExactToAFloat) {
  EXPECT_EQ(PowerOf(0.5f, 0), 1.0f);
  EXPECT_EQ(PowerOf(0.5f, 10), 0x1p-10f);
  EXPECT_EQ(PowerOf(0.999f, 12345), static_cast<float>(std::pow(double{0.999f}, 12345)));
  EXPECT_EQ(PowerOf(0.0f, 3), 0.0f);
}

}  // namespace
}  // namespace cistern
