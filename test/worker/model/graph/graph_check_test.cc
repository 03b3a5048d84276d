#include "worker/model/graph/graph_check.h"

#include "test/worker/model/model_error.h"

namespace cistern::model {
namespace {

using ::testing::HasSubstr;

TEST(GraphCheck, UndefinedBottomErrorSuggestsTheNearestTensor) {
  EXPECT_EQ(
      BuildError({"layers.fc1.bottom=concat"}),
      "model.json: layer 'fc1' (layers[4], InnerProduct): bottom 'concat' is not defined; did "
      "you mean 'concat1'?");
}

TEST(GraphCheck, ErrorGivesTheLayerThatDefinesABottomLater) {
  EXPECT_EQ(BuildError({"layers.fc1.bottom=relu1", "layers.relu1.bottom=concat1"}),
            "model.json: layer 'fc1' (layers[4], InnerProduct): bottom 'relu1' is defined later, "
            "by layer "
            "'relu1' (layers[5], ReLU); layers are computed in the order of the file: move that "
            "layer up");
}

TEST(GraphCheck, CycleErrorListsItsTensors) {
  EXPECT_EQ(BuildError({"layers.fc1.bottom=relu1"}),
            "model.json: layer 'fc1' (layers[4], InnerProduct): bottom 'relu1' closes a cycle: "
            "relu1 <- fc1 <- relu1");
  EXPECT_THAT(BuildError({"layers.concat1.bottom=[\"reshape1\",\"relu1\"]"}),
              HasSubstr("bottom 'relu1' closes a cycle: relu1 <- fc1 <- concat1 <- relu1"));
}

TEST(GraphCheck, OnlyAnEmbeddingCanReadASparseInput) {
  EXPECT_THAT(BuildError({"layers.fc1.bottom=data1"}),
              HasSubstr("bottom 'data1' is a sparse input: only an embedding can read it"));
}

TEST(GraphCheck, RejectsALayerThatReadsItsOwnTop) {
  EXPECT_EQ(BuildError({"layers.relu1.bottom=relu1"}),
            "model.json: layer 'relu1' (layers[5], ReLU): 'relu1' is both its bottom and its top; "
            "give the top another name");
}

TEST(GraphCheck, RejectsANameThatIsDefinedTwice) {
  EXPECT_THAT(
      BuildError({"layers.relu1.top=fc1", "layers.relu1.bottom=concat1"}),
      HasSubstr(
          "layer 'relu1' (layers[5], ReLU): top 'fc1' is already defined by an earlier layer"));
  EXPECT_THAT(BuildError({"layers.deep.top=dense"}),
              HasSubstr("embedding 'deep': top 'dense' is already defined by an earlier layer"));
}

TEST(GraphCheck, AModelHasExactlyOneLoss) {
  const std::string loss =
      R"({"name": "loss", "type": "BinaryCrossEntropyLoss", "bottom": ["fc2", "label"], )"
      R"("top": "loss"})";
  EXPECT_EQ(BuildError({}, Replaced(",\n    " + loss, "")),
            "model.json: layers: no loss; add one, such as BinaryCrossEntropyLoss with the bottoms "
            "[logit, label]");
  const std::string second =
      R"({"name": "loss2", "type": "BinaryCrossEntropyLoss", "bottom": ["fc2", "label"],
          "top": "loss2"})";
  EXPECT_EQ(
      BuildError({}, Replaced(loss, loss + "," + second)),
      "model.json: layer 'loss2' (layers[8], BinaryCrossEntropyLoss): is a second loss; the first "
      "is layer 'loss' (layers[7], BinaryCrossEntropyLoss)");
}

// The search for a cycle must not recurse: the cycle can be as long as the number of layers.
TEST(GraphCheck, FindsACycleOfManyLayers) {
  ModelConfig config;
  config.data.label_top = "label";
  constexpr int kLayers = 100000;
  for (int i = 0; i < kLayers; ++i) {
    LayerConfig& layer = config.layers.emplace_back();
    layer.name = absl::StrCat("l", i);
    layer.type = "ReLU";
    layer.bottoms = {absl::StrCat("t", (i + kLayers - 1) % kLayers)};
    layer.tops = {absl::StrCat("t", i)};
  }
  EXPECT_THAT(std::string(CheckGraph(config).message()),
              HasSubstr("bottom 't99999' closes a cycle: t99999 <- t99998 <- "));
}

}  // namespace
}  // namespace cistern::model
