#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/worker/export/onnx/network_nodes.h"

namespace cistern {
namespace {

using ::testing::ElementsAre;

TEST(InteractionNodes, PairsAreThoseBelowTheDiagonalRowByRow) {
  const NetworkModel network = NetworkWith(
      R"({"name": "low", "type": "InnerProduct", "bottom": "dense", "top": "low",
          "fc_param": {"num_output": 4}},
         {"name": "dots", "type": "Interaction", "bottom": ["low", "emb"], "top": "dots"})",
      "dots");
  EXPECT_THAT(CellsOf<int64_t>(network, "dots.pairs"), ElementsAre(3, 6, 7));  // of 3 x 3
  EXPECT_THAT(CellsOf<int64_t>(network, "dots.pads"), ElementsAre(0, 0, 0, 1));
  EXPECT_EQ(NodesOf(network, "dots/").back(), "Pad(dots/Concat_2, dots.pads) -> dots");
}

TEST(InteractionNodes, CrossesTakeTheirWeightsInTurn) {
  const NetworkModel network = NetworkWith(
      R"({"name": "x", "type": "MultiCross", "bottom": "dense", "top": "x",
          "mc_param": {"num_layers": 2}})",
      "x");
  EXPECT_THAT(CellsOf<float>(network, "x.weight0"), ElementsAre(0, 1, 2));
  EXPECT_THAT(CellsOf<float>(network, "x.bias0"), ElementsAre(3, 4, 5));
  EXPECT_THAT(CellsOf<float>(network, "x.weight1"), ElementsAre(6, 7, 8));
  EXPECT_THAT(CellsOf<float>(network, "x.bias1"), ElementsAre(9, 10, 11));
  EXPECT_THAT(ConstantOf(network, "x.weight0").dims(), ElementsAre(3, 1));
  EXPECT_THAT(
      NodesOf(network, "x/"),
      ElementsAre("MatMul(dense, x.weight0) -> x/MatMul", "Mul(dense, x/MatMul) -> x/Mul",
                  "Add(x/Mul, dense) -> x/Add", "Add(x/Add, x.bias0) -> x/Add_2",
                  "MatMul(x/Add_2, x.weight1) -> x/MatMul_2", "Mul(dense, x/MatMul_2) -> x/Mul_2",
                  "Add(x/Mul_2, x/Add_2) -> x/Add_3", "Add(x/Add_3, x.bias1) -> x"));
}

TEST(InteractionNodes, FactorsAndWeightVectorsHaveTheLayersShapes) {
  const NetworkModel network = NetworkWith(
      R"({"name": "m", "type": "Multiply", "bottom": "dense", "top": "m", "weight_dims": [3, 4]},
         {"name": "fm", "type": "FmOrder2", "bottom": "m", "top": "fm", "out_dim": 2})",
      "fm");
  EXPECT_THAT(ConstantOf(network, "m.weight").dims(), ElementsAre(3, 4));
  EXPECT_THAT(CellsOf<int64_t>(network, "m.shape"), ElementsAre(-1, 12));
  EXPECT_THAT(CellsOf<int64_t>(network, "fm.shape"), ElementsAre(-1, 6, 2));
}

}  // namespace
}  // namespace cistern
