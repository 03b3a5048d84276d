#include "worker/model/config/model_config.h"

#include "test/worker/model/config/config_parsing.h"
#include "worker/model/layer/layer_configs.h"

namespace cistern::model {
namespace {

using ::testing::HasSubstr;

using ::testing::ElementsAre;

TEST(LayerConfig, ALossWithARegularizerNeedsLambda) {
  EXPECT_EQ(ErrorOf({"layers.loss.regularizer=L2"}),
            "model.json: layers[7].lambda: missing; regularizer L2 needs it");
  const ModelConfig config = ParseOrDie({"layers.loss.regularizer=L1", "layers.loss.lambda=0.01"});
  EXPECT_EQ(config.layers.back().own<LossConfig>().regularizer, "L1");
  EXPECT_EQ(config.layers.back().own<LossConfig>().lambda, 0.01);
  const ModelConfig none = ParseOrDie({"layers.loss.lambda=0.01"});
  EXPECT_THAT(none.notes, ::testing::Contains("layers[7].lambda: ignored: no regularizer is set"));
  EXPECT_EQ(none.layers.back().own<LossConfig>().lambda, 0);
}

TEST(LayerConfig, EachWordIsItsInitialization) {
  const std::pair<const char*, InitKind> words[] = {{"KaimingNorm", InitKind::kKaimingNorm},
                                                    {"KaimingUniform", InitKind::kKaimingUniform},
                                                    {"TorchLinear", InitKind::kTorchLinear},
                                                    {"Uniform", InitKind::kUniform},
                                                    {"XavierNorm", InitKind::kXavierNorm},
                                                    {"XavierUniform", InitKind::kXavierUniform},
                                                    {"Zero", InitKind::kZero}};
  for (const auto& [word, kind] : words) {
    const ModelConfig config = ParseOrDie({absl::StrCat("layers.fc1.fc_param.bias_init=", word)});
    EXPECT_EQ(config.layers[2].own<FullyConnectedConfig>().bias_init, kind) << word;
  }
}

TEST(LayerConfig, ReadsTheParametersOfItsType) {
  const ModelConfig config = ParseOrDie(
      {R"(layers.relu1={"type":"BatchNorm","bottom":"fc1","top":"relu1",
                        "bn_param":{"factor":0.25,"eps":0.001,"gamma_init":"Zero"}})",
       "layers.fc1.fc_param.weight_init=XavierUniform",
       R"(layers.reshape1={"name":"reshape1","type":"Reshape","bottom":"emb","top":"reshape1",
                           "selected":[1,0]})"});
  EXPECT_THAT(config.layers[0].own<ReshapeConfig>().selected, ElementsAre(1, 0));
  EXPECT_EQ(config.layers[0].own<ReshapeConfig>().leading_dim, 0u);
  EXPECT_EQ(config.layers[2].own<FullyConnectedConfig>().weight_init, InitKind::kXavierUniform);
  EXPECT_EQ(config.layers[2].own<FullyConnectedConfig>().bias_init, InitKind::kDefault);
  EXPECT_EQ(config.layers[3].name, "relu1");
  const auto& norm = config.layers[3].own<BatchNormConfig>();
  EXPECT_EQ(norm.factor, 0.25f);
  EXPECT_EQ(norm.eps, 0.001f);
  EXPECT_EQ(norm.gamma_init, InitKind::kZero);
}

TEST(LayerConfig, RejectsContradictoryCombinations) {
  EXPECT_THAT(ErrorOf({"layers.reshape1.selected=[0]"}),
              HasSubstr("layers[2]: leading_dim and selected exclude each other"));
  EXPECT_THAT(ErrorOf({R"(layers.relu1={"type":"Multiply","bottom":"fc1","top":"relu1",
                                        "weight_dims":[5]})"}),
              HasSubstr("layers[5].weight_dims: expected [S, E], found [5]"));
}

}  // namespace
}  // namespace cistern::model
