// A step of a gated recurrent unit (Cho et al. 2014, in the form of cuDNN, whose reset gate acts
// behind the product; HugeCTR 3.x, gru_layer). The matrix products are those of the caller.
//
// With x' = x W + b and h' = h R, each [b, 3 n] as three parts r, i and m:
//   r = logistic(x'(r) + h'(r))      the reset gate
//   i = logistic(x'(i) + h'(i))      the update gate
//   m = tanh(x'(m) + r h'(m))        the new memory
//   y = (1 - i) m + i h.
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// gates: [b, 3 n], x' on entry; r, i and m on return. product: [b, 3 n], h', or null: 0. h: [b, n],
// or null: 0. y: [b, n].
void GruCell(Values gates, ConstValues product, ConstValues h, Values y, size_t b, size_t n,
             Stream& stream);

// The gradients through one step, from dy:
//   dm = dy (1 - i) (1 - m^2), di = dy (h - m) i (1 - i), dr = dm h'(m) r (1 - r),
//   dgates = [dr, di, dm], dproduct = [dr, di, dm r], and dh = dy i, the part that is beside the
//   product.
//
// gates, product, h: of the forward pass. dy: [b, n]. dgates, dproduct: [b, 3 n], overwritten; they
// may be gates and product. dh: [b, n], overwritten, may be dy.
void GruCellBackward(ConstValues gates, ConstValues product, ConstValues h, ConstValues dy,
                     Values dgates, Values dproduct, Values dh, size_t b, size_t n, Stream& stream);

}  // namespace cistern::op
