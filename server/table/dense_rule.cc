#include "server/table/dense_rule.h"

#include <cmath>

namespace cistern::server {
namespace {

void Round(double x, float* cell) {
  *cell = static_cast<float>(x);
}

// Calls step(g, row) for every row of `columns` cells.
template <typename Step>
void ForEachRow(absl::Span<const float> gradients, size_t columns, float* rows, Step step) {
  for (const float g : gradients) {
    step(double{g}, rows);
    rows += columns;
  }
}

void StepAdam(const v1::DenseRule& rule, double g, float* row) {
  float &w = row[0], &m = row[1], &v = row[2], &step = row[3];
  const double beta1 = rule.beta1(), beta2 = rule.beta2();
  const double t = double{step} + 1, new_m = beta1 * m + (1 - beta1) * g,
               new_v = beta2 * v + (1 - beta2) * g * g;
  const double root = std::sqrt(1 - std::pow(beta2, t));
  const double rate = rule.learning_rate() * root / (1 - std::pow(beta1, t));
  Round(w - rate * new_m / (std::sqrt(new_v) + rule.epsilon() * root), &w);
  Round(new_m, &m);
  Round(new_v, &v);
  Round(t, &step);
}

void StepAdamD2Sum(const v1::DenseRule& rule, double g, float* row) {
  float &w = row[0], &d2sum = row[2], &g2sum = row[3], &velocity = row[4];
  const double d2 = d2sum * double{rule.rho()} + 1, g2 = g2sum * double{rule.rho()} + g * g;
  const double floor = d2 * rule.epsilon();
  const double mom = (velocity + g) * rule.mu() - g;
  Round(w + rule.learning_rate() * mom * std::sqrt((d2 + floor) / (g2 + floor)), &w);
  Round(d2, &d2sum);
  Round(g2, &g2sum);
  Round(mom, &velocity);
}

}  // namespace

void ApplyDenseRule(const v1::DenseRule& rule, absl::Span<const float> gradients, float* rows) {
  switch (rule.kind()) {
    case v1::DenseRule::SGD:
      return ForEachRow(gradients, 1, rows,
                        [&](double g, float* w) { Round(*w - rule.learning_rate() * g, w); });
    case v1::DenseRule::ADAM:
      return ForEachRow(gradients, 4, rows, [&](double g, float* row) { StepAdam(rule, g, row); });
    case v1::DenseRule::ADAM_D2SUM:
      return ForEachRow(gradients, 5, rows,
                        [&](double g, float* row) { StepAdamD2Sum(rule, g, row); });
    case v1::DenseRule::SUM:
      return ForEachRow(gradients, 1, rows, [](double g, float* w) { Round(*w + g, w); });
    case v1::DenseRule::SUMMARY:
      return ForEachRow(gradients, 1, rows,
                        [&](double g, float* w) { Round(*w * double{rule.decay()} + g, w); });
    default:
      return;  // NONE: values are pushed
  }
}

}  // namespace cistern::server
