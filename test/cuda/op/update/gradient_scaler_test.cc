#include "cuda/op/update/gradient_scaler.h"

#include <limits>

#include "cuda/op/update/dense_update.h"
#include "cuda/op/update/sparse_update.h"
#include "test/cuda/op/op_test.h"

namespace cistern::op {
namespace {

class GradientScalerTest : public OpTest {
 protected:
  // Runs UpdateGradientScaler on these sums, starting from the state `before`.
  GradientScaler Updated(const Doubles& sums, const StepRule& rule,
                         const GradientScaler& before = {}) {
    Array<GradientScaler> scaler(1, before);
    UpdateGradientScaler(Array<double>(sums).data(), (sums.size() - 3) / 2, rule, scaler.data(),
                         stream());
    return scaler.Read()[0];
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, GradientScalerTest, testing::ValuesIn(OpCases()), OpCaseName);

TEST_P(GradientScalerTest, AddsPenaltiesAndSquares) {
  StepRule rule;
  rule.dense_penalty = 0.5;
  rule.embedding_penalty = 0.25;
  const GradientScaler scaler = Updated({0.7, 3, 16, 8, 4, 10, 5}, rule);
  EXPECT_DOUBLE_EQ(scaler.loss, 0.7 + 0.25 * 8 + 0.25 * 10 + 0.5 * 3);
  EXPECT_DOUBLE_EQ(scaler.grad_norm, 5);
  EXPECT_EQ(scaler.factor, 1);
  EXPECT_EQ(scaler.updates_allowed, 1u);
}

TEST_P(GradientScalerTest, ClipsAsTorchDoes) {
  StepRule rule;
  rule.clip_norm = 2;
  EXPECT_EQ(Updated({0, 0, 25}, rule).factor, static_cast<float>(2 / (5 + 1e-6)));
  EXPECT_EQ(Updated({0, 0, 1}, rule).factor, 1);
}

TEST_P(GradientScalerTest, SkipsUpdatesOnNonFiniteSums) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double bad : {infinity, -infinity, std::nan("")}) {
    for (size_t i = 0; i < 5; ++i) {
      Doubles sums = {1, 1, 1, 1, 1};
      sums[i] = bad;
      StepRule rule;
      rule.dense_penalty = rule.embedding_penalty = 1;
      EXPECT_EQ(Updated(sums, rule).updates_allowed, 0u) << i << " " << bad;
    }
  }
}

// The squared norm would overflow in the optimizer state, unless gradients are clipped.
TEST_P(GradientScalerTest, SkipsUpdatesIfTheSquaredNormOverflows) {
  StepRule rule;
  EXPECT_EQ(Updated({1, 1, 1e38}, rule).updates_allowed, 1u);
  EXPECT_EQ(Updated({1, 1, 1e39}, rule).updates_allowed, 0u);
  rule.clip_norm = 10;
  EXPECT_EQ(Updated({1, 1, 1e39}, rule).updates_allowed, 1u);
}

TEST_P(GradientScalerTest, NormAndFactorAreUnscaled) {
  GradientScaler before;
  before.loss_scale = 1024;
  StepRule rule;
  rule.scaling = LossScaling::kConstant;
  const GradientScaler scaler = Updated({1, 0, 25.0 * 1024 * 1024}, rule, before);
  EXPECT_EQ(scaler.grad_norm, 5);
  EXPECT_EQ(scaler.factor, 1.0f / 1024);
  EXPECT_EQ(scaler.updates_allowed, 1u);
  EXPECT_EQ(scaler.loss_scale, 1024);
  rule.clip_norm = 2;
  EXPECT_EQ(Updated({1, 0, 25.0 * 1024 * 1024}, rule, before).factor,
            static_cast<float>(2 / (5 + 1e-6)) / 1024);
}

TEST_P(GradientScalerTest, DynamicScaleHalvesOnOverflowAndDoublesAfterGoodSteps) {
  const double infinity = std::numeric_limits<double>::infinity();
  StepRule rule;
  rule.scaling = LossScaling::kDynamic;
  GradientScaler scaler;
  scaler.loss_scale = kFirstLossScale;
  scaler.good_steps = 7;
  scaler = Updated({1, 0, infinity}, rule, scaler);
  EXPECT_EQ(scaler.updates_allowed, 0u);
  EXPECT_EQ(scaler.overflowed, 1u);
  EXPECT_EQ(scaler.loss_scale, kFirstLossScale / 2);
  EXPECT_EQ(scaler.good_steps, 0u);
  // After an overflow updates are allowed again, even though stays_closed is set.
  scaler = Updated({1, 0, 1}, rule, scaler);
  EXPECT_EQ(scaler.updates_allowed, 1u);
  EXPECT_EQ(scaler.overflowed, 0u);
  EXPECT_EQ(scaler.good_steps, 1u);
  scaler.good_steps = kStepsToDoubleScale - 1;
  scaler = Updated({1, 0, 1}, rule, scaler);
  EXPECT_EQ(scaler.loss_scale, kFirstLossScale);
  EXPECT_EQ(scaler.factor, 2 / kFirstLossScale);  // of this step, not of the next
  EXPECT_EQ(scaler.good_steps, 0u);
  scaler.loss_scale = kLargestLossScale;
  scaler.good_steps = kStepsToDoubleScale - 1;
  EXPECT_EQ(Updated({1, 0, 1}, rule, scaler).loss_scale, kLargestLossScale);
}

TEST_P(GradientScalerTest, FailuresNotCausedByTheScaleArePermanent) {
  const double infinity = std::numeric_limits<double>::infinity();
  StepRule rule;
  rule.scaling = LossScaling::kDynamic;
  GradientScaler scaler;
  scaler.loss_scale = 2;
  const GradientScaler by_loss = Updated({infinity, 0, infinity}, rule, scaler);
  EXPECT_EQ(by_loss.overflowed, 0u);
  EXPECT_EQ(by_loss.loss_scale, 2);
  EXPECT_EQ(Updated({1, 0, 1}, rule, by_loss).updates_allowed, 0u);
  scaler = Updated({1, 0, infinity}, rule, scaler);
  EXPECT_EQ(scaler.overflowed, 1u);
  scaler = Updated({1, 0, infinity}, rule, scaler);  // with a scale of 1
  EXPECT_EQ(scaler.loss_scale, 1);
  EXPECT_EQ(scaler.updates_allowed, 0u);
  EXPECT_EQ(scaler.overflowed, 0u);
  EXPECT_EQ(Updated({1, 0, 1}, rule, scaler).updates_allowed, 0u);
  // Without loss scaling nothing counts as an overflow.
  EXPECT_EQ(Updated({1, 0, infinity}, StepRule()).overflowed, 0u);
}

TEST_P(GradientScalerTest, ConstantScaleStaysAndAnOverflowSkipsOneStep) {
  StepRule rule;
  rule.scaling = LossScaling::kConstant;
  GradientScaler scaler;
  scaler.loss_scale = 128;
  scaler = Updated({1, 0, std::nan("")}, rule, scaler);
  EXPECT_EQ(scaler.updates_allowed, 0u);
  EXPECT_EQ(scaler.loss_scale, 128);
  EXPECT_EQ(Updated({1, 0, 1}, rule, scaler).updates_allowed, 1u);
}

TEST_P(GradientScalerTest, UpdatesStaySkippedIfStaysClosedIsSet) {
  GradientScaler closed;
  closed.updates_allowed = 0;
  StepRule rule;
  EXPECT_EQ(Updated({1, 1, 1}, rule, closed).updates_allowed, 0u);
  rule.stays_closed = false;
  EXPECT_EQ(Updated({1, 1, 1}, rule, closed).updates_allowed, 1u);
}

TEST_P(GradientScalerTest, CopiesOnlyIfUpdatesAreAllowed) {
  const Doubles x = Random(b() * n());
  const GradientScaler open;
  GradientScaler closed;
  closed.updates_allowed = 0;
  Floats copied(x.size(), kUnset), not_copied(x.size(), kUnset);
  CopyIfUpdatesAllowed(Array<GradientScaler>(1, open).data(), Floats(x).data(), copied.data(),
                       x.size(), stream());
  CopyIfUpdatesAllowed(Array<GradientScaler>(1, closed).data(), Floats(x).data(), not_copied.data(),
                       x.size(), stream());
  ExpectNear(x, copied, 0);
  ExpectNear(Doubles(x.size(), kUnset), not_copied, 0);
}

// If updates are skipped, nothing changes. If they are allowed, the result is that of gradients
// multiplied by the factor, without a scaler.
TEST_P(GradientScalerTest, AppliesOrSkipsUpdates) {
  for (const RuleKind kind : {RuleKind::kSgd, RuleKind::kAdam, RuleKind::kAdagradShared,
                              RuleKind::kAdagradRowwise, RuleKind::kAdamW}) {
    RuleParams rule;
    rule.kind = kind;
    const size_t state = RuleStateFloats(kind, static_cast<uint32_t>(n()));
    const size_t stride = n() + state;
    const Doubles first = Random(b() * stride, 0.5, 1), grads = Random(b() * n());
    Doubles quarter = grads;
    for (double& v : quarter) v *= 0.25;
    std::vector<uint32_t> rows(b());
    for (size_t i = 0; i < b(); ++i) rows[i] = static_cast<uint32_t>(i);
    for (const uint32_t open : {0u, 1u}) {
      GradientScaler scaler;
      scaler.updates_allowed = open;
      scaler.factor = 0.25f;
      Floats through(first), without(first);
      const Array<uint32_t> listed(rows);
      SparseUpdate(rule, 0.1f, listed.data(), Floats(grads).data(), through.data(),
                   through.data() + n(), stride, b(), n(), Array<GradientScaler>(1, scaler).data(),
                   stream());
      SparseUpdate(rule, 0.1f, listed.data(), Floats(quarter).data(), without.data(),
                   without.data() + n(), stride, b(), n(), nullptr, stream());
      EXPECT_EQ(through.Read(), open == 1 ? without.Read() : Floats(first).Read());
      if (SharesState(kind)) continue;
      const Doubles weights = Random(b() * n(), 0.5, 1);
      const Doubles states = Random(RuleStateFloats(kind, 1) * b() * n(), 0.5, 1);
      Floats weight(weights), moved(weights), of_weight(states), of_moved(states);
      DenseUpdate(rule, 0.1f, Floats(grads).data(), weight.data(), of_weight.data(), b() * n(),
                  Array<GradientScaler>(1, scaler).data(), stream());
      DenseUpdate(rule, 0.1f, Floats(quarter).data(), moved.data(), of_moved.data(), b() * n(),
                  nullptr, stream());
      EXPECT_EQ(weight.Read(), open == 1 ? moved.Read() : Floats(weights).Read());
      EXPECT_EQ(of_weight.Read(), open == 1 ? of_moved.Read() : Floats(states).Read());
    }
  }
}

}  // namespace
}  // namespace cistern::op
