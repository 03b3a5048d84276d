#include "cuda/op/update/step_gate.h"

#include <limits>

#include "cuda/op/update/dense_update.h"
#include "cuda/op/update/sparse_update.h"
#include "test/cuda/op/op_test.h"

namespace cistern::op {
namespace {

class StepGateTest : public OpTest {
 protected:
  // The gate after JudgeStep of these sums, where it was `before`.
  StepGate Judged(const Doubles& sums, const StepRule& rule, const StepGate& before = {}) {
    Array<StepGate> gate(1, before);
    JudgeStep(Array<double>(sums).data(), (sums.size() - 3) / 2, rule, gate.data(), stream());
    return gate.Read()[0];
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, StepGateTest, testing::ValuesIn(OpCases()), OpCaseName);

TEST_P(StepGateTest, AddsPenaltiesAndSquares) {
  StepRule rule;
  rule.dense_penalty = 0.5;
  rule.embedding_penalty = 0.25;
  const StepGate gate = Judged({0.7, 3, 16, 8, 4, 10, 5}, rule);
  EXPECT_DOUBLE_EQ(gate.loss, 0.7 + 0.25 * 8 + 0.25 * 10 + 0.5 * 3);
  EXPECT_DOUBLE_EQ(gate.grad_norm, 5);
  EXPECT_EQ(gate.factor, 1);
  EXPECT_EQ(gate.open, 1u);
}

TEST_P(StepGateTest, ClipsAsTorchDoes) {
  StepRule rule;
  rule.clip_norm = 2;
  EXPECT_EQ(Judged({0, 0, 25}, rule).factor, static_cast<float>(2 / (5 + 1e-6)));
  EXPECT_EQ(Judged({0, 0, 1}, rule).factor, 1);
}

TEST_P(StepGateTest, ClosesOnWhatIsNotFinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double bad : {infinity, -infinity, std::nan("")}) {
    for (size_t i = 0; i < 5; ++i) {
      Doubles sums = {1, 1, 1, 1, 1};
      sums[i] = bad;
      StepRule rule;
      rule.dense_penalty = rule.embedding_penalty = 1;
      EXPECT_EQ(Judged(sums, rule).open, 0u) << i << " " << bad;
    }
  }
}

// Its square would be infinite in the state of an optimizer, unless it is clipped.
TEST_P(StepGateTest, ClosesOnANormThatIsTooLargeToBeSquared) {
  StepRule rule;
  EXPECT_EQ(Judged({1, 1, 1e38}, rule).open, 1u);
  EXPECT_EQ(Judged({1, 1, 1e39}, rule).open, 0u);
  rule.clip_norm = 10;
  EXPECT_EQ(Judged({1, 1, 1e39}, rule).open, 1u);
}

TEST_P(StepGateTest, NormAndFactorAreOfUnscaledGradients) {
  StepGate before;
  before.loss_scale = 1024;
  StepRule rule;
  rule.scaling = LossScaling::kConstant;
  const StepGate gate = Judged({1, 0, 25.0 * 1024 * 1024}, rule, before);
  EXPECT_EQ(gate.grad_norm, 5);
  EXPECT_EQ(gate.factor, 1.0f / 1024);
  EXPECT_EQ(gate.open, 1u);
  EXPECT_EQ(gate.loss_scale, 1024);
  rule.clip_norm = 2;
  EXPECT_EQ(Judged({1, 0, 25.0 * 1024 * 1024}, rule, before).factor,
            static_cast<float>(2 / (5 + 1e-6)) / 1024);
}

TEST_P(StepGateTest, ADynamicScaleHalvesOnOverflowAndDoublesAfterGoodSteps) {
  const double infinity = std::numeric_limits<double>::infinity();
  StepRule rule;
  rule.scaling = LossScaling::kDynamic;
  StepGate gate;
  gate.loss_scale = kFirstLossScale;
  gate.good_steps = 7;
  gate = Judged({1, 0, infinity}, rule, gate);
  EXPECT_EQ(gate.open, 0u);
  EXPECT_EQ(gate.overflowed, 1u);
  EXPECT_EQ(gate.loss_scale, kFirstLossScale / 2);
  EXPECT_EQ(gate.good_steps, 0u);
  // The gate opens again although it stays closed after a failure.
  gate = Judged({1, 0, 1}, rule, gate);
  EXPECT_EQ(gate.open, 1u);
  EXPECT_EQ(gate.overflowed, 0u);
  EXPECT_EQ(gate.good_steps, 1u);
  gate.good_steps = kStepsToDoubleScale - 1;
  gate = Judged({1, 0, 1}, rule, gate);
  EXPECT_EQ(gate.loss_scale, kFirstLossScale);
  EXPECT_EQ(gate.factor, 2 / kFirstLossScale);  // of the step that was, not of the next
  EXPECT_EQ(gate.good_steps, 0u);
  gate.loss_scale = kLargestLossScale;
  gate.good_steps = kStepsToDoubleScale - 1;
  EXPECT_EQ(Judged({1, 0, 1}, rule, gate).loss_scale, kLargestLossScale);
}

TEST_P(StepGateTest, WhatNoScaleCausedIsNotForgiven) {
  const double infinity = std::numeric_limits<double>::infinity();
  StepRule rule;
  rule.scaling = LossScaling::kDynamic;
  StepGate gate;
  gate.loss_scale = 2;
  const StepGate by_loss = Judged({infinity, 0, infinity}, rule, gate);
  EXPECT_EQ(by_loss.overflowed, 0u);
  EXPECT_EQ(by_loss.loss_scale, 2);
  EXPECT_EQ(Judged({1, 0, 1}, rule, by_loss).open, 0u);
  gate = Judged({1, 0, infinity}, rule, gate);
  EXPECT_EQ(gate.overflowed, 1u);
  gate = Judged({1, 0, infinity}, rule, gate);  // with a scale of 1
  EXPECT_EQ(gate.loss_scale, 1);
  EXPECT_EQ(gate.open, 0u);
  EXPECT_EQ(gate.overflowed, 0u);
  EXPECT_EQ(Judged({1, 0, 1}, rule, gate).open, 0u);
  // Without scaling nothing is.
  EXPECT_EQ(Judged({1, 0, infinity}, StepRule()).overflowed, 0u);
}

TEST_P(StepGateTest, AConstantScaleStaysAndOnlySkips) {
  StepRule rule;
  rule.scaling = LossScaling::kConstant;
  StepGate gate;
  gate.loss_scale = 128;
  gate = Judged({1, 0, std::nan("")}, rule, gate);
  EXPECT_EQ(gate.open, 0u);
  EXPECT_EQ(gate.loss_scale, 128);
  EXPECT_EQ(Judged({1, 0, 1}, rule, gate).open, 1u);
}

TEST_P(StepGateTest, StaysClosedWhereItIsToldTo) {
  StepGate closed;
  closed.open = 0;
  StepRule rule;
  EXPECT_EQ(Judged({1, 1, 1}, rule, closed).open, 0u);
  rule.stays_closed = false;
  EXPECT_EQ(Judged({1, 1, 1}, rule, closed).open, 1u);
}

TEST_P(StepGateTest, CopiesOrNot) {
  const Doubles x = Random(b() * n());
  const StepGate open;
  StepGate closed;
  closed.open = 0;
  Floats copied(x.size(), kUnset), not_copied(x.size(), kUnset);
  CopyIfOpen(Array<StepGate>(1, open).data(), Floats(x).data(), copied.data(), x.size(), stream());
  CopyIfOpen(Array<StepGate>(1, closed).data(), Floats(x).data(), not_copied.data(), x.size(),
             stream());
  ExpectNear(x, copied, 0);
  ExpectNear(Doubles(x.size(), kUnset), not_copied, 0);
}

// Through a gate that is closed no update passes; through an open one as without a gate, of
// gradients that its factor is on.
TEST_P(StepGateTest, LetsUpdatesThroughOrNot) {
  for (const RuleKind kind : {RuleKind::kSgd, RuleKind::kAdam, RuleKind::kAdagradShared}) {
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
      StepGate gate;
      gate.open = open;
      gate.factor = 0.25f;
      Floats through(first), without(first);
      const Array<uint32_t> listed(rows);
      SparseUpdate(rule, 0.1f, listed.data(), Floats(grads).data(), through.data(),
                   through.data() + n(), stride, b(), n(), Array<StepGate>(1, gate).data(),
                   stream());
      SparseUpdate(rule, 0.1f, listed.data(), Floats(quarter).data(), without.data(),
                   without.data() + n(), stride, b(), n(), nullptr, stream());
      EXPECT_EQ(through.Read(), open == 1 ? without.Read() : Floats(first).Read());
      if (kind == RuleKind::kAdagradShared) continue;
      const Doubles weights = Random(b() * n(), 0.5, 1);
      const Doubles states = Random(RuleStateFloats(kind, 1) * b() * n(), 0.5, 1);
      Floats weight(weights), moved(weights), of_weight(states), of_moved(states);
      DenseUpdate(rule, 0.1f, Floats(grads).data(), weight.data(), of_weight.data(), b() * n(),
                  Array<StepGate>(1, gate).data(), stream());
      DenseUpdate(rule, 0.1f, Floats(quarter).data(), moved.data(), of_moved.data(), b() * n(),
                  nullptr, stream());
      EXPECT_EQ(weight.Read(), open == 1 ? moved.Read() : Floats(weights).Read());
      EXPECT_EQ(of_weight.Read(), open == 1 ? of_moved.Read() : Floats(states).Read());
    }
  }
}

}  // namespace
}  // namespace cistern::op
