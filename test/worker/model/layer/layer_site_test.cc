#include "worker/model/layer/layer_site.h"

#include "test/worker/model/model_error.h"

namespace cistern::model {
namespace {

using ::testing::HasSubstr;

TEST(LayerSite, ErrorsGiveNamePathAndTypeOfTheLayer) {
  EXPECT_EQ(BuildError({"layers.fc1.bottom=[\"concat1\",\"dense\"]"}),
            "model.json: layer 'fc1' (layers[4], InnerProduct): has 2 bottoms; must have 1");
  EXPECT_EQ(BuildError({"layers.relu1.top=[\"relu1\",\"b\"]"}),
            "model.json: layer 'relu1' (layers[5], ReLU): has 2 tops; must have 1");
}

TEST(LayerSite, RankErrorGivesTheShapeAndTheFix) {
  EXPECT_EQ(BuildError({R"(layers.reshape1={"name":"x","type":"BatchNorm","bottom":"emb",
                            "top":"reshape1"})"}),
            "model.json: layer 'x' (layers[2], BatchNorm): bottom 'emb' is [b, 2, 4]; it must have "
            "2 dimensions: put a Reshape before it");
}

TEST(TensorSet, ViewsShareStorage) {
  TensorSet tensors{ElementType::kFloat};
  Tensor* a = tensors.Define("a", {1, {6}});
  Tensor* b = tensors.DefineView("b", {2, {3}}, *a);
  EXPECT_EQ(a->storage, b->storage);
  EXPECT_EQ(tensors.Find("b"), b);
  EXPECT_EQ(tensors.Find("c"), nullptr);
}

}  // namespace
}  // namespace cistern::model
