// The lengths of the sequences of a sparse input: its length_top.
#pragma once

#include <memory>

#include "worker/model/config/model_config.h"
#include "worker/model/layer/layer.h"

namespace cistern::model {

// Whether `type` holds every length of the input's sequences exactly.
bool HoldsLengths(const SparseInputConfig& input, ElementType type);

// input: one with sequences. index: in Step::batch.sparse. out: [b, number of sequences].
std::unique_ptr<Layer> MakeSequenceLengthsLayer(const SparseInputConfig& input, size_t index,
                                                Tensor* out);

}  // namespace cistern::model
