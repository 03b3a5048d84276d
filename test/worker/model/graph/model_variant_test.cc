// The variants of worker/model/config, as graphs: that folder does not know graphs.
#include "worker/model/config/model_variant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "worker/model/config/model_config.h"
#include "worker/model/config/model_template.h"
#include "worker/model/graph/model_summary.h"
#include "worker/model/layer/layer_list.h"

namespace cistern::model {
namespace {

using Json = nlohmann::ordered_json;

// Expects that the variants of a model are models with these knobs.
void ExpectVariants(const Json& model, const std::string& name) {
  const ModelKnobs before = KnobsOf(model, LayerGrammars());
  EXPECT_GT(before.learning_rate, 0) << name;
  for (const uint32_t dim : {3, 8, 16, 24}) {
    for (const uint32_t depth : {1, 2, 5}) {
      ModelKnobs knobs = before;
      knobs.learning_rate = 0.0123;
      if (before.dim) knobs.dim = dim;
      if (before.depth) knobs.depth = depth;
      const absl::StatusOr<Json> variant = WithKnobs(model, knobs, LayerGrammars());
      ASSERT_TRUE(variant.ok()) << name << ": " << variant.status();
      EXPECT_EQ(KnobsOf(*variant, LayerGrammars()), knobs) << name << variant->dump(1);
      const auto config = ParseModelConfig(variant->dump(), "model.json", {}, LayerGrammars());
      ASSERT_TRUE(config.ok()) << name << ": " << config.status();
      const auto summary = Summarize(*config);
      ASSERT_TRUE(summary.ok()) << name << " " << dim << " " << depth << ": " << summary.status()
                                << variant->dump(1);
      for (const LayerSummary& layer : summary->layers) EXPECT_TRUE(layer.live) << layer.name;
    }
  }
}

TEST(ModelVariant, ResizesAndDeepensEveryTemplate) {
  for (const ModelKind kind : {ModelKind::kLr, ModelKind::kFm, ModelKind::kWdl, ModelKind::kDeepFm,
                               ModelKind::kDcn, ModelKind::kDcnV2, ModelKind::kDlrm}) {
    for (const auto& [slots, dense] : {std::pair(5, 3), {5, 0}, {1, 1}}) {
      TemplateData data;
      data.source = data.eval_source = "a";
      data.slot_num = static_cast<uint32_t>(slots);
      data.dense_dim = static_cast<uint32_t>(dense);
      const Json model = ModelTemplate(kind, data, SizesFor(kind, 1000, 100, 1000));
      ExpectVariants(model, Word(kind));
      const ModelKnobs knobs = KnobsOf(model, LayerGrammars());
      EXPECT_EQ(knobs.dim.has_value(), kind != ModelKind::kLr);
      EXPECT_EQ(knobs.dim.value_or(8), 8u);
      EXPECT_EQ(knobs.depth.has_value(), kind != ModelKind::kLr && kind != ModelKind::kFm);
      EXPECT_EQ(knobs.depth.value_or(2), 2u);
    }
  }
}

TEST(ModelVariant, ResizesAndDeepensTheModelsOfTheExamples) {
  size_t models = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(CISTERN_SOURCE_DIR "/examples")) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream file(entry.path());
    ExpectVariants(Json::parse(file), entry.path());
    ++models;
  }
  EXPECT_GE(models, 10u);
}

// Layers of HugeCTR 3.x: MLPs before and behind an interaction, low-rank crosses, an attention over
// the vectors of slots; and a gate.
TEST(ModelVariant, ResizesAndDeepensModelsOfHugeCtr3) {
  const auto model = [](const std::string& layers) {
    return Json::parse(R"({"solver": {"batchsize": 8, "max_iter": 1},
      "optimizer": {"type": "SGD", "sgd_hparam": {"learning_rate": 0.1}},
      "layers": [{"name": "data", "type": "Data", "source": "a",
        "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 1},
        "sparse": [{"top": "keys", "slot_num": 2, "sequence_lengths": [3, 0]}]},
       {"name": "rows", "type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys",
        "top": "rows", "sparse_embedding_hparam": {"embedding_vec_size": 6, "combiner": "sum"}},)" +
                       layers + R"(,
       {"name": "loss", "type": "BinaryCrossEntropyLoss", "bottom": ["out", "label"]}]})");
  };
  const std::string mlp = R"("type": "MLP", "mlp_param": {"num_outputs": )";
  const Json dlrm =
      model(R"({"name": "low", "bottom": "dense", "top": "low", )" + mlp + R"([8, 6]}},
         {"name": "pairs", "type": "Interaction", "bottom": ["low", "rows"], "top": "pairs"},
         {"name": "cross", "type": "MultiCross", "bottom": "pairs", "top": "cross",
          "mc_param": {"num_layers": 2, "projection_dim": 3}},
         {"name": "high", "bottom": "cross", "top": "out", )" +
            mlp +
            R"([16, 8, 4, 1], "activations": ["Relu", "Relu", "Relu", "None"],
          "biases": [true, false, true, true]}})");
  ExpectVariants(dlrm, "dlrm");
  EXPECT_EQ(KnobsOf(dlrm, LayerGrammars()).dim, 6u);
  EXPECT_EQ(KnobsOf(dlrm, LayerGrammars()).depth, 3u);
  ModelKnobs knobs = KnobsOf(dlrm, LayerGrammars());
  knobs.depth = 5;
  EXPECT_EQ(WithKnobs(dlrm, knobs, LayerGrammars())
                .value()["layers"][5]["mlp_param"]["num_outputs"]
                .dump(),
            "[16,8,4,4,4,1]");
  const Json attention = model(
      R"({"name": "mask", "type": "SequenceMask", "bottom": ["dense", "dense"], "top": "mask",
          "max_sequence_len_from": 4, "max_sequence_len_to": 4},
         {"name": "query", "type": "InnerProduct", "bottom": "rows", "top": "query",
          "fc_param": {"num_output": 8}},
         {"name": "mixed", "type": "MultiHeadAttention", "num_attention_heads": 2,
          "bottom": ["query", "query", "query", "mask"], "top": "mixed"},
         {"name": "norm", "type": "LayerNorm", "bottom": "mixed", "top": "norm"},
         {"name": "gru", "type": "GRU", "bottom": "norm", "top": "gru",
          "gru_param": {"num_output": 5}},
         {"name": "row", "type": "Reshape", "bottom": "gru", "top": "row", "leading_dim": 20},
         {"name": "self", "type": "MultiHeadAttention", "bottom": ["rows", "rows", "rows"],
          "top": "self"},
         {"name": "flat", "type": "Reshape", "bottom": "self", "top": "flat", "leading_dim": 24},
         {"name": "all", "type": "Concat", "bottom": ["row", "flat"], "top": "all"},
         {"name": "fc1", "type": "InnerProduct", "bottom": "all", "top": "fc1",
          "fc_param": {"num_output": 8}},
         {"name": "relu1", "type": "ReLU", "bottom": "fc1", "top": "relu1"},
         {"name": "out", "type": "InnerProduct", "bottom": "relu1", "top": "out",
          "fc_param": {"num_output": 1}})");
  ExpectVariants(attention, "attention");
  EXPECT_EQ(KnobsOf(attention, LayerGrammars()).depth, 1u);
  const Json gated = model(
      R"({"name": "flat", "type": "Reshape", "bottom": "rows", "top": "flat", "leading_dim": 24},
         {"name": "fc1", "type": "InnerProduct", "bottom": "flat", "top": "fc1",
          "fc_param": {"num_output": 8}},
         {"name": "relu1", "type": "ReLU", "bottom": "fc1", "top": "relu1"},
         {"name": "fc2", "type": "InnerProduct", "bottom": "relu1", "top": "fc2",
          "fc_param": {"num_output": 8}},
         {"name": "relu2", "type": "ReLU", "bottom": "fc2", "top": "relu2"},
         {"name": "fc3", "type": "InnerProduct", "bottom": "flat", "top": "fc3",
          "fc_param": {"num_output": 8}},
         {"name": "gate", "type": "Sigmoid", "bottom": "fc3", "top": "gate"},
         {"name": "gated", "type": "ElementwiseMultiply", "bottom": ["relu2", "gate"],
          "top": "gated"},
         {"name": "out", "type": "InnerProduct", "bottom": "gated", "top": "out",
          "fc_param": {"num_output": 1}})");
  ExpectVariants(gated, "gated");
  EXPECT_EQ(KnobsOf(gated, LayerGrammars()).depth, 2u);  // without the gate
}

// Every activation of the grammar makes the product before it a hidden layer.
TEST(ModelVariant, RepeatsHiddenLayersOfEveryActivation) {
  size_t activations = 0;
  for (const LayerGrammar& type : LayerGrammars()) {
    if (type.output != LayerOutput::kActivation) continue;
    ++activations;
    TemplateData data;
    data.source = data.eval_source = "a";
    data.slot_num = 2;
    Json model = ModelTemplate(ModelKind::kWdl, data, SizesFor(ModelKind::kWdl, 1000, 100, 1000));
    for (Json& layer : model["layers"]) {
      if (layer["type"] != "ReLU") continue;
      layer["type"] = type.type;
      if (type.type == "ELU") layer["elu_param"] = {{"alpha", 1}};
      if (type.type == "PReLU_Dice") layer["prelu_dice_param"] = {{"alpha", 0.2}};
    }
    EXPECT_EQ(KnobsOf(model, LayerGrammars()).depth, 2u) << type.type;
    ExpectVariants(model, type.type);
  }
  EXPECT_GE(activations, 4u);  // ReLU, ELU, PReLU_Dice, Sigmoid
}

TEST(ModelVariant, MultipliesAllLearningRates) {
  TemplateData data;
  data.source = "a";
  TemplateSizes sizes = SizesFor(ModelKind::kDeepFm, 1000, 100, 1000);
  sizes.learning_rate = 0.001;
  sizes.row_learning_rate = 0.003;
  const Json model = ModelTemplate(ModelKind::kDeepFm, data, sizes);
  ModelKnobs knobs = KnobsOf(model, LayerGrammars());
  knobs.learning_rate = 0.002;
  const Json variant = WithKnobs(model, knobs, LayerGrammars()).value();
  EXPECT_EQ(variant["optimizer"]["adam_hparam"]["learning_rate"], 0.002);
  EXPECT_NEAR(
      variant["cistern"]["embeddings"]["embedding"]["optimizer"]["learning_rate"].get<double>(),
      0.006, 1e-12);
}

TEST(ModelVariant, RefusesKnobsThatTheModelDoesNotHave) {
  TemplateData data;
  data.source = "a";
  const Json model = ModelTemplate(ModelKind::kLr, data, SizesFor(ModelKind::kLr, 1000, 100, 1000));
  ModelKnobs knobs = KnobsOf(model, LayerGrammars());
  knobs.depth = 2;
  EXPECT_FALSE(WithKnobs(model, knobs, LayerGrammars()).ok());
  knobs = KnobsOf(model, LayerGrammars());
  knobs.dim = 2;
  EXPECT_FALSE(WithKnobs(model, knobs, LayerGrammars()).ok());
}

}  // namespace
}  // namespace cistern::model
