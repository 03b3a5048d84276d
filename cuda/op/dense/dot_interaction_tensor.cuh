// Interaction on tensor cores. Internal to dot_interaction*.cu.
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op::gpu {

// As DotInteraction and DotInteractionBackward; false, and nothing happens, where the tensor cores'
// kernels do not take it: of floats, of more than 31 slots, of a dim that is no multiple of 16 or
// is beyond 1024, of arrays that are not aligned to 16 bytes.
bool TensorInteraction(ConstValues mlp, ConstValues embedding, Values y, size_t b, size_t slots,
                       size_t dim, Stream& stream);
bool TensorInteractionBackward(ConstValues mlp, ConstValues embedding, ConstValues dy,
                               Write mlp_write, Values dmlp, Write embedding_write,
                               Values dembedding, size_t b, size_t slots, size_t dim,
                               Stream& stream);

}  // namespace cistern::op::gpu
