// The pointwise attention of HSTU (Zhai et al. 2024, "Actions Speak Louder than Words", equations 1
// and 2): SiLU instead of softmax, so that shares do not sum to 1, and a bias for each distance.
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// y = x / (1 + exp(-x)). x, y: [count], may be the same array.
void Silu(ConstValues x, Values y, size_t count, Stream& stream);

// dx = s (1 + x (1 - s)) dy with s = 1 / (1 + exp(-x)). x, dy, dx: [count]; dy and dx may be the
// same array (kOverwrite).
void SiluBackward(ConstValues x, ConstValues dy, Write write, Values dx, size_t count,
                  Stream& stream);

// What a position attends to, in b samples of n positions.
struct SiluAttention {
  const float* bias;   // [heads, 2 n - 1], by i - j + n - 1
  ConstValues mask;    // [b, n, n], of the type of the scores; null: 1
  bool causal = true;  // position i attends to positions j <= i only
  size_t b, heads, n;
};

// y(s, h, i, j) = mask(s, i, j) silu(x(s, h, i, j) + bias(h, i - j + n - 1)) / n.
//
// x, y: [b, heads, n, n], may be the same array.
void SiluShares(const SiluAttention& of, ConstValues x, Values y, Stream& stream);

// dx, the gradient of x, overwritten. dy and dx may be the same array, x may not be dx.
void SiluSharesBackward(const SiluAttention& of, ConstValues x, ConstValues dy, Values dx,
                        Stream& stream);

// dbias(h, d) = sum over s, i and j with i - j + n - 1 = d of dx(s, h, i, j). dbias: [heads, 2 n -
// 1], overwritten.
void RelativeBiasGradient(ConstValues dx, float* dbias, size_t b, size_t heads, size_t n,
                          Stream& stream);

}  // namespace cistern::op
