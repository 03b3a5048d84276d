// Dice, the activation of Deep Interest Networks (Zhou et al. 2018, section 5.3; PReLU_Dice of
// HugeCTR 3.x): a PReLU whose rectified point follows the distribution of its input.
//
// With z = (x - mean) / standard deviation of the column, and p = 1 / (1 + exp(-z)):
//   y = p x + (1 - p) alpha x.
// A training step is BatchNormStatistics (batch_norm.h), then Dice.
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// x, y: [b, n], may be the same array. mean, inv_std: [n].
void Dice(ConstValues x, const float* mean, const float* inv_std, float alpha, Values y, size_t b,
          size_t n, Stream& stream);

// The same with inv_std = 1 / sqrt(running_var + eps), and running_mean as the mean.
void DiceInference(ConstValues x, const float* running_mean, const float* running_var, float eps,
                   float alpha, Values y, size_t b, size_t n, Stream& stream);

// The two ways in which a gradient reaches x: dx = (p + (1 - p) alpha) dy, and through z,
// dz = (1 - alpha) x p (1 - p) dy, which is the gradient of a batch normalization's output:
// BatchNormBackward(kAccumulate) with scales of 1 adds it to dx.
//
// x, dy, dx, dz: [b, n]; dz is overwritten and may be dy.
void DiceBackward(ConstValues x, const float* mean, const float* inv_std, float alpha,
                  ConstValues dy, Write dx_write, Values dx, Values dz, size_t b, size_t n,
                  Stream& stream);

}  // namespace cistern::op
