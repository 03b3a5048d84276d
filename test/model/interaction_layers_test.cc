#include "test/model/model_error.h"

namespace cistern {
namespace {

TEST(Multiply, WidthsMustAgree) {
  EXPECT_EQ(
      BuildError({InsteadOfRelu("Multiply", R"("weight_dims":[4,2])")}),
      "model.json: layer 'x' (layers[5], Multiply): weight_dims is [4, 2] and bottom 'fc1' is "
      "[b, 5]: their widths differ");
}

TEST(FmOrder2, ItsFactorsFillTheBottom) {
  EXPECT_EQ(BuildError({InsteadOfRelu("FmOrder2", R"("out_dim":2)")}),
            "model.json: layer 'x' (layers[5], FmOrder2): out_dim is 2 and bottom 'fc1' is [b, 5]: "
            "out_dim must divide its width");
}

}  // namespace
}  // namespace cistern
