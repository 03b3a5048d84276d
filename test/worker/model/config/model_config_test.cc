#include "worker/model/config/model_config.h"

#include <fstream>

#include "test/worker/model/config/config_parsing.h"
#include "worker/model/layer/layer_configs.h"
#include "worker/model/layer/layer_list.h"

namespace cistern::model {
namespace {

using ::testing::ElementsAre;

TEST(ModelConfig, ReadsTheValuesOfTheFile) {
  const ModelConfig config = ParseOrDie();
  EXPECT_EQ(config.solver.display, 10u);
  EXPECT_EQ(config.solver.max_iter, 100u);
  EXPECT_EQ(config.solver.num_epochs, 0u);
  EXPECT_EQ(config.solver.batchsize, 8u);
  EXPECT_EQ(config.solver.batchsize_eval, 8u);
  EXPECT_EQ(config.solver.seed, 7u);
  EXPECT_FALSE(config.solver.wide_keys);
  EXPECT_EQ(config.optimizer.rule.kind, RuleKind::kAdam);
  EXPECT_FLOAT_EQ(config.optimizer.rule.epsilon, 1e-7f);
  EXPECT_EQ(config.data.source, "train.txt");
  EXPECT_EQ(config.data.check, data::NormCheck::kSum);
  ASSERT_EQ(config.data.sparse.size(), 1u);
  EXPECT_EQ(config.data.sparse[0].max_feature_num, 30u);
  EXPECT_EQ(ShapeOf(config.data), (data::SampleShape{1, 3, {2}, {30}}));
  ASSERT_EQ(config.embeddings.size(), 1u);
  EXPECT_EQ(config.embeddings[0].name, "deep");
  EXPECT_EQ(config.embeddings[0].combiner, Combiner::kSum);
  ASSERT_EQ(config.layers.size(), 6u);
  EXPECT_EQ(config.layers[2].path, "layers[4]");
  EXPECT_EQ(config.layers[2].own<FullyConnectedConfig>().num_output, 5u);
  EXPECT_THAT(config.layers[1].bottoms, ElementsAre("reshape1", "dense"));
  EXPECT_EQ(config.cistern.pass_memory_mb, 1024u);
}

TEST(ModelConfig, TellsADataFileFromAModelFile) {
  const std::string path = testing::TempDir() + "cistern_train.csv";
  std::ofstream(path) << "label,age,city\n1,34,Rome\n";
  const absl::Status status = LoadModelConfig(path, {}, LayerGrammars()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("is a table of text, not a model file"));
  const auto told = [&](const std::string& text, const std::string& words) {
    std::ofstream(path + ".txt") << text;
    const absl::Status wrong = LoadModelConfig(path + ".txt", {}, LayerGrammars()).status();
    EXPECT_THAT(std::string(wrong.message()), testing::HasSubstr(words));
    return OptionsOf(wrong);
  };
  EXPECT_THAT(told("1 7:1 9:0.5\n", "is libsvm text"), ElementsAre("data.convert.format=libsvm"));
  EXPECT_THAT(told("-1 0:7:1 2:9:1\r\n", "is libffm text"),
              ElementsAre("data.convert.format=libffm"));
  EXPECT_THAT(told("1 12:30 x\n", "error"), ElementsAre());  // neither
  told("click user\n1 u7\n",
       "is text, not a model file (a JSON object): if it is a table, give it");
  told("{\n\"click\": 1\n}\n{\n\"click\": 0\n}\n", "(JSON Lines): jq -c . " + path);
  told("{\"n\": 2, \"rows\": [{\"click\": 1}]}", "jq -c '.[\"rows\"][]' " + path);
  told("{\"layers\": [}", "syntax error");
}

}  // namespace
}  // namespace cistern::model
