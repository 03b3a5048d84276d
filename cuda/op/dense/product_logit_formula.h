// ProductLogit of single elements: the same formula on the CPU and on the GPU. Internal to
// product_logit_cpu.cc and product_logit.cu.
#pragma once

#include "cuda/op/dense/logistic_formula.h"

namespace cistern::op {

// log(1 + exp(z)), without overflow.
CISTERN_HOST_DEVICE inline float SoftplusAt(float z) {
  return fmaxf(z, 0.0f) + log1pf(expf(-fabsf(z)));
}

// exp(-a) + exp(-b) + exp(-a - b) = exp(-a) (1 + exp(-b)) + exp(-b): the larger exponential is
// factored out.
CISTERN_HOST_DEVICE inline float ProductLogitAt(float a, float b) {
  const float u = SoftplusAt(-b) - a, v = -b;
  return -(fmaxf(u, v) + log1pf(expf(-fabsf(u - v))));
}

// (exp(-x) + exp(-x - other)) / (exp(-x) + exp(-other) + exp(-x - other)), divided by its
// numerator.
CISTERN_HOST_DEVICE inline float ProductLogitSlopeAt(float x, float other) {
  return LogisticAt(SoftplusAt(other) - x).above;
}

}  // namespace cistern::op
