#include "worker/export/onnx/network_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/worker/export/onnx/network_nodes.h"

namespace cistern {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// "emb[batch, 2, 4]".
std::vector<std::string> Declared(const google::protobuf::RepeatedPtrField<onnx::Value>& values) {
  std::vector<std::string> lines;
  for (const onnx::Value& value : values) {
    std::string line = value.name() + "[";
    for (const auto& dim : value.type().tensor_type().shape().dim()) {
      absl::StrAppend(&line, line.back() == '[' ? "" : ", ", dim.dim_param());
      if (dim.dim_param().empty()) absl::StrAppend(&line, dim.dim_value());
    }
    lines.push_back(line + "]");
  }
  return lines;
}

TEST(NetworkModel, HasTheModelsInputsLayersAndProbability) {
  const model::ModelConfig config = model::ParseOrDie();
  StoredModel model(config);
  const NetworkModel network = NetworkOf(config, model);
  EXPECT_EQ(network.model.ir_version(), 8);
  ASSERT_EQ(network.model.opset_import_size(), 1);
  EXPECT_EQ(network.model.opset_import(0).domain(), "");
  EXPECT_EQ(network.model.opset_import(0).version(), 17);
  const onnx::Graph& graph = network.model.graph();
  EXPECT_THAT(Declared(graph.input()), ElementsAre("dense[batch, 3]", "emb[batch, 2, 4]"));
  EXPECT_THAT(Declared(graph.output()), ElementsAre("probability[batch, 1]"));
  EXPECT_THAT(
      NodesOf(network),
      ElementsAre("Reshape(emb, reshape1.shape) -> reshape1", "Concat(reshape1, dense) -> concat1",
                  "Gemm(concat1, fc1.weight, fc1.bias) -> fc1", "Relu(fc1) -> relu1",
                  "Gemm(relu1, fc2.weight, fc2.bias) -> fc2", "Sigmoid(fc2) -> probability"));
  EXPECT_EQ(network.inputs.dense, "dense");
  EXPECT_THAT(network.inputs.embeddings, ElementsAre(Pair(0u, "emb")));
}

TEST(NetworkModel, InputsThatTheNetworkDoesNotReadAreLeftOut) {
  const NetworkModel network = NetworkWith("", "reshape1");
  EXPECT_THAT(Declared(network.model.graph().input()), ElementsAre("emb[batch, 2, 4]"));
  EXPECT_THAT(network.inputs.dense, IsEmpty());
}

TEST(NetworkModel, TheLogitIsAnOutputOnDemand) {
  const model::ModelConfig config = model::ParseOrDie();
  StoredModel model(config);
  const NetworkModel network = NetworkOf(config, model, /*with_logit=*/true);
  EXPECT_THAT(Declared(network.model.graph().output()),
              ElementsAre("probability[batch, 1]", "logit[batch, 1]"));
  EXPECT_EQ(NodesOf(network).back(), "Identity(fc2) -> logit");
}

TEST(NetworkModel, TheProbabilityOfTwoClassesIsThatOfTheSecond) {
  const model::ModelConfig config =
      model::ParseOrDie({"layers.loss.type=CrossEntropyLoss", "layers.fc2.fc_param.num_output=2"});
  StoredModel model(config);
  const NetworkModel network = NetworkOf(config, model, /*with_logit=*/true);
  EXPECT_THAT(Declared(network.model.graph().output()),
              ElementsAre("probability[batch, 1]", "logit[batch, 2]"));
  EXPECT_THAT(NodesOf(network, "loss/"),
              ElementsAre("Softmax(fc2) -> loss/Softmax",
                          "Slice(loss/Softmax, loss.start, loss.end, loss.axis) -> probability"));
  EXPECT_THAT(CellsOf<int64_t>(network, "loss.start"), ElementsAre(1));
}

TEST(NetworkModel, TensorsCalledLikeAnOutputOrAConstantGetOtherNames) {
  const NetworkModel network = NetworkWith(
      R"({"name": "fc", "type": "InnerProduct", "bottom": "concat1", "top": "fc.weight",
          "fc_param": {"num_output": 2}},
         {"name": "fc", "type": "InnerProduct", "bottom": "fc.weight", "top": "probability",
          "fc_param": {"num_output": 2}})",
      "probability");
  EXPECT_THAT(NodesOf(network, "fc/"),
              ElementsAre("Gemm(concat1, fc.weight_2, fc.bias) -> fc.weight",
                          "Gemm(fc.weight, fc.weight_3, fc.bias_2) -> probability_2"));
}

}  // namespace
}  // namespace cistern
