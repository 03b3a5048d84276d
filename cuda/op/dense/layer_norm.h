// Layer normalization over the columns of each row (Ba, Kiros and Hinton 2016; HugeCTR 3.x,
// layer_norm_layer).
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// y = (x - mean) / sqrt(variance + eps) * gamma + beta, with the mean and the variance of the row:
// mean over c of (x - mean)^2.
//
// x, y: [b, n]. gamma, beta: [n].
void LayerNorm(ConstValues x, const float* gamma, const float* beta, float eps, Values y, size_t b,
               size_t n, Stream& stream);

// With xhat = (x - mean) / deviation and g = dy gamma:
//   dx = (g - mean over c of g - xhat * (mean over c of g xhat)) / deviation,
//   dgamma(c) = sum over r of dy xhat, dbeta(c) = sum over r of dy.
// The statistics are computed again, from x.
//
// x, dy: [b, n]. dx: [b, n], or null if it is not needed. dgamma, dbeta: [n], overwritten. scratch:
// LayerNormScratchFloats(b, n).
void LayerNormBackward(ConstValues x, const float* gamma, float eps, ConstValues dy, Write write,
                       Values dx, float* dgamma, float* dbeta, size_t b, size_t n, float* scratch,
                       Stream& stream);
size_t LayerNormScratchFloats(size_t b, size_t n);

}  // namespace cistern::op
