// test/integration/onnx_export_test.py compares the results of every layer; this checks the nodes.
#include "worker/export/onnx/layer_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "test/worker/export/onnx/network_nodes.h"
#include "worker/model/config/grammar.h"
#include "worker/model/layer/layer_list.h"

namespace cistern {
namespace {

using ::testing::ElementsAre;

TEST(LayerNodes, EveryLayerTypeOfTheGrammarCanBeExported) {
  for (const model::LayerGrammar& grammar : model::LayerGrammars()) {
    if (grammar.role != model::LayerRole::kDense || grammar.expand != nullptr) continue;
    EXPECT_TRUE(HasNodes(grammar.type))
        << grammar.type << ": add a line to kTypes of worker/export/onnx/layer_nodes.cc";
  }
  model::LayerConfig unknown;
  unknown.type = "Unknown";
  OnnxGraph graph("g");
  EXPECT_EQ(AddLayer({unknown, {}, {}, {}, {}}, &graph).code(), absl::StatusCode::kUnimplemented);
}

TEST(LayerNodes, AFullyConnectedLayerIsAProductWithItsWeights) {
  const NetworkModel network = NetworkWith(
      R"({"name": "fc1", "type": "InnerProduct", "bottom": "concat1", "top": "t",
          "fc_param": {"num_output": 5}},
         {"name": "relu1", "type": "ReLU", "bottom": "t", "top": "relu1"})",
      "relu1");
  EXPECT_THAT(NodesOf(network, "fc1/"), ElementsAre("Gemm(concat1, fc1.weight, fc1.bias) -> t"));
  EXPECT_THAT(NodesOf(network, "relu1/"), ElementsAre("Relu(t) -> relu1"));
  EXPECT_THAT(ConstantOf(network, "fc1.weight").dims(), ElementsAre(11, 5));
  EXPECT_EQ(CellsOf<float>(network, "fc1.weight")[5], 5.0f);  // row-major, from cell 0 of the table
  EXPECT_THAT(CellsOf<float>(network, "fc1.bias"), ElementsAre(55, 56, 57, 58, 59));
}

TEST(LayerNodes, AFusedLayerEndsInRelu) {
  const NetworkModel network = NetworkWith(
      R"({"name": "fc1", "type": "FusedInnerProduct", "bottom": "concat1", "top": "t",
          "fc_param": {"num_output": 5}})",
      "t");
  EXPECT_THAT(
      NodesOf(network, "fc1/"),
      ElementsAre("Gemm(concat1, fc1.weight, fc1.bias) -> fc1/Gemm", "Relu(fc1/Gemm) -> t"));
}

TEST(LayerNodes, BatchNormUsesItsStatisticsAndEps) {
  const NetworkModel network = NetworkWith(
      R"({"name": "bn", "type": "BatchNorm", "bottom": "dense", "top": "bn",
          "bn_param": {"factor": 0.1, "eps": 0.5}})",
      "bn");
  EXPECT_THAT(NodesOf(network, "bn/"),
              ElementsAre("Sub(dense, bn.mean) -> bn/Sub", "Mul(bn/Sub, bn.scale) -> bn/Mul",
                          "Add(bn/Mul, bn.beta) -> bn"));
  EXPECT_THAT(CellsOf<float>(network, "bn.mean"), ElementsAre(1000, 1001, 1002));
  EXPECT_THAT(CellsOf<float>(network, "bn.beta"), ElementsAre(3, 4, 5));
  const std::vector<float> scale = CellsOf<float>(network, "bn.scale");
  ASSERT_EQ(scale.size(), 3u);
  EXPECT_FLOAT_EQ(scale[2], static_cast<float>(2 / std::sqrt(1005 + 0.5)));
}

TEST(LayerNodes, ASliceHasNoNodeForWhatNothingReads) {
  const NetworkModel network = NetworkWith(
      R"({"name": "slice", "type": "Slice", "bottom": "concat1", "top": ["a", "b"],
          "ranges": [[0, 3], [2, 9]]})",
      "b");
  EXPECT_THAT(NodesOf(network, "slice/"),
              ElementsAre("Slice(concat1, slice.start, slice.end, slice.axis) -> b"));
  EXPECT_THAT(CellsOf<int64_t>(network, "slice.start"), ElementsAre(2));
  EXPECT_THAT(CellsOf<int64_t>(network, "slice.end"), ElementsAre(9));
}

TEST(LayerNodes, SelectedSlotsAreGathered) {
  const NetworkModel network = NetworkWith(
      R"({"name": "pick", "type": "Reshape", "bottom": "emb", "top": "pick",
          "selected": [1, 0, 1]})",
      "pick");
  EXPECT_THAT(NodesOf(network, "pick/"), ElementsAre("Gather(emb, pick.selected) -> pick/Gather",
                                                     "Reshape(pick/Gather, pick.shape) -> pick"));
  EXPECT_THAT(CellsOf<int64_t>(network, "pick.selected"), ElementsAre(1, 0, 1));
  EXPECT_THAT(CellsOf<int64_t>(network, "pick.shape"), ElementsAre(-1, 12));
}

TEST(LayerNodes, ProductsKeepTheOrderOfTheirFactors) {
  const NetworkModel network = NetworkWith(
      R"({"name": "p", "type": "DotProduct", "bottom": ["concat1", "concat1", "concat1"],
          "top": "p"})",
      "p");
  EXPECT_THAT(NodesOf(network, "p/"),
              ElementsAre("Mul(concat1, concat1) -> p/Mul", "Mul(p/Mul, concat1) -> p"));
}

TEST(LayerNodes, ScaleTilesRowsOrSingleValues) {
  const auto nodes = [](int axis) {
    const NetworkModel network = NetworkWith(
        R"({"name": "s", "type": "Scale", "bottom": "dense", "top": "s",
            "scale_param": {"factor": 2, "axis": )" +
            std::to_string(axis) +
            R"(}}, {"name": "r", "type": "Reshape", "bottom": "s", "top": "r", "leading_dim": 6})",
        "r");
    EXPECT_THAT(CellsOf<int64_t>(network, "s.repeats"), ElementsAre(1, 2));
    return NodesOf(network, "s/");
  };
  EXPECT_THAT(nodes(0), ElementsAre("Reshape(dense, s.shape) -> s/Reshape",
                                    "Tile(s/Reshape, s.repeats) -> s/Tile",
                                    "Reshape(s/Tile, s.shape_2) -> s"));
  EXPECT_THAT(nodes(1),
              ElementsAre("Tile(dense, s.repeats) -> s/Tile", "Reshape(s/Tile, s.shape) -> s"));
}

TEST(LayerNodes, ProductLogitFactorsTheLargestExponentialOut) {
  const NetworkModel network = NetworkWith(
      R"({"name": "y", "type": "ProductLogit", "bottom": ["dense", "dense"], "top": "y"})", "y");
  EXPECT_THAT(
      NodesOf(network, "y/"),
      ElementsAre("Neg(dense) -> y/Neg", "Neg(dense) -> y/Neg_2", "Add(y/Neg, y/Neg_2) -> y/Add",
                  "Max(y/Neg, y/Neg_2, y/Add) -> y/Max", "Sub(y/Neg, y/Max) -> y/Sub",
                  "Exp(y/Sub) -> y/Exp", "Sub(y/Neg_2, y/Max) -> y/Sub_2",
                  "Exp(y/Sub_2) -> y/Exp_2", "Sub(y/Add, y/Max) -> y/Sub_3",
                  "Exp(y/Sub_3) -> y/Exp_3", "Sum(y/Exp, y/Exp_2, y/Exp_3) -> y/Sum",
                  "Log(y/Sum) -> y/Log", "Add(y/Log, y/Max) -> y/Add_2", "Neg(y/Add_2) -> y"));
}

TEST(LayerNodes, SoftmaxMultipliesByItsFactorUnlessItIsOne) {
  const auto nodes = [](const std::string& factor) {
    return NodesOf(NetworkWith(R"({"name": "p", "type": "Softmax", "bottom": "emb", "top": "p",
                                   "factor": )" +
                                   factor + R"(}, {"name": "f", "type": "Reshape", "bottom": "p",
                                   "top": "f"})",
                               "f"),
                   "p/");
  };
  EXPECT_THAT(nodes("1"), ElementsAre("Softmax(emb) -> p"));
  EXPECT_THAT(nodes("2"), ElementsAre("Mul(emb, p.factor) -> p/Mul", "Softmax(p/Mul) -> p"));
}

}  // namespace
}  // namespace cistern
