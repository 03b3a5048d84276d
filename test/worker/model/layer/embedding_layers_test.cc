#include "worker/model/layer/embedding_layers.h"

#include <gtest/gtest.h>

#include "worker/model/layer/ctr_embedding_layer.h"

namespace cistern::model {
namespace {

TEST(EmbeddingLayers, EveryAccessorHasOne) {
  for (const Accessor* accessor : Accessors()) {
    EmbeddingConfig config;
    config.spec.set_accessor(accessor->kind());
    Tensor out;
    const auto layer = MakeEmbeddingLayer(config, 0, 1, &out);
    ASSERT_NE(layer, nullptr) << accessor->name();
    EXPECT_EQ(dynamic_cast<CtrEmbeddingLayer*>(layer.get()) != nullptr, accessor->has_statistics());
  }
}

}  // namespace
}  // namespace cistern::model
