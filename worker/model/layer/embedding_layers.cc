#include "worker/model/layer/embedding_layers.h"

#include "common/base/check.h"
#include "worker/model/layer/counted_embedding_layer.h"
#include "worker/model/layer/ctr_embedding_layer.h"

namespace cistern::model {
namespace {

template <typename Layer>
std::unique_ptr<EmbeddingLayer> Make(const EmbeddingConfig& config, size_t index, size_t slots,
                                     Tensor* out) {
  return std::make_unique<Layer>(config, index, slots, out);
}

// The list: one line per accessor.
constexpr struct {
  v1::TableSpec::Accessor kind;
  decltype(&Make<EmbeddingLayer>) make;
} kLayers[] = {{v1::TableSpec::EMBEDDING, Make<EmbeddingLayer>},
               {v1::TableSpec::CTR, Make<CtrEmbeddingLayer>}};

}  // namespace

std::unique_ptr<EmbeddingLayer> MakeEmbeddingLayer(const EmbeddingConfig& config, size_t index,
                                                   size_t slots, Tensor* out) {
  if (CountsSightings(config.spec.bounds())) {
    return Make<CountedEmbeddingLayer>(config, index, slots, out);
  }
  for (const auto& layer : kLayers) {
    if (layer.kind == config.spec.accessor()) return layer.make(config, index, slots, out);
  }
  CISTERN_CHECK(false);  // the reader of the model file accepts the names of the list alone
  return nullptr;
}

}  // namespace cistern::model
