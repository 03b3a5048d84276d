#include "app/demo/demo_model.h"

#include <gtest/gtest.h>

#include "app/fleet/local_servers.h"
#include "worker/model/config/model_config.h"
#include "worker/model/layer/layer_list.h"

namespace cistern::app {
namespace {

DemoModelShape Shape(uint32_t dense_dim) {
  DemoModelShape shape;
  shape.train = "train.txt";
  shape.test = "test.txt";
  shape.wide_keys = true;
  shape.dense_dim = dense_dim;
  shape.slot_num = 5;
  shape.max_keys = 7;
  return shape;
}

TEST(DemoModel, MatchesTheShapeOfItsData) {
  const auto config =
      model::ParseModelConfig(DemoModel(Shape(3)), "demo.json", {}, model::LayerGrammars());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->data.source, "train.txt");
  EXPECT_EQ(config->data.eval_source, "test.txt");
  EXPECT_EQ(config->data.check, data::NormCheck::kSum);
  EXPECT_EQ(config->data.dense_dim, 3u);
  EXPECT_EQ(config->data.sparse.at(0).slot_num, 5u);
  EXPECT_EQ(config->data.sparse.at(0).max_feature_num, 7u);
  EXPECT_TRUE(config->solver.wide_keys);
  EXPECT_TRUE(config->notes.empty());
}

TEST(DemoModel, EscapesPaths) {
  DemoModelShape shape = Shape(3);
  shape.train = "/tmp/q\"d/back\\slash/$test/list.txt";
  const auto config =
      model::ParseModelConfig(DemoModel(shape), "demo.json", {}, model::LayerGrammars());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->data.source, shape.train);
}

TEST(DemoModel, LeavesNoPlaceholder) {
  EXPECT_EQ(DemoModel(Shape(3)).find('$'), std::string::npos);
  EXPECT_EQ(DemoModel(Shape(0)).find('$'), std::string::npos);
}

TEST(DemoModel, HasNoDenseBranchWithoutDenseFeatures) {
  const std::string text = DemoModel(Shape(0));
  EXPECT_TRUE(model::ParseModelConfig(text, "demo.json", {}, model::LayerGrammars()).ok());
  EXPECT_EQ(text.find("Multiply"), std::string::npos);
}

TEST(ReadyLine, ContainsThePort) {
  EXPECT_EQ(*ParseReadyLine("cistern-server rank=0 port=41003 ready"), 41003);
  EXPECT_FALSE(ParseReadyLine("cistern-server rank=0 ready").ok());
  EXPECT_FALSE(ParseReadyLine("port=many").ok());
}

}  // namespace
}  // namespace cistern::app
