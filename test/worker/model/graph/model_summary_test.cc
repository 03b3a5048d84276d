#include "worker/model/graph/model_summary.h"

#include <gmock/gmock.h>

#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "test/worker/model/config/config_parsing.h"
#include "test/worker/model/model_bench.h"
#include "test/worker/model/model_texts.h"

namespace cistern::model {
namespace {

ModelSummary SummaryOf(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const absl::StatusOr<ModelSummary> summary = Summarize(ParseOrDie(overrides, text));
  EXPECT_TRUE(summary.ok()) << summary.status();
  return summary.ok() ? *summary : ModelSummary();
}

const LayerSummary& Find(const ModelSummary& summary, const std::string& name) {
  for (const LayerSummary& layer : summary.layers) {
    if (layer.name == name) return layer;
  }
  ADD_FAILURE() << "no layer " << name;
  return summary.layers.front();
}

TEST(ModelSummary, ListsEveryLayerWithShapesAndParameters) {
  const ModelSummary summary = SummaryOf(DnnText());
  EXPECT_EQ(Find(summary, "emb").shapes[0].ToString(), "[b, 4, 5]");
  EXPECT_EQ(Find(summary, "fc1").shapes[0].ToString(), "[b, 8]");
  EXPECT_EQ(Find(summary, "fc1").parameters, 20u * 8 + 8);
  EXPECT_EQ(Find(summary, "relu1").shapes[0].ToString(), "[b, 8]");  // computed within bn1
  EXPECT_EQ(Find(summary, "drop1").shapes[0].ToString(), "[b, 8]");
  EXPECT_EQ(Find(summary, "drop1").parameters, 0u);
  EXPECT_TRUE(Find(summary, "loss").shapes.empty());
  EXPECT_EQ(summary.layers.size(), ParseOrDie({}, DnnText()).layers.size() + 1);
  // fc1, bn1, fc2, bn2, logit; two statistics per column of each BatchNorm.
  EXPECT_EQ(summary.parameters, 168u + 16 + 8 * 6 + 6 + 12 + 7);
  EXPECT_EQ(summary.running, 2u * (8 + 6));
  // SGD: weights and gradients.
  EXPECT_EQ(summary.parameter_bytes, (2 * summary.parameters + 2 * summary.running) * 4);
}

TEST(ModelSummary, GivesTheRowSizeOfEachTable) {
  const ModelSummary summary = SummaryOf(SmallModelText());
  ASSERT_EQ(summary.tables.size(), 1u);
  EXPECT_EQ(summary.tables[0].name, "deep");
  EXPECT_EQ(summary.tables[0].slots, 2u);
  EXPECT_EQ(summary.tables[0].rule, "adam");
  EXPECT_EQ(summary.tables[0].value_bytes, 3u * 4 * 4);  // w, m, v of 4 floats
}

TEST(ModelSummary, MarksDeadLayers) {
  const ModelSummary summary = SummaryOf(TangledText());
  for (const LayerSummary& layer : summary.layers) {
    EXPECT_EQ(layer.live, layer.name != "nowhere") << layer.name;
  }
}

// The memory covers the values of every layer at the larger batch size. The second batch would take
// terabytes, but the summary allocates nothing.
TEST(ModelSummary, MemoryGrowsWithTheBatchAndIsNotAllocated) {
  const ModelSummary one = SummaryOf(SmallModelText(), {"solver.batchsize=1024"});
  const ModelSummary many =
      SummaryOf(SmallModelText(), {"solver.batchsize=1024", "solver.batchsize_eval=4294967295"});
  const size_t floats = 11 + 5 + 1;  // emb is written into concat1; relu1 overwrites fc1
  EXPECT_EQ(one.step.values, 1024 * floats);
  EXPECT_EQ(many.batchsize, 4294967295u);
  EXPECT_GE(many.step.values, 4294967295u * floats);
  EXPECT_EQ(many.step.gradients, one.step.gradients);
}

TEST(ModelSummary, ReturnsTheErrorsOfAnInvalidModel) {
  const absl::StatusOr<ModelSummary> summary = Summarize(ParseOrDie({"layers.fc1.bottom=nothing"}));
  EXPECT_THAT(std::string(summary.status().message()),
              testing::StartsWith("model.json: layer 'fc1'"));
}

// Files of HugeCTR, and everybody who reads the table "dense", need the order of a layer's weights.
TEST(ModelSummary, TheDocumentationSaysInWhichOrderWeightsAre) {
  std::ifstream file(CISTERN_SOURCE_DIR "/docs/formats.md");
  std::ostringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  const size_t begin = all.find("Weights of a layer:");
  ASSERT_NE(begin, std::string::npos);
  std::set<std::string> types;  // of the first column
  for (const absl::string_view line : absl::StrSplit(
           absl::string_view(all).substr(begin, all.find("\n\nRows ", begin) - begin), '\n')) {
    const std::vector<absl::string_view> cells = absl::StrSplit(line, " | ");
    for (const absl::string_view type : absl::StrSplit(absl::StripPrefix(cells[0], "| "), ", ")) {
      types.emplace(type);
    }
  }
  for (const ModelCase& one : Architectures()) {
    for (const LayerSummary& layer : SummaryOf(one.text, one.overrides).layers) {
      if (layer.parameters == 0) continue;
      EXPECT_EQ(types.count(layer.type), 1u)
          << layer.type << ": add a row to 'Weights of a layer' of docs/formats.md";
    }
  }
}

}  // namespace
}  // namespace cistern::model
