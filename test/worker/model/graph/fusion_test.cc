#include "worker/model/graph/fusion.h"

#include <gtest/gtest.h>

namespace cistern::model {
namespace {

LayerConfig MakeLayer(const std::string& type, const std::string& bottom, const std::string& top) {
  LayerConfig layer;
  layer.type = type;
  layer.name = top;
  layer.bottoms = {bottom};
  layer.tops = {top};
  return layer;
}

TEST(Fusion, BatchNormAbsorbsReluAndDropout) {
  const std::vector<LayerConfig> layers = {
      MakeLayer("InnerProduct", "a", "b"), MakeLayer("BatchNorm", "b", "c"),
      MakeLayer("ReLU", "c", "d"), MakeLayer("Dropout", "d", "e")};
  const FusionPlan plan = PlanFusion(layers);
  EXPECT_EQ(plan.absorbed, (std::vector<bool>{false, false, true, true}));
  EXPECT_EQ(plan.epilogues[1].relu, &layers[2]);
  EXPECT_EQ(plan.epilogues[1].dropout, &layers[3]);
  EXPECT_EQ(plan.epilogues[1].dropout_index, 3u);
}

TEST(Fusion, ReluAbsorbsDropout) {
  const std::vector<LayerConfig> layers = {MakeLayer("ReLU", "a", "b"),
                                           MakeLayer("Dropout", "b", "c")};
  const FusionPlan plan = PlanFusion(layers);
  EXPECT_EQ(plan.epilogues[0].relu, nullptr);
  EXPECT_EQ(plan.epilogues[0].dropout, &layers[1]);
  EXPECT_TRUE(plan.absorbed[1]);
}

TEST(Fusion, InnerProductAbsorbsReluWithoutDropout) {
  std::vector<LayerConfig> layers = {MakeLayer("InnerProduct", "a", "b"),
                                     MakeLayer("ReLU", "b", "c"),
                                     MakeLayer("InnerProduct", "c", "d")};
  FusionPlan plan = PlanFusion(layers);
  EXPECT_EQ(plan.absorbed, (std::vector<bool>{false, true, false}));
  EXPECT_EQ(plan.epilogues[0].relu, &layers[1]);
  layers.push_back(MakeLayer("InnerProduct", "b", "e"));  // one more reader
  EXPECT_EQ(PlanFusion(layers).absorbed, (std::vector<bool>{false, false, false, false}));
  layers[2] = MakeLayer("Dropout", "c", "d");
  layers.pop_back();
  plan = PlanFusion(layers);
  EXPECT_EQ(plan.absorbed, (std::vector<bool>{false, false, true}));
  EXPECT_EQ(plan.epilogues[1].dropout, &layers[2]);
}

TEST(Fusion, DoesNotAbsorbALayerWhoseInputHasAnotherReader) {
  std::vector<LayerConfig> layers = {MakeLayer("BatchNorm", "b", "c"), MakeLayer("ReLU", "c", "d"),
                                     MakeLayer("Dropout", "d", "e"),
                                     MakeLayer("InnerProduct", "d", "f")};
  FusionPlan plan = PlanFusion(layers);
  EXPECT_EQ(plan.absorbed, (std::vector<bool>{false, true, false, false}));
  EXPECT_EQ(plan.epilogues[0].dropout, nullptr);
  layers[3].bottoms = {"c"};
  plan = PlanFusion(layers);
  EXPECT_EQ(plan.absorbed, (std::vector<bool>{false, false, true, false}));
  EXPECT_EQ(plan.epilogues[1].dropout, &layers[2]);
}

TEST(Fusion, BatchNormDoesNotAbsorbADropoutWithoutRelu) {
  const std::vector<LayerConfig> layers = {MakeLayer("BatchNorm", "b", "c"),
                                           MakeLayer("Dropout", "c", "d")};
  EXPECT_EQ(PlanFusion(layers).absorbed, (std::vector<bool>{false, false}));
}

}  // namespace
}  // namespace cistern::model
