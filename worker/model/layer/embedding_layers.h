// The embedding layer of each accessor.
#pragma once

#include <memory>

#include "worker/model/layer/embedding_layer.h"

namespace cistern::model {

// Creates the layer for the accessor of the table, which must be one of Accessors(). index, slots:
// as for EmbeddingLayer.
std::unique_ptr<EmbeddingLayer> MakeEmbeddingLayer(const EmbeddingConfig& config, size_t index,
                                                   size_t slots, Tensor* out);

}  // namespace cistern::model
