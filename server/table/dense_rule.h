// The rules by which a server updates dense parameters from their gradients (PSLib's and Paddle's
// dense tables).
//
//   SGD         w                     w -= learning_rate * g
//   ADAM        w m v step            step += 1; m = beta1 * m + (1 - beta1) * g;
//                                     v = beta2 * v + (1 - beta2) * g^2;
//                                     c1 = 1 - beta1^step; c2 = 1 - beta2^step;
//                                     w -= learning_rate * sqrt(c2) / c1 * m /
//                                          (sqrt(v) + epsilon * sqrt(c2))
//   ADAM_D2SUM  w avg_w ada_d2sum ada_g2sum mom_velocity
//                                     d2 = d2 * rho + 1; g2 = g2 * rho + g^2;
//                                     scale = sqrt((d2 + d2 * epsilon) / (g2 + d2 * epsilon));
//                                     mom = (mom + g) * mu - g; w += learning_rate * mom * scale
//   SUM         w                     w += g
//   SUMMARY     w                     w = w * decay + g
//
// Every row carries the state of its rule, including Adam's step count, so a commit or a saved
// model that keeps the rows keeps that state. (PSLib loses Adam's beta powers at a load, and
// multiplies them once per slice of a thread.) ADAM_D2SUM does not touch avg_w. Arithmetic is in
// double, rounded once per cell and step.
#pragma once

#include "absl/types/span.h"
#include "proto/schema.pb.h"

namespace cistern::server {

// Applies one step to each row. The rule is not NONE, and the columns are those of the rule
// (CheckSchema).
//
// gradients: [n]. rows: [n, columns], row-major.
void ApplyDenseRule(const v1::DenseRule& rule, absl::Span<const float> gradients, float* rows);

}  // namespace cistern::server
