// Sums over one axis of a tensor of any rank, viewed as [outer, n, inner], and the reverse: values
// repeated along an axis.
//
// For [b, F], axis 1 is outer = b, n = F, inner = 1; axis 0 is outer = 1, n = b, inner = F.
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// y(o, i) = factor * sum over a of x(o, a, i), or y += that. x: [outer, n, inner]. y: [outer,
// inner]. A sum with a factor 1 / n is a mean.
void ScaledSum(float factor, ConstValues x, Write write, Values y, size_t outer, size_t n,
               size_t inner, Stream& stream);

// y(o, a, i) = factor * x(o, i), or y += that: the gradient of ScaledSum. x: [outer, inner]. y:
// [outer, n, inner].
void ScaledRepeat(float factor, ConstValues x, Write write, Values y, size_t outer, size_t n,
                  size_t inner, Stream& stream);

}  // namespace cistern::op
