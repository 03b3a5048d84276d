#include "worker/model/graph/graph.h"

#include "test/worker/model/model_bench.h"
#include "test/worker/model/model_error.h"
#include "test/worker/model/model_texts.h"
#include "worker/model/graph/model_summary.h"
#include "worker/model/layer/layer_list.h"

namespace cistern::model {
namespace {

using ::testing::HasSubstr;

// The dead layer of the tangled model is "nowhere", with 2 inputs and 3 outputs. Its parameters are
// the last ones of the table, after those of bn (2 * 7) and fb (4 + 1).
TEST(Graph, DeadLayersKeepTheirWeights) {
  ModelBench bench(TangledText(), {}, 12);
  const std::vector<double> before = bench.DenseColumn(0);
  bench.Train(bench.batch(16, 1), 1);
  const std::vector<double> after = bench.DenseColumn(0);
  const size_t own = 2 * 3 + 3;
  size_t moved = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    if (after[i] == before[i]) continue;
    EXPECT_LT(i, before.size() - own);
    ++moved;
  }
  EXPECT_GT(moved, before.size() / 2);
}

// In every step their gradient is that of the regularizer alone: w -= lambda / batchsize * w.
TEST(Graph, TheRegularizerAppliesToDeadLayers) {
  ModelBench bench(TangledText(), {"layers.loss.regularizer=L2", "layers.loss.lambda=1.6"}, 12);
  const std::vector<double> before = bench.DenseColumn(0);
  for (uint64_t step = 1; step <= 3; ++step) bench.Train(bench.batch(16, 1), step);
  const std::vector<double> after = bench.DenseColumn(0);
  for (size_t i = before.size() - 9; i < before.size(); ++i) {
    EXPECT_NEAR(after[i], before[i] * 0.9 * 0.9 * 0.9, 1e-6) << i;
  }
}

TEST(Graph, ADeadEmbeddingKeepsItsRows) {
  const std::string text =
      WithSgd(OneSparse(),
              Embedding("used", "data1", 2, "0") + "," + Embedding("unused", "data1", 2, "0") +
                  "," + Simple("Reshape", "used", "flat") + "," +
                  Simple("Reshape", "unused", "flat2") + "," + FullyConnected("flat", "logit", 1));
  ModelBench bench(text, {"cistern.embedding_l2=1"}, 12);
  const std::vector<double> used = bench.Weights(0), unused = bench.Weights(1);
  bench.Train(bench.batch(16, 1), 1);
  EXPECT_NE(bench.Weights(0), used);
  EXPECT_EQ(bench.Weights(1), unused);
}

// The floats of the values of a graph, 16 samples, in the memory of the test's device.
size_t ValuesOf(const std::string& text) {
  const absl::StatusOr<ModelConfig> config =
      ParseModelConfig(text, "model.json", {}, LayerGrammars());
  EXPECT_TRUE(config.ok()) << config.status();
  Parameters parameters;
  const absl::StatusOr<std::unique_ptr<Graph>> graph = Graph::Create(*config, &parameters);
  EXPECT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE((*graph)->Allocate(TestDevice()).ok());
  return (*graph)->memory().values;
}

// low, the Concat of low and the vectors, logit: no values of the embedding itself.
TEST(Graph, AnEmbeddingWritesIntoTheConcatThatReadsIt) {
  const std::string text = WithSgd(
      OneSparse(), Embedding("emb", "data1", 4, "0") + "," + Simple("Reshape", "emb", "flat") +
                       "," + FullyConnected("dense", "low", 4) + "," +
                       R"({"type": "Concat", "name": "all", "bottom": ["low", "flat"],
                           "top": "all"},)" +
                       FullyConnected("all", "logit", 1));
  EXPECT_EQ(ValuesOf(text), 16 * (4 + 20 + 1));
}

// Beside the tower of 8 and 1, the machine of 4 and 1, and the logit. The CPU keeps the order in
// which readers add to a gradient; so does a GPU where the Concat's readers would not come first.
TEST(Graph, AFactorizationMachineReadsTheVectorsWithinAConcatOnAGpu) {
  const size_t shared = 16 * (4 + 20 + 8 + 1 + 4 + 1 + 1);
  const bool on_gpu = TestDevice().kind() != DeviceKind::kCpu;
  EXPECT_EQ(ValuesOf(FmBesideConcatText()), on_gpu ? shared : shared + 16 * 16);
  EXPECT_EQ(ValuesOf(FmBesideConcatText(/*fm_last=*/true)), shared + 16 * 16);
}

// Sizes whose products would wrap around are refused before any memory is taken.
TEST(Graph, RefusesSizesThatNoMachineHolds) {
  const std::string wide =
      WithSgd(OneSparse(),
              Embedding("e", "data1", 4096, "0") + "," + Simple("Reshape", "e", "flat") + "," +
                  FullyConnected("flat", "fc1", 1 << 20) + "," +
                  FullyConnected("fc1", "fc2", 1 << 20) + "," + FullyConnected("fc2", "logit", 1));
  const absl::StatusOr<ModelConfig> config =
      ParseModelConfig(wide, "model.json", {"solver.batchsize=1"}, LayerGrammars());
  ASSERT_TRUE(config.ok()) << config.status();
  const absl::Status status = Summarize(*config).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("more than 1099511627776 dense parameters"));
}

TEST(Graph, TheLossChecksItsInputs) {
  EXPECT_EQ(
      BuildError({"layers.fc2.fc_param.num_output=2"}),
      "model.json: layer 'loss' (layers[7], BinaryCrossEntropyLoss): logit 'fc2' is [b, 2] and "
      "label 'label' is [b, 1]; they must have the same shape");
  EXPECT_THAT(BuildError({"layers.loss.bottom=[\"fc2\"]"}),
              HasSubstr("its bottoms must be [logit, label]"));
  EXPECT_THAT(BuildError({"layers.loss.bottom=[\"fc2\",\"dense\"]"}),
              HasSubstr("its second bottom must be the label 'label', not 'dense'"));
  EXPECT_THAT(
      BuildError({"layers.data.label.label_dim=3", "layers.loss.bottom=[\"dense\",\"label\"]"}),
      HasSubstr("its logit is an input, not computed by any layer"));
}

}  // namespace
}  // namespace cistern::model
