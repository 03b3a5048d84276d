// Interaction: the dot products of all pairs of vectors of a sample (HugeCTR 2.3,
// interaction_layer; DLRM, Naumov et al. 2019).
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// The number of output columns: dim + vectors (vectors - 1) / 2 + 1, with vectors = slots + 1.
size_t DotInteractionColumns(size_t slots, size_t dim);

// T = [mlp; the slots' vectors], slots + 1 rows of dim. y = [mlp, the strict lower triangle of
// T T^T row by row: (1, 0), (2, 0), (2, 1), (3, 0) ..., one 0 of padding as in HugeCTR].
//
// mlp: [b, dim]. embedding: [b, slots, dim]. y: [b, DotInteractionColumns], overwritten.
void DotInteraction(ConstValues mlp, ConstValues embedding, Values y, size_t b, size_t slots,
                    size_t dim, Stream& stream);

// dT(i) = sum over j != i of dpair(i, j) T(j), where pairs are unordered; dmlp = dT(0) + the first
// dim columns of dy.
//
// dy: [b, DotInteractionColumns]; its last column is not read. dmlp, dembedding: as mlp and
// embedding; either may be null.
void DotInteractionBackward(ConstValues mlp, ConstValues embedding, ConstValues dy, Write mlp_write,
                            Values dmlp, Write embedding_write, Values dembedding, size_t b,
                            size_t slots, size_t dim, Stream& stream);

}  // namespace cistern::op
