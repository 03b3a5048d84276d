#include "cuda/op/update/deferred_updates.h"

#include "test/cuda/op/op_test.h"

namespace cistern::op {
namespace {

// b: rows, half of which are updated. n: dim.
class DeferredUpdatesTest : public OpTest {};

constexpr uint64_t kStep = 300;

RuleParams GlobalRule(RuleKind kind) {
  RuleParams rule;
  rule.kind = kind;
  rule.update_type = UpdateType::kGlobal;
  return rule;
}

// One step without a gradient, in double.
void StepInDouble(const RuleParams& rule, const float* step, double* w, double* s) {
  const double step_size = step[0];
  const double beta1 = rule.beta1, beta2 = rule.beta2, epsilon = rule.epsilon;
  s[0] *= beta1;
  if (rule.kind == RuleKind::kMomentum) {
    *w += s[0];
  } else if (rule.kind == RuleKind::kNesterov) {
    *w += (1 + beta1) * s[0] - s[0];
  } else if (rule.kind == RuleKind::kAdamW) {
    s[1] *= beta2;
    *w -= double(step[1]) * *w;
    *w -= step_size * s[0] / (std::sqrt(s[1]) + double(step[2]));
  } else {
    s[1] *= beta2;
    *w -= step_size * s[0] / (std::sqrt(s[1]) + epsilon);
  }
}

TEST_P(DeferredUpdatesTest, AppliesTheStepsThatWereDeferred) {
  for (const RuleKind kind :
       {RuleKind::kAdam, RuleKind::kAdamW, RuleKind::kMomentum, RuleKind::kNesterov}) {
    RuleParams rule = GlobalRule(kind);
    rule.weight_decay = 5;
    const size_t fields = RuleStateFloats(kind, 1);
    const size_t wide = n() + RowStateFloats(rule, static_cast<uint32_t>(n()));
    const size_t last = wide - 1;
    Doubles table = Random(2 * b() * wide, 0.1, 1);
    std::vector<float> sizes;
    for (uint64_t t = 1; t <= kStep; ++t) AppendStep(rule, 0.001, t, &sizes);
    for (size_t r = 0; r < 2 * b() && n() > 0; ++r) {
      table[r * wide + last] = static_cast<double>(r % 3 == 0 ? kStep : RandomIndex(kStep));
    }
    Floats values(table);
    std::vector<uint32_t> odd;
    for (uint32_t i = 0; i < b(); ++i) odd.push_back(2 * i + 1);
    ApplyDeferredUpdates(rule, Floats(Doubles(sizes.begin(), sizes.end())).data(),
                         FadingSteps(rule), kStep, kStep + 1,
                         Array<uint32_t>(Doubles(odd.begin(), odd.end())).data(), values.data(),
                         values.data() + n(), wide, b(), n(), stream());
    for (const uint32_t r : odd) {
      double* value = table.data() + r * wide;
      const auto from = n() > 0 ? static_cast<uint64_t>(value[last]) : 0;
      for (size_t e = 0; e < n(); ++e) {
        double state[2] = {};
        for (size_t f = 0; f < fields; ++f) state[f] = value[n() + f * n() + e];
        for (uint64_t t = from; t < kStep; ++t) {
          StepInDouble(rule, &sizes[t * InfoOf(kind).step_floats], value + e, state);
        }
        for (size_t f = 0; f < fields; ++f) value[n() + f * n() + e] = state[f];
      }
      if (n() > 0) value[last] = kStep + 1;
    }
    ExpectNear(table, values, 3e-5);
  }
}

TEST_P(DeferredUpdatesTest, NullRowsSelectAllRows) {
  const RuleParams rule = GlobalRule(RuleKind::kMomentum);
  const size_t wide = 2 * n() + 1;
  Doubles table(b() * wide, 1);
  Floats values(table);
  ApplyDeferredUpdates(rule, nullptr, 0, 2, 2, nullptr, values.data(), values.data() + n(), wide,
                       b(), n(), stream());
  for (size_t r = 0; r < b() && n() > 0; ++r) {
    for (size_t e = 0; e < n(); ++e) {
      table[r * wide + e] += static_cast<double>(rule.beta1);
      table[r * wide + n() + e] = static_cast<double>(rule.beta1);
    }
    table[r * wide + 2 * n()] = 2;
  }
  ExpectNear(table, values, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Devices, DeferredUpdatesTest, testing::ValuesIn(OpCases()), OpCaseName);

}  // namespace
}  // namespace cistern::op
