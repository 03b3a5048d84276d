// How a server moves dense parameters by their gradients (PSLib's and Paddle's dense tables).
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
// Every row carries the state of its rule, the number of Adam's steps too, so whatever keeps the
// rows (a commit, a saved model) keeps the rule's state. (PSLib forgets Adam's powers at a load,
// and multiplies them once a thread's slice.) ADAM_D2SUM does not touch avg_w. Arithmetic is in
// double, rounded once a cell and step.
#pragma once

#include "absl/types/span.h"
#include "proto/schema.pb.h"

namespace cistern {

// Takes one step with each row. The rule is not NONE, and columns are its own (CheckSchema).
//
// gradients: [n]. rows: [n, columns], row-major.
void ApplyDenseRule(const v1::DenseRule& rule, absl::Span<const float> gradients, float* rows);

}  // namespace cistern
