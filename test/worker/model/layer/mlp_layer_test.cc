#include "test/worker/model/model_bench.h"
#include "test/worker/model/model_error.h"
#include "test/worker/model/model_texts.h"
#include "worker/model/layer/layer_configs.h"
#include "worker/model/layer/layer_list.h"

namespace cistern::model {
namespace {

using ::testing::HasSubstr;

// The message of the error that reading a model with this MLP instead of "relu1" returns.
std::string MlpError(const std::string& constants, const std::string& top = R"("relu1")") {
  const absl::Status status =
      ParseModelConfig(SmallModelText(), "m",
                       {R"(layers.relu1={"name":"x","type":"MLP","bottom":"fc1","top":)" + top +
                        R"(,"mlp_param":{)" + constants + "}}"},
                       LayerGrammars())
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(Mlp, IsItsLayers) {
  const ModelConfig config = ParseOrDie({}, DcnV2Text());
  std::vector<std::string> pieces;
  for (const LayerConfig& layer : config.layers) {
    if (layer.path.rfind("layers[7].mlp_param", 0) != 0 &&
        layer.path.rfind("layers[4].mlp_param", 0) != 0) {
      continue;
    }
    const bool has_bias = layer.type == "ReLU" || layer.own<FullyConnectedConfig>().use_bias;
    pieces.push_back(absl::StrCat(layer.path.substr(7), " ", layer.type, " ", layer.bottoms[0],
                                  " -> ", layer.tops[0], has_bias ? "" : ", no bias"));
  }
  EXPECT_THAT(pieces, testing::ElementsAre(
                          "4].mlp_param.num_outputs[0] InnerProduct pairs -> low1, no bias",
                          "4].mlp_param.num_outputs[1] InnerProduct low1 -> low2_product, no bias",
                          "4].mlp_param.activations[1] ReLU low2_product -> low2"));
}

TEST(Mlp, ListsAgree) {
  EXPECT_THAT(MlpError(R"("num_outputs":[])"),
              HasSubstr("layers[5].mlp_param.num_outputs: lists no layer"));
  EXPECT_THAT(MlpError(R"("num_outputs":[4,5],"activations":["Relu"])"),
              HasSubstr("mlp_param.activations: has 1 entries, and num_outputs has 2"));
  EXPECT_THAT(MlpError(R"("num_outputs":[4],"activations":["Tanh"])"),
              HasSubstr("mlp_param.activations[0]: expected Relu or None, found the string "
                        "\"Tanh\""));
  EXPECT_THAT(MlpError(R"("num_outputs":[4,5,6],"biases":[true,true])"),
              HasSubstr("mlp_param.biases: has 2 entries, and num_outputs has 3"));
  EXPECT_THAT(MlpError(R"("num_outputs":[4],"biases":[1])"),
              HasSubstr("mlp_param.biases[0]: expected array of true or false, found the number"));
  EXPECT_THAT(MlpError(R"("num_outputs":[4,5,6])", R"(["a","relu1"])"),
              HasSubstr("top: names 2 outputs of 3 layers: name the last one, or each"));
}

TEST(InnerProduct, WithoutABiasHasNoInitialOne) {
  const absl::Status status =
      ParseModelConfig(SmallModelText(), "m",
                       {"layers.fc1.fc_param.use_bias=false", "layers.fc1.fc_param.bias_init=Zero"},
                       LayerGrammars())
          .status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("fc_param.bias_init: the layer has no bias: leave it out"));
}

// One sample, and predictions of more samples than training has.
TEST(MultiCross, LowRankGradientsOfABatchOfOne) {
  ModelBench bench(DcnV2Text(), {"solver.batchsize=1", "solver.batchsize_eval=40"}, 12);
  const data::HostBatch batch = bench.batch(1, 7), more = bench.batch(40, 2);
  ReferenceModel reference = bench.Reference();
  const std::vector<double> expected = bench.Reference().Predict(more);
  const std::vector<float> predictions = bench.Predict(more);
  ASSERT_EQ(predictions.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(predictions[i], expected[i], 1e-6) << i;
  bench.Train(batch, 1);
  const std::vector<double> weights = bench.DenseColumn(0);
  double largest = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double derivative = reference.Derivative(batch, 1, &reference.weights[i]);
    largest = std::max(largest, std::abs(derivative));
    EXPECT_NEAR(reference.weights[i] - weights[i], derivative, 1e-5) << i;
  }
  EXPECT_GT(largest, 1e-3);
}

}  // namespace
}  // namespace cistern::model
