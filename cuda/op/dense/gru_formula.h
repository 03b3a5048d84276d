// One element of a gated recurrent unit: the same formula on the CPU and on the GPU. Internal to
// gru_cell_cpu.cc and gru_cell.cu.
#pragma once

#include "cuda/op/dense/logistic_formula.h"

namespace cistern::op {

// An element of each of the three parts of x' or h', or of r, i and m.
struct GruParts {
  float r, i, m;
};

CISTERN_HOST_DEVICE inline GruParts GruGatesAt(const GruParts& x, const GruParts& h) {
  const float r = LogisticAt(x.r + h.r).above;
  return {r, LogisticAt(x.i + h.i).above, tanhf(x.m + r * h.m)};
}

CISTERN_HOST_DEVICE inline float GruOutputAt(const GruParts& gates, float h) {
  return (1.0f - gates.i) * gates.m + gates.i * h;
}

// The gradients of x'; that of h' has the factor r in part m. product: h'(m).
CISTERN_HOST_DEVICE inline GruParts GruGradientAt(const GruParts& gates, float product, float h,
                                                  float dy) {
  const float dm = dy * (1.0f - gates.i) * (1.0f - gates.m * gates.m);
  return {dm * product * gates.r * (1.0f - gates.r),
          dy * (h - gates.m) * gates.i * (1.0f - gates.i), dm};
}

}  // namespace cistern::op
