#include "worker/model/config/graph_difference.h"

#include "worker/model/layer/layer_list.h"

#include <gmock/gmock.h>

namespace cistern {
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

TEST(GraphDifference, IgnoresWhatOnlyTrainingUses) {
  EXPECT_EQ(GraphDifference(ConfigOf({}), ConfigOf({"layers.2.rate=0.1", "solver.batchsize=9",
                                                    "optimizer.sgd_hparam.learning_rate=0.2"})),
            "");
}

}  // namespace
}  // namespace cistern
