#include "server/table/dense_rule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/value/schema.h"
#include "test/server/reference/dense_rule_golden.h"

namespace cistern::server {
namespace {

// The constants of dense_rule.py.
v1::DenseRule Rule(v1::DenseRule::Kind kind) {
  v1::DenseRule rule;
  rule.set_kind(kind);
  rule.set_learning_rate(0.01f);
  rule.set_beta1(0.9f);
  rule.set_beta2(0.999f);
  rule.set_epsilon(1e-8f);
  rule.set_rho(0.9999f);
  rule.set_mu(0.99f);
  rule.set_decay(0.999999f);
  return rule;
}

TEST(DenseRule, StepsMatchTheReference) {
  for (const GoldenRule& golden : kGoldenRules) {
    SCOPED_TRACE(v1::DenseRule::Kind_Name(golden.kind));
    std::vector<float> rows = golden.before;
    for (const std::vector<float>& gradients : kGoldenGradients) {
      ApplyDenseRule(Rule(golden.kind), gradients, rows.data());
    }
    ASSERT_EQ(rows.size(), golden.after.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_FLOAT_EQ(rows[i], golden.after[i]) << "cell " << i;
    }
  }
}

TEST(DenseRule, FirstStepOfAdamIsTheLearningRateForAnyGradient) {
  std::vector<float> rows = {1, 0, 0, 0, 1, 0, 0, 0};
  ApplyDenseRule(Rule(v1::DenseRule::ADAM), {1000.0f, -0.001f}, rows.data());
  EXPECT_NEAR(rows[0], 0.99, 1e-6);
  EXPECT_NEAR(rows[4], 1.01, 1e-6);
  EXPECT_EQ(rows[3], 1);
  EXPECT_EQ(rows[7], 1);
}

// One call is one step, whatever the number of rows: two halves give the same result as the whole.
TEST(DenseRule, StepsDoNotDependOnSlices) {
  const std::vector<float> gradients = {1, 2, 3, 4};
  std::vector<float> whole(16, 0.5f), slices(16, 0.5f);
  const v1::DenseRule rule = Rule(v1::DenseRule::ADAM);
  ApplyDenseRule(rule, gradients, whole.data());
  ApplyDenseRule(rule, absl::MakeConstSpan(gradients).first(2), slices.data());
  ApplyDenseRule(rule, absl::MakeConstSpan(gradients).last(2), slices.data() + 8);
  EXPECT_EQ(whole, slices);
}

TEST(DenseRule, D2SumFollowsItsFormulaAndKeepsTheAverage) {
  const double w = 0.25, d2 = 7, g2 = 3, mom = -0.5, g = 0.75;
  std::vector<float> row = {0.25f, 42.0f, 7, 3, -0.5f};
  v1::DenseRule rule = Rule(v1::DenseRule::ADAM_D2SUM);
  ApplyDenseRule(rule, {0.75f}, row.data());
  const double new_d2 = d2 * double{0.9999f} + 1, new_g2 = g2 * double{0.9999f} + g * g;
  const double new_mom = (mom + g) * double{0.99f} - g;
  const double scale =
      std::sqrt((new_d2 + new_d2 * double{1e-8f}) / (new_g2 + new_d2 * double{1e-8f}));
  EXPECT_FLOAT_EQ(row[0], static_cast<float>(w + double{0.01f} * new_mom * scale));
  EXPECT_EQ(row[1], 42.0f);
  EXPECT_FLOAT_EQ(row[2], static_cast<float>(new_d2));
  EXPECT_FLOAT_EQ(row[3], static_cast<float>(new_g2));
  EXPECT_FLOAT_EQ(row[4], static_cast<float>(new_mom));
}

}  // namespace
}  // namespace cistern::server
