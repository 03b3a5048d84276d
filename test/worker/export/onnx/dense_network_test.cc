#include "worker/export/onnx/dense_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "test/worker/export/onnx/stored_model.h"

namespace cistern {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> NamesOf(const DenseNetwork& network) {
  std::vector<std::string> names;
  for (const NetworkLayer& layer : network.layers) names.push_back(layer.config->name);
  return names;
}

// A dead layer with 11 * 4 + 4 weights before the live ones, and BatchNorm behind them.
constexpr char kWithDead[] = R"(
    {"name": "dead", "type": "InnerProduct", "bottom": "concat1", "top": "dead",
     "fc_param": {"num_output": 4}},
    {"name": "dead_bn", "type": "BatchNorm", "bottom": "dead", "top": "dead_bn"},
    {"name": "fc1", "type": "InnerProduct", "bottom": "concat1", "top": "fc1",
     "fc_param": {"num_output": 5}},
    {"name": "relu1", "type": "ReLU", "bottom": "fc1", "top": "relu1"},
    {"name": "bn", "type": "BatchNorm", "bottom": "relu1", "top": "bn"})";

TEST(DenseNetwork, LeavesDeadLayersOutAndSkipsTheirParameters) {
  const model::ModelConfig config = model::ParseOrDie({}, WithLayers(kWithDead, "bn"));
  const DenseNetwork network = FindDenseNetwork(config).value();
  EXPECT_THAT(NamesOf(network), ElementsAre("reshape1", "concat1", "fc1", "relu1", "bn", "fc2"));
  const NetworkLayer &fc1 = network.layers[2], &bn = network.layers[4], &fc2 = network.layers[5];
  EXPECT_EQ(fc1.first_weight, 11u * 4 + 4 + 2 * 4);
  EXPECT_EQ(fc1.weights, 11u * 5 + 5);
  EXPECT_EQ(bn.first_weight, fc1.first_weight + fc1.weights);
  EXPECT_EQ(bn.first_running, 2u * 4);
  EXPECT_EQ(bn.running, 2u * 5);
  EXPECT_EQ(fc2.first_weight, bn.first_weight + 2 * 5);
  EXPECT_EQ(network.weights, fc1.weights + bn.weights + 6);
  EXPECT_FALSE(network.uses("dead"));
  EXPECT_TRUE(network.uses("dense"));
  EXPECT_EQ(network.logit(), "fc2");
}

TEST(DenseNetwork, AConcatIgnoresDenseFeaturesWithoutColumns) {
  const model::ModelConfig config = model::ParseOrDie({"layers.0.dense.dense_dim=0"});
  const DenseNetwork network = FindDenseNetwork(config).value();
  EXPECT_FALSE(network.uses("dense"));
  EXPECT_TRUE(network.uses("reshape1"));
}

TEST(DenseNetwork, ATensorWithoutColumnsIsRefused) {
  const model::ModelConfig config = model::ParseOrDie(
      {"layers.0.dense.dense_dim=0"},
      WithLayers(R"({"name": "low", "type": "InnerProduct", "bottom": "dense", "top": "low",
                     "fc_param": {"num_output": 5}})",
                 "low"));
  const auto network = FindDenseNetwork(config);
  EXPECT_EQ(network.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(network.status().message()),
              AllOf(HasSubstr("layer 'low'"), HasSubstr("'dense' has no columns")));
}

TEST(DenseNetwork, ALayerThatReadsTheLabelIsRefused) {
  const model::ModelConfig config = model::ParseOrDie(
      {}, WithLayers(R"({"name": "leak", "type": "Concat", "bottom": ["concat1", "label"],
                         "top": "leak"})",
                     "leak"));
  const auto network = FindDenseNetwork(config);
  EXPECT_EQ(network.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(network.status().message()),
              AllOf(HasSubstr("layer 'leak'"), HasSubstr("reads the label 'label'")));
}

TEST(DenseNetwork, WhatProtocolBuffersCannotHoldIsRefusedBeforeItIsRead) {
  const model::ModelConfig config = model::ParseOrDie({}, WithLayers(R"(
    {"name": "fc1", "type": "InnerProduct", "bottom": "concat1", "top": "fc1",
     "fc_param": {"num_output": 40000}},
    {"name": "wide", "type": "InnerProduct", "bottom": "fc1", "top": "wide",
     "fc_param": {"num_output": 20000}})",
                                                                     "wide"));
  const auto network = FindDenseNetwork(config);
  EXPECT_EQ(network.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(network.status().message()),
              AllOf(HasSubstr("800520001 parameters"), HasSubstr("3.20 GB"), HasSubstr("'wide'")));
}

TEST(DenseNetwork, ConstantsOfAnInteractionCount) {
  const model::ModelConfig config = model::ParseOrDie(
      {"layers.0.sparse.0.slot_num=40000", "layers.0.sparse.0.max_feature_num_per_sample=0",
       "layers.reshape1.leading_dim=160000"},
      WithLayers(R"({"name": "low", "type": "InnerProduct", "bottom": "dense", "top": "low",
                     "fc_param": {"num_output": 4}},
                    {"name": "pairs", "type": "Interaction", "bottom": ["low", "emb"],
                     "top": "pairs"},
                    {"name": "few", "type": "Slice", "bottom": "pairs", "top": ["few"],
                     "ranges": [[0, 9]]})",
                 "few"));
  const auto network = FindDenseNetwork(config);
  EXPECT_THAT(std::string(network.status().message()), HasSubstr("'pairs'"));
}

TEST(DenseNetwork, ReadsWeightsWithoutTheOptimizersState) {
  const model::ModelConfig config = model::ParseOrDie({}, WithLayers(kWithDead, "bn"));
  StoredModel model(config);
  const DenseValues values = ReadDenseValues(FindDenseNetwork(config).value(), model).value();
  ASSERT_EQ(values.weights.size(), 48u + 8 + 60 + 10 + 6);
  EXPECT_EQ(values.weights[0], 0.0f);
  EXPECT_EQ(values.weights[131], 131.0f);
  ASSERT_EQ(values.running.size(), 18u);
  EXPECT_EQ(values.running[17], 1017.0f);
}

TEST(DenseNetwork, NumbersThatAreNotFiniteAreRefusedWithTheirLayer) {
  const model::ModelConfig config = model::ParseOrDie({}, WithLayers(kWithDead, "bn"));
  const DenseNetwork network = FindDenseNetwork(config).value();
  const auto message = [&](StoredModel& model) {
    const auto values = ReadDenseValues(network, model);
    EXPECT_EQ(values.status().code(), absl::StatusCode::kDataLoss);
    return std::string(values.status().message());
  };
  StoredModel model(config);
  model.SetParameter(0, NAN);  // of the dead layer: not exported
  EXPECT_TRUE(ReadDenseValues(network, model).ok());
  model.SetParameter(56 + 7, INFINITY);
  EXPECT_THAT(message(model), AllOf(HasSubstr("runs/a, commit 12"), HasSubstr("layer 'fc1'"),
                                    HasSubstr("weight 7 is inf")));
  StoredModel negative(config);
  negative.table(1)[8 + 5] = -0.5f;
  EXPECT_THAT(message(negative),
              AllOf(HasSubstr("layer 'bn'"), HasSubstr("running statistic 5 is -0.5")));
  StoredModel cut(config);
  cut.table(0).resize(3 * 100);
  EXPECT_THAT(message(cut), HasSubstr("the dense tables end before its parameters"));
}

}  // namespace
}  // namespace cistern
