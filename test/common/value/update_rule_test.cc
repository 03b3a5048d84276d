// Compares every update rule with its formula in double precision and with steps computed by hand.
#include "common/value/update_rule.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <random>
#include <vector>

#include "proto/schema.pb.h"

namespace cistern {
namespace {

// One step in double, derived from the papers and reference sources, not from update_rule.h.
struct DoubleStep {
  std::vector<double> weight, state;
};

DoubleStep Reference(const RuleParams& rule, double lr, uint64_t t, const std::vector<float>& g,
                     const std::vector<float>& w, const std::vector<float>& state) {
  const size_t n = w.size();
  DoubleStep out{{w.begin(), w.end()}, {state.begin(), state.end()}};
  const double b1 = rule.beta1, b2 = rule.beta2, eps = rule.epsilon, g0 = rule.initial_g2sum;
  double mean_square = 0;
  for (size_t i = 0; i < n; ++i) {
    const double gi = g[i];
    mean_square += gi * gi / static_cast<double>(n);
    switch (rule.kind) {
      case RuleKind::kSgd:
        out.weight[i] -= lr * gi;
        break;
      case RuleKind::kAdagrad:  // Duchi et al. 2011
        out.state[i] += gi * gi;
        out.weight[i] -= lr * gi / (std::sqrt(g0 + out.state[i]) + eps);
        break;
      case RuleKind::kAdagradShared:  // PSLib SparseAdaGradSGDRule, with the sum before this step
        out.weight[i] -= lr * gi * std::sqrt(g0 / (g0 + state[0]));
        break;
      case RuleKind::kAdagradRowwise: {  // FBGEMM's EXACT_ROWWISE_ADAGRAD, with this step's sum
        double squares = state[0];
        for (const double x : g) squares += x * x / static_cast<double>(n);
        out.weight[i] -= lr * gi / (std::sqrt(squares) + eps);
        break;
      }
      case RuleKind::kAdagradStd:  // PSLib StdAdaGradSGDRule
        out.weight[i] -= lr * gi * std::sqrt(g0 / (g0 + state[i]));
        out.state[i] += gi * gi;
        break;
      case RuleKind::kAdam: {  // Kingma and Ba 2015, the order of section 2's last lines
        double& m = out.state[i];
        double& v = out.state[n + i];
        m = b1 * m + (1 - b1) * gi;
        v = b2 * v + (1 - b2) * gi * gi;
        const double alpha = lr * std::sqrt(1 - std::pow(b2, t)) / (1 - std::pow(b1, t));
        out.weight[i] -= alpha * m / (std::sqrt(v) + eps);
        break;
      }
      case RuleKind::kAdamW: {  // torch.optim.AdamW, of one tensor, without amsgrad
        double& m = out.state[i];
        double& v = out.state[n + i];
        out.weight[i] *= 1 - lr * rule.weight_decay;
        m = b1 * m + (1 - b1) * gi;
        v = b2 * v + (1 - b2) * gi * gi;
        const double root = std::sqrt(v) / std::sqrt(1 - std::pow(b2, t));
        out.weight[i] -= lr / (1 - std::pow(b1, t)) * m / (root + eps);
        break;
      }
      case RuleKind::kMomentum:  // Polyak 1964
        out.state[i] = b1 * out.state[i] - lr * gi;
        out.weight[i] += out.state[i];
        break;
      case RuleKind::kNesterov:  // Sutskever et al. 2013, at the point of the gradient
        out.state[i] = b1 * state[i] - lr * gi;
        out.weight[i] += -b1 * state[i] + (1 + b1) * out.state[i];
        break;
      case RuleKind::kFtrl: {  // McMahan et al. 2013, algorithm 1
        double& z = out.state[i];
        double& sum = out.state[n + i];
        const double sigma = (std::sqrt(sum + gi * gi) - std::sqrt(sum)) / lr;
        z += gi - sigma * w[i];
        sum += gi * gi;
        const double sign = z < 0 ? -1 : 1;
        out.weight[i] = std::fabs(z) <= rule.lambda1
                            ? 0
                            : -(z - sign * rule.lambda1) /
                                  ((rule.ftrl_beta + std::sqrt(sum)) / lr + rule.lambda2);
        break;
      }
    }
  }
  if (rule.kind == RuleKind::kAdagradShared || rule.kind == RuleKind::kAdagradRowwise) {
    out.state[0] += mean_square;
  }
  const double bound = rule.weight_bound;
  for (double& x : out.weight) {
    if (bound > 0) x = std::min(std::max(x, -bound), bound);
  }
  return out;
}

class EveryRule : public testing::TestWithParam<RuleKind> {};

TEST_P(EveryRule, FollowsItsFormulaInDouble) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const float bound : {0.0f, 0.3f}) {
    for (const uint32_t n : {1u, 2u, 7u, 16u, 33u}) {
      RuleParams rule;
      rule.kind = GetParam();
      rule.weight_bound = bound;
      std::vector<float> w(n), g(n), state(RuleStateFloats(rule.kind, n));
      for (float& x : w) x = 0.1f * normal(random);
      for (uint64_t t = 1; t <= 200; ++t) {
        const float scale = std::pow(10.0f, static_cast<float>(t % 9) - 6);  // 1e-6 .. 1e2
        for (float& x : g) x = t % 10 == 0 ? 0.0f : scale * normal(random);
        const DoubleStep expected = Reference(rule, 0.01, t, g, w, state);
        const std::vector<float> before = w;
        ApplyRule(rule, StepSize(rule, 0.01, t), n, g.data(), w.data(), state.data());
        for (uint32_t i = 0; i < n; ++i) {
          // The tolerance is a few float roundings, of the step and of the weight.
          const double step = std::fabs(expected.weight[i] - before[i]);
          // A Nesterov step is the difference of two velocities.
          const double parts = rule.kind == RuleKind::kNesterov ? 2.4e-7 * std::fabs(state[i]) : 0;
          ASSERT_NEAR(w[i], expected.weight[i],
                      1e-6 * step + 1.2e-7 * std::fabs(before[i]) + parts + 1e-30)
              << "n " << n << " t " << t << " i " << i;
        }
        for (size_t i = 0; i < state.size(); ++i) {
          ASSERT_NEAR(state[i], expected.state[i],
                      1e-6 * std::fabs(expected.state[i]) + 1e-7 * scale * scale)
              << "n " << n << " t " << t << " state " << i;
        }
      }
    }
  }
}

TEST_P(EveryRule, ZeroGradientOnNewRowKeepsItFinite) {
  RuleParams rule;
  rule.kind = GetParam();
  std::vector<float> w = {0.5f, -0.5f}, g = {0, 0}, state(RuleStateFloats(rule.kind, 2));
  ApplyRule(rule, StepSize(rule, 0.1, 1), 2, g.data(), w.data(), state.data());
  EXPECT_EQ(w[0], 0.5f);
  EXPECT_EQ(w[1], -0.5f);
}

TEST_P(EveryRule, WithoutWeightsHasNoStateAndDoesNothing) {
  RuleParams rule;
  rule.kind = GetParam();
  EXPECT_EQ(RuleStateFloats(rule.kind, 0), 0u);
  ApplyRule(rule, 0.1f, 0, nullptr, nullptr, nullptr);
}

std::string NameOfRule(const testing::TestParamInfo<RuleKind>& rule) {
  const char* names[] = {"Sgd",      "Adagrad",  "AdagradShared", "Adam",          "AdagradStd",
                         "Momentum", "Nesterov", "Ftrl",          "AdagradRowwise"};
  return names[static_cast<int>(rule.param)];
}

INSTANTIATE_TEST_SUITE_P(UpdateRule, EveryRule,
                         testing::Values(RuleKind::kSgd, RuleKind::kAdagrad,
                                         RuleKind::kAdagradShared, RuleKind::kAdam,
                                         RuleKind::kAdagradStd, RuleKind::kMomentum,
                                         RuleKind::kNesterov, RuleKind::kAdagradRowwise),
                         NameOfRule);

// The weight after each gradient of `grads`, for one weight that starts at 1.
std::vector<float> Steps(RuleParams rule, double lr, const std::vector<float>& grads) {
  std::vector<float> out, state(RuleStateFloats(rule.kind, 1));
  float w = 1;
  for (size_t i = 0; i < grads.size(); ++i) {
    ApplyRule(rule, StepSize(rule, lr, i + 1), 1, &grads[i], &w, state.data());
    out.push_back(w);
  }
  return out;
}

// With a constant gradient both corrected means are exact, so each step equals the learning rate.
TEST(Adam, ConstantGradientStepsByTheLearningRate) {
  RuleParams rule;
  rule.kind = RuleKind::kAdam;
  rule.epsilon = 1e-12f;
  const std::vector<float> w = Steps(rule, 0.1, {0.5f, 0.5f, 0.5f, 0.5f});
  for (size_t i = 0; i < w.size(); ++i) {
    EXPECT_NEAR(w[i], 1 - 0.1 * static_cast<double>(i + 1), 1e-6);
  }
}

// By hand, gradients 1 then -2: m = .1, -.11; v = .001, .004999;
// corrected m = 1, -.11 / .19; corrected v = 1, .004999 / .001999.
TEST(Adam, TwoStepsOfTheTextbook) {
  RuleParams rule;
  rule.kind = RuleKind::kAdam;
  rule.epsilon = 1e-12f;
  const std::vector<float> w = Steps(rule, 0.1, {1, -2});
  EXPECT_NEAR(w[0], 0.9, 1e-6);
  EXPECT_NEAR(w[1], 0.9 + 0.1 * (0.11 / 0.19) / std::sqrt(0.004999 / 0.001999), 2e-6);
}

// HugeCTR adds epsilon to the uncorrected root: at t = 1 the step is
// lr * sqrt(.001) / .1 * .1 g / (sqrt(.001) |g| + eps), so eps = sqrt(.001) |g| halves it.
TEST(Adam, EpsilonIsOutsideTheRootAndNotCorrected) {
  RuleParams rule;
  rule.kind = RuleKind::kAdam;
  rule.epsilon = static_cast<float>(std::sqrt(0.001));
  EXPECT_NEAR(Steps(rule, 0.1, {1})[0], 0.95, 1e-6);
}

TEST(AdamW, FollowsPyTorchInDouble) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const float decay : {0.0f, 0.01f, 3.0f}) {
    for (const uint32_t n : {1u, 2u, 17u}) {
      RuleParams rule;
      rule.kind = RuleKind::kAdamW;
      rule.epsilon = 1e-3f;  // large enough to tell which root it is added to
      rule.weight_decay = decay;
      std::vector<float> w(n), g(n), state(RuleStateFloats(rule.kind, n));
      for (float& x : w) x = normal(random);
      DoubleStep expected{{w.begin(), w.end()}, std::vector<double>(2 * n)};
      for (uint64_t t = 1; t <= 50; ++t) {
        const double lr = 0.01 * static_cast<double>(1 + t % 3);
        for (float& x : g) x = t % 10 == 0 ? 0.0f : 0.01f * normal(random);
        // Reference() takes floats, so the double state is kept by hand.
        for (uint32_t i = 0; i < n; ++i) {
          double &m = expected.state[i], &v = expected.state[n + i], &x = expected.weight[i];
          x *= 1 - lr * double(rule.weight_decay);
          m = double(rule.beta1) * m + (1 - double(rule.beta1)) * double(g[i]);
          v = double(rule.beta2) * v + (1 - double(rule.beta2)) * double(g[i]) * double(g[i]);
          const double tt = static_cast<double>(t);
          const double root = std::sqrt(v) / std::sqrt(1 - std::pow(double(rule.beta2), tt));
          x -= lr / (1 - std::pow(double(rule.beta1), tt)) * m / (root + double(rule.epsilon));
        }
        ApplyRule(RuleAtStep(rule, lr, t), StepSize(rule, lr, t), n, g.data(), w.data(),
                  state.data());
      }
      for (uint32_t i = 0; i < n; ++i) EXPECT_NEAR(w[i], expected.weight[i], 2e-6) << decay;
    }
  }
}

// Without a gradient, two steps at rate 0.5 leave (1 - 0.5 * 0.2)^2 of a weight.
TEST(AdamW, DecaysWithoutAGradient) {
  RuleParams rule;
  rule.kind = RuleKind::kAdamW;
  rule.weight_decay = 0.2f;
  float w = 2, state[2] = {};
  const float zero = 0;
  for (uint64_t t = 1; t <= 2; ++t) {
    ApplyRule(RuleAtStep(rule, 0.5, t), StepSize(rule, 0.5, t), 1, &zero, &w, state);
  }
  EXPECT_NEAR(w, 2 * 0.81, 1e-6);
  ApplyRule(RuleAtStep(rule, 0, 3), StepSize(rule, 0, 3), 1, &zero, &w, state);
  EXPECT_NEAR(w, 2 * 0.81, 1e-6) << "a rate of zero moves nothing";
}

TEST(Adagrad, UpdatesTheSumBeforeTheStep) {
  RuleParams rule;
  rule.kind = RuleKind::kAdagrad;
  rule.initial_g2sum = 0;
  const std::vector<float> w = Steps(rule, 0.1, {3, 4});  // roots 3 and 5
  EXPECT_NEAR(w[0], 1 - 0.1 * 3 / 3, 1e-6);
  EXPECT_NEAR(w[1], 0.9 - 0.1 * 4 / 5, 1e-6);
}

TEST(Adagrad, SumStartsAtTheInitialValue) {
  RuleParams rule;
  rule.kind = RuleKind::kAdagrad;
  rule.initial_g2sum = 7;
  EXPECT_NEAR(Steps(rule, 0.1, {3})[0], 1 - 0.1 * 3 / 4, 1e-6);
}

TEST(Momentum, KeepsAFractionOfTheLastStep) {
  RuleParams rule;
  rule.kind = RuleKind::kMomentum;
  rule.beta1 = 0.5f;
  const std::vector<float> w = Steps(rule, 0.1, {2, 0, 1});  // velocities -0.2, -0.1, -0.15
  EXPECT_NEAR(w[0], 0.8, 1e-6);
  EXPECT_NEAR(w[1], 0.7, 1e-6);
  EXPECT_NEAR(w[2], 0.55, 1e-6);
}

TEST(Nesterov, LooksAheadByTheVelocity) {
  RuleParams rule;
  rule.kind = RuleKind::kNesterov;
  rule.beta1 = 0.5f;
  const std::vector<float> w = Steps(rule, 0.1, {2, 0});  // velocities -0.2, -0.1
  EXPECT_NEAR(w[0], 1 - 1.5 * 0.2, 1e-6);
  EXPECT_NEAR(w[1], 0.7 + 0.5 * 0.2 - 1.5 * 0.1, 1e-6);
}

// g = 2 at rate 0.1: sigma 20, z = 2 - 20 = -18; w = (18 - 3) / ((1 + 2) / 0.1 + 5).
TEST(Ftrl, FollowsAlgorithmOneByHand) {
  RuleParams rule;
  rule.kind = RuleKind::kFtrl;
  rule.lambda1 = 3;
  rule.lambda2 = 5;
  EXPECT_NEAR(Steps(rule, 0.1, {2})[0], 15.0 / 35, 1e-6);
  rule.lambda1 = 18.5f;
  EXPECT_EQ(Steps(rule, 0.1, {2})[0], 0.0f) << "|z| does not exceed lambda1";
  EXPECT_EQ(Steps(rule, 0.0, {2})[0], 1.0f) << "a learning rate of zero must not move the weight";
}

// z is a difference of rounded sums of squares and therefore less exact than other rules' states.
TEST(Ftrl, FollowsItsFormulaInDouble) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  RuleParams rule;
  rule.kind = RuleKind::kFtrl;
  rule.lambda1 = 0.05f;
  rule.lambda2 = 0.1f;
  std::vector<float> w(16), g(16), state(32);
  for (float& x : w) x = 0.1f * normal(random);
  size_t zeros = 0;
  for (uint64_t t = 1; t <= 200; ++t) {
    for (float& x : g) x = normal(random);
    const DoubleStep expected = Reference(rule, 0.05, t, g, w, state);
    ApplyRule(rule, 0.05f, 16, g.data(), w.data(), state.data());
    for (size_t i = 0; i < 16; ++i) {
      ASSERT_NEAR(w[i], expected.weight[i], 1e-5) << "t " << t << " i " << i;
      ASSERT_NEAR(state[i], expected.state[i], 2e-4) << "t " << t << " i " << i;
      zeros += w[i] == 0.0f;
    }
  }
  EXPECT_GT(zeros, 0u);
  EXPECT_LT(zeros, 1600u);
}

TEST(AdagradShared, StepsWithTheOldSumAndAddsTheMeanSquare) {
  RuleParams rule;
  rule.kind = RuleKind::kAdagradShared;
  float w[] = {1, 1}, state[] = {0};
  const float g[] = {1, 2};
  ApplyRule(rule, 0.05f, 2, g, w, state);
  EXPECT_NEAR(w[0], 0.95, 1e-6);
  EXPECT_NEAR(w[1], 0.90, 1e-6);
  EXPECT_EQ(state[0], 2.5f);
  ApplyRule(rule, 0.05f, 2, g, w, state);
  EXPECT_NEAR(w[0], 0.95 - 0.05 * std::sqrt(3 / 5.5), 1e-6);
  EXPECT_NEAR(w[1], 0.90 - 0.10 * std::sqrt(3 / 5.5), 1e-6);
  EXPECT_EQ(state[0], 5.0f);
}

// Gradients 3 and 4: the mean square is 12.5, then 25.
TEST(AdagradRowwise, StepsWithTheNewMeanSquare) {
  RuleParams rule;
  rule.kind = RuleKind::kAdagradRowwise;
  rule.epsilon = 0.5f;
  float w[] = {1, 1}, state[] = {0};
  const float g[] = {3, 4};
  ApplyRule(rule, 0.1f, 2, g, w, state);
  EXPECT_NEAR(w[0], 1 - 0.3 / (std::sqrt(12.5) + 0.5), 1e-6);
  EXPECT_NEAR(w[1], 1 - 0.4 / (std::sqrt(12.5) + 0.5), 1e-6);
  ApplyRule(rule, 0.1f, 2, g, w, state);
  EXPECT_EQ(state[0], 25.0f);
  EXPECT_NEAR(w[0], 1 - 0.3 / (std::sqrt(12.5) + 0.5) - 0.3 / 5.5, 1e-6);
}

TEST(AdagradStd, KeepsOneSumPerWeight) {
  RuleParams rule;
  rule.kind = RuleKind::kAdagradStd;
  const std::vector<float> w = Steps(rule, 0.05, {2, 2});
  EXPECT_NEAR(w[0], 0.9, 1e-6);
  EXPECT_NEAR(w[1], 0.9 - 0.1 * std::sqrt(3.0 / 7), 1e-6);
}

TEST(WeightBound, ClipsBothSides) {
  EXPECT_EQ(ClipWeight(5, 2), 2);
  EXPECT_EQ(ClipWeight(-5, 2), -2);
  EXPECT_EQ(ClipWeight(1, 2), 1);
  EXPECT_EQ(ClipWeight(5, 0), 5);
}

TEST(StepSize, IsTheLearningRateExceptForAdam) {
  RuleParams rule;
  EXPECT_EQ(StepSize(rule, 0.1, 3), 0.1f);
  rule.kind = RuleKind::kAdam;
  EXPECT_NEAR(StepSize(rule, 0.1, 1), 0.1 * std::sqrt(0.001) / 0.1, 1e-6);
  EXPECT_NEAR(StepSize(rule, 0.1, 1000000), 0.1, 1e-8);  // the corrections have vanished
}

TEST(UpdateRules, ListsEveryKindOfTheSchemaOnce) {
  std::vector<int> kinds;
  for (const RuleInfo& rule : UpdateRules()) kinds.push_back(static_cast<int>(rule.kind));
  std::sort(kinds.begin(), kinds.end());
  std::vector<int> expected;
  for (int kind = 0; v1::UpdateRule::Kind_IsValid(kind); ++kind) expected.push_back(kind);
  EXPECT_EQ(kinds, expected);
}

TEST(UpdateRules, NamesAsManyStatesAsARowHolds) {
  for (const RuleInfo& rule : UpdateRules()) {
    const uint32_t states = RuleStateFloats(rule.kind, 1);
    EXPECT_EQ(rule.files.size(), states) << rule.type;
    EXPECT_EQ(rule.columns.size(), rule.one_state_a_row ? 0 : states) << rule.type;
    EXPECT_EQ(&InfoOf(rule.kind), &rule);
    EXPECT_EQ(FindUpdateRule(rule.type), &rule);
  }
}

TEST(UpdateRules, FindsNoRuleForAnUnknownType) {
  EXPECT_EQ(FindUpdateRule("Adagrad2"), nullptr);
  EXPECT_EQ(FindUpdateRule(""), nullptr);
}

TEST(UpdateRules, EveryConstantIsAFieldOfTheSchema) {
  for (const RuleInfo& rule : UpdateRules()) {
    for (const RuleConstant& constant : rule.constants) {
      EXPECT_NE(v1::UpdateRule::descriptor()->FindFieldByName(constant.name), nullptr)
          << rule.type << " " << constant.name;
    }
  }
}

}  // namespace
}  // namespace cistern
