#include "worker/model/config/json_document.h"

#include <map>

#include "test/worker/model/config/config_parsing.h"
#include "worker/model/layer/layer_configs.h"

namespace cistern::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(JsonDocument, SyntaxErrorsGiveLineAndColumn) {
  EXPECT_THAT(ErrorOf({}, "{\n  \"solver\": {,}\n}"), HasSubstr("model.json: line 2, column 14"));
  EXPECT_THAT(ErrorOf({}, ""), HasSubstr("model.json: line 1, column 1"));
}

TEST(JsonDocument, SyntaxErrorsExplainCommonMistakes) {
  EXPECT_THAT(ErrorOf({}, ""), HasSubstr("the file is empty"));
  EXPECT_THAT(ErrorOf({}, Replaced("\"seed\": 7", "\"seed\": 7 // why")), HasSubstr("no comments"));
  EXPECT_THAT(ErrorOf({}, Replaced("\"seed\": 7", "\"seed\": NaN")), HasSubstr("no NaN"));
  EXPECT_THAT(ErrorOf({}, std::string("\xff\xfe{\0}\0", 6)), HasSubstr("UTF-16"));
}

// Copying and printing a tree recurse as deep as the tree.
TEST(JsonDocument, LimitsNestingDepth) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_THAT(ErrorOf({}, Replaced("\"seed\": 7", "\"seed\": 7, \"gpu\": " + deep)),
              HasSubstr("model.json: is nested 10000"));
  EXPECT_THAT(ErrorOf({"solver.gpu=" + deep}), HasSubstr("'solver.gpu': is nested more than 100"));
}

TEST(JsonDocument, RejectsADuplicateKey) {
  EXPECT_EQ(ErrorOf({}, Replaced("\"seed\": 7", "\"seed\": 7, \"batchsize\": 9")),
            "model.json: key 'batchsize' occurs twice in one object");
}

TEST(JsonDocument, OverridesReachObjectsArraysAndNamedLayers) {
  const ModelConfig config = ParseOrDie(
      {"solver.batchsize=4096", "solver.max_iter=1e5", "layers.fc1.fc_param.num_output=200",
       "layers.5={\"type\":\"Dropout\",\"bottom\":\"fc1\",\"top\":\"relu1\",\"rate\":0.1}",
       "cistern.clip_norm=10", "layers.data.source=other.txt",
       "solver.eval_metrics=[\"AUC:0.75\",\"AverageLoss\"]"});
  EXPECT_EQ(config.solver.batchsize, 4096u);
  EXPECT_EQ(config.solver.max_iter, 100000u);
  EXPECT_EQ(config.layers[2].own<FullyConnectedConfig>().num_output, 200u);
  EXPECT_EQ(config.layers[3].type, "Dropout");
  EXPECT_EQ(config.layers[3].own<DropoutConfig>().rate, 0.1f);
  EXPECT_EQ(config.cistern.clip_norm, 10);
  EXPECT_EQ(config.data.source, "other.txt");
  EXPECT_EQ(config.solver.auc_threshold, 0.75);
  EXPECT_THAT(config.solver.eval_metrics, ElementsAre("AUC", "AverageLoss"));
}

TEST(JsonDocument, OverridesMustBeUtf8) {
  EXPECT_THAT(ErrorOf({"layers.data.source=caf\xe9"}), HasSubstr("is not UTF-8"));
  EXPECT_EQ(ParseOrDie({"layers.data.source=caf\xc3\xa9"}).data.source, "caf\xc3\xa9");
}

TEST(JsonDocument, RejectsOverridesWithAnInvalidPath) {
  EXPECT_THAT(ErrorOf({"solver.batchsize"}), HasSubstr("write path=value"));
  EXPECT_THAT(ErrorOf({"layers.fc9.name=x"}), HasSubstr("layers has no element 'fc9'"));
  EXPECT_THAT(ErrorOf({"layers.99.name=x"}), HasSubstr("layers has no element '99'"));
  EXPECT_THAT(ErrorOf({"solver.batchsize.x=1"}),
              HasSubstr("solver.batchsize is the number 8, which holds no 'x'"));
}

TEST(JsonDocument, OverridesAreJsonOrABareWord) {
  Json root = Json::parse(R"({"a": {"b": 1}, "l": [{"name": "x", "v": 1}, {"top": "y"}]})");
  for (const char* one :
       {"a.b=[1, 2]", "a.c=word", "a.d=\"12\"", "l.x.v=true", "l.y.v=2.5", "l.0.w=null"}) {
    EXPECT_TRUE(ApplyOverride(one, &root).ok()) << one;
  }
  EXPECT_EQ(root, Json::parse(R"({"a": {"b": [1, 2], "c": "word", "d": "12"},
      "l": [{"name": "x", "v": true, "w": null}, {"top": "y", "v": 2.5}]})"));
}

TEST(JsonDocument, OverridesAreNumbersAsPeopleWriteThem) {
  const auto value = [](const std::string& text) {
    Json root;
    EXPECT_TRUE(ApplyOverride("a=" + text, &root).ok()) << text;
    return root["a"];
  };
  EXPECT_EQ(value(".5"), Json(0.5));
  EXPECT_EQ(value("-.25"), Json(-0.25));
  EXPECT_EQ(value("+.5e1"), Json(5.0));
  EXPECT_EQ(value("+7"), Json(7));
  EXPECT_EQ(value("3."), Json(3.0));
  EXPECT_EQ(value("1.e-3"), Json(0.001));
  for (const char* text :
       {".", "..5", "+-5", "-", "+", ".e5", "1.2.3", "5x", ".5x", "+x", "05", ""}) {
    EXPECT_EQ(value(text), Json(text)) << text;
  }
}

TEST(JsonDocument, FlattensATreeToPathsAndValues) {
  using Value = std::pair<std::string, std::string>;
  EXPECT_THAT(FlattenJson(Json::parse(R"({"a": {"b": 1.0, "c": 1e-3}, "l": [{"n": "x"}, {"v": []}],
      "s": ["p", 2.50]})")),
              ElementsAre(Value("a.b", "1"), Value("a.c", "0.001"), Value("l[0].n", "\"x\""),
                          Value("l[1].v", "[]"), Value("s", "[\"p\",2.5]")));
}

TEST(JsonDocument, ConfigurationKeepsItsValuesWithOverridesAndDefaults) {
  const ModelConfig config = ParseOrDie({"solver.batchsize=4096"});
  std::map<std::string, std::string> values(config.values.begin(), config.values.end());
  EXPECT_EQ(values.size(), config.values.size());
  EXPECT_EQ(values["solver.batchsize"], "4096");
  EXPECT_EQ(values["cistern.commit_every"], "1");
  EXPECT_EQ(values["layers[0].type"], "\"Data\"");
}

TEST(JsonDocument, DescribesValuesForMessages) {
  EXPECT_EQ(DescribeJson(Json::parse("\"a\"")), "the string \"a\"");
  EXPECT_EQ(DescribeJson(Json::parse("-1.5")), "the number -1.5");
  EXPECT_EQ(DescribeJson(Json::parse("null")), "null");
  EXPECT_EQ(DescribeJson(Json::parse("{}")), "an object");
}

}  // namespace
}  // namespace cistern::model
