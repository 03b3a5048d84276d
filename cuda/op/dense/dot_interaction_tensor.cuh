// DotInteraction on tensor cores. Internal to dot_interaction*.cu.
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op::gpu {

// As DotInteraction and DotInteractionBackward. Return false, and do nothing, for inputs that the
// tensor core kernels do not support: floats, more than 31 slots, a dim that is not a multiple of
// 16 or exceeds 1024, arrays that are not 16-byte aligned.
bool TensorInteraction(ConstValues mlp, ConstValues embedding, Values y, size_t b, size_t slots,
                       size_t dim, Stream& stream);
bool TensorInteractionBackward(ConstValues mlp, ConstValues embedding, ConstValues dy,
                               Write mlp_write, Values dmlp, Write embedding_write,
                               Values dembedding, size_t b, size_t slots, size_t dim,
                               Stream& stream);

}  // namespace cistern::op::gpu
