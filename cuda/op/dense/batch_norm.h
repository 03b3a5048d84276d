// BatchNorm per activation (Ioffe and Szegedy, 2015; HugeCTR 2.3 batch_norm_layer with cuDNN's rule
// for the running statistics). Optionally fused with the ReLU and dropout that follow it.
//
// A training step is BatchNormStatistics, then BatchNormForward; evaluation is BatchNormInference.
#pragma once

#include "cuda/op/dense/dropout.h"
#include "cuda/op/primitive/op.h"

namespace cistern::op {

// The epilogue fused into the forward pass. Dropout requires relu: without it y does not show which
// elements were dropped (use op::Dropout, which keeps a mask).
struct BatchNormEpilogue {
  bool relu = false;
  DropoutDraw dropout;  // rate 0: none
};

// mean = mean over the batch; inv_std = 1 / sqrt(biased variance + eps);
// running = (1 - factor) * running + factor * batch, where running_var takes the unbiased variance
// (times b / (b - 1); b = 1: the biased one).
//
// x: [b, n], b >= 1 unless n is 0. mean, inv_std: [n], overwritten. running_mean, running_var: [n],
// updated; start them at 0 and 1. scratch: BatchNormScratchFloats(b, n).
void BatchNormStatistics(ConstValues x, float factor, float eps, float* mean, float* inv_std,
                         float* running_mean, float* running_var, size_t b, size_t n,
                         float* scratch, Stream& stream);

// y = epilogue((x - mean) * inv_std * gamma + beta).
//
// x, y: [b, n]; keep x and y for the backward pass. mean, inv_std, gamma, beta: [n].
void BatchNormForward(ConstValues x, const float* mean, const float* inv_std, const float* gamma,
                      const float* beta, const BatchNormEpilogue& epilogue, Values y, size_t b,
                      size_t n, Stream& stream);

// With dz = the gradient before the epilogue (dy / (1 - rate) where y > 0, else 0; without an
// epilogue dy itself) and z = (x - mean) * inv_std:
//   dbeta = sum dz, dgamma = sum dz z, dx = gamma * inv_std * (dz - dbeta / b - z * dgamma / b).
//
// x, y, dy: [b, n]; y is read only with relu and may be null without. dx: [b, n], may be dy
// (kOverwrite), or null. dgamma, dbeta: [n], overwritten.
// scratch: BatchNormScratchFloats(b, n).
void BatchNormBackward(ConstValues x, ConstValues y, ConstValues dy, const float* mean,
                       const float* inv_std, const float* gamma, const BatchNormEpilogue& epilogue,
                       Write dx_write, Values dx, float* dgamma, float* dbeta, size_t b, size_t n,
                       float* scratch, Stream& stream);

// y = (x - running_mean) / sqrt(running_var + eps) * gamma + beta, then max(., 0) with relu.
// x, y: [b, n], may be the same array.
void BatchNormInference(ConstValues x, const float* running_mean, const float* running_var,
                        float eps, const float* gamma, const float* beta, bool relu, Values y,
                        size_t b, size_t n, Stream& stream);

size_t BatchNormScratchFloats(size_t b, size_t n);

}  // namespace cistern::op
