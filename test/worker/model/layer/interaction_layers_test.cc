#include "test/worker/model/model_error.h"

namespace cistern::model {
namespace {

TEST(Multiply, WidthsMustAgree) {
  EXPECT_EQ(
      BuildError({InsteadOfRelu("Multiply", R"("weight_dims":[4,2])")}),
      "model.json: layer 'x' (layers[5], Multiply): weight_dims is [4, 2] and bottom 'fc1' is "
      "[b, 5]: their widths differ");
}

TEST(FmOrder2, OutDimMustDivideTheWidth) {
  EXPECT_EQ(BuildError({InsteadOfRelu("FmOrder2", R"("out_dim":2)")}),
            "model.json: layer 'x' (layers[5], FmOrder2): out_dim is 2 and bottom 'fc1' is [b, 5]: "
            "out_dim must divide its width");
}

TEST(Interaction, ShapesOfTheBottomsMustMatch) {
  const std::string interaction = R"({"name":"x","type":"Interaction","top":"relu1","bottom":)";
  EXPECT_EQ(BuildError({"layers.relu1=" + interaction + R"(["fc1","emb"]})"}),
            "model.json: layer 'x' (layers[5], Interaction): bottoms 'fc1' [b, 5] and 'emb' "
            "[b, 2, 4] must have the same first and last dimension");
  EXPECT_EQ(BuildError({"layers.relu1=" + interaction + R"(["fc1","dense"]})"}),
            "model.json: layer 'x' (layers[5], Interaction): bottom 'dense' is [b, 3]; it must "
            "have 3 dimensions");
  EXPECT_EQ(BuildError({"layers.relu1=" + interaction + R"("fc1"})"}),
            "model.json: layer 'x' (layers[5], Interaction): has 1 bottoms; must have 2");
}

TEST(MultiCross, RequiresAMatrix) {
  EXPECT_EQ(BuildError({R"(layers.reshape1={"name":"x","type":"MultiCross","bottom":"emb",
                           "top":"reshape1","mc_param":{"num_layers":2}})"}),
            "model.json: layer 'x' (layers[2], MultiCross): bottom 'emb' is [b, 2, 4]; it must "
            "have 2 dimensions: put a Reshape before it");
}

}  // namespace
}  // namespace cistern::model
