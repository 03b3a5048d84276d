#include "worker/model/config/graph_difference.h"

#include "worker/model/layer/layer_list.h"

#include <gmock/gmock.h>

namespace cistern::model {
namespace {

ModelConfig ConfigOf(const std::vector<std::string>& overrides) {
  const absl::StatusOr<ModelConfig> config =
      ParseModelConfig(R"({
    "solver": {"batchsize": 8, "max_iter": 1, "lr_policy": "fixed"},
    "optimizer": {"type": "SGD", "sgd_hparam": {"learning_rate": 0.1}},
    "layers": [
      {"name": "data", "type": "Data", "source": "a", "check": "None",
       "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 3},
       "sparse": []},
      {"name": "fc1", "type": "InnerProduct", "bottom": "dense", "top": "fc1",
       "fc_param": {"num_output": 4}},
      {"name": "drop", "type": "Dropout", "rate": 0.5, "bottom": "fc1", "top": "drop"},
      {"name": "fc2", "type": "InnerProduct", "bottom": "drop", "top": "fc2",
       "fc_param": {"num_output": 1}},
      {"name": "loss", "type": "BinaryCrossEntropyLoss", "bottom": ["fc2", "label"], "top": "loss"}]
  })",
                       "model.json", overrides, LayerGrammars());
  EXPECT_TRUE(config.ok()) << config.status();
  return *config;
}

TEST(GraphDifference, NamesTheLayerAndItsShape) {
  EXPECT_EQ(GraphDifference(ConfigOf({}), ConfigOf({})), "");
  EXPECT_THAT(GraphDifference(ConfigOf({}), ConfigOf({"layers.1.fc_param.num_output=5"})),
              testing::HasSubstr("fc1"));
}

// The model with another layer in the place of 'drop'.
ModelConfig ConfigWith(const std::string& keys) {
  return ConfigOf(
      {R"(layers.drop={"name": "drop", "bottom": "fc1", "top": "drop", )" + keys + "}"});
}

TEST(GraphDifference, ComparesTheKeysOfALayerThatDecideWhatItComputes) {
  EXPECT_EQ(GraphDifference(ConfigWith(R"("type": "HSTU", "causal": false)"),
                            ConfigWith(R"("type": "HSTU")")),
            "layer 'drop': causal is false, not true");
  EXPECT_EQ(GraphDifference(ConfigWith(R"("type": "ELU", "elu_param": {"alpha": 2.0})"),
                            ConfigWith(R"("type": "ELU", "elu_param": {"alpha": 2})")),
            "");
  EXPECT_EQ(GraphDifference(ConfigWith(R"("type": "Reshape", "leading_dim": 4)"),
                            ConfigWith(R"("type": "Reshape")")),
            "layer 'drop': leading_dim is 4, not absent");
}

TEST(GraphDifference, IgnoresWhatOnlyTrainingUses) {
  EXPECT_EQ(GraphDifference(
                ConfigOf({}),
                ConfigOf({"layers.2.rate=0.1", "solver.batchsize=9",
                          "optimizer.sgd_hparam.learning_rate=0.2",
                          "layers.1.fc_param.bias_value=0.5", "layers.1.fc_param.weight_init=Zero",
                          "layers.loss.regularizer=L2", "layers.loss.lambda=0.1"})),
            "");
  EXPECT_EQ(
      GraphDifference(ConfigWith(R"("type": "BatchNorm", "bn_param": {"factor": 0.5})"),
                      ConfigWith(R"("type": "BatchNorm", "bn_param": {"gamma_init": "Uniform"})")),
      "");
}

TEST(GraphDifference, AnMlpIsTheLayersThatItStandsFor) {
  const ModelConfig mlp =
      ConfigWith(R"("type": "MLP", "mlp_param": {"num_outputs": [3], "biases": [false]})");
  ModelConfig layers = ConfigOf({
      R"(layers.drop={"name": "drop_product", "type": "InnerProduct", "bottom": "fc1",
                      "top": "drop_product", "fc_param": {"num_output": 3, "use_bias": false}})"});
  layers.layers.insert(layers.layers.begin() + 2, mlp.layers[2]);  // its ReLU
  EXPECT_EQ(GraphDifference(mlp, layers), "");
}

}  // namespace
}  // namespace cistern::model
