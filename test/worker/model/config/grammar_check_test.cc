#include "worker/model/config/grammar_check.h"

#include "test/worker/model/config/config_parsing.h"
#include "worker/model/layer/layer_list.h"

namespace cistern::model {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(GrammarCheck, UnknownKeyErrorGivesItsPathAndTheNearestKey) {
  EXPECT_EQ(ErrorOf({"solver.batchsiz=8"}),
            "model.json: solver.batchsiz: unknown key; did you mean 'batchsize'?");
  EXPECT_EQ(ErrorOf({"optimizer.adam_hparam.bata1=0.9"}),
            "model.json: optimizer.adam_hparam.bata1: unknown key; did you mean 'beta1'?");
  EXPECT_EQ(ErrorOf({"layers.fc1.fc_param.num_outputs=3"}),
            "model.json: layers[4].fc_param.num_outputs: unknown key; did you mean 'num_output'?");
  EXPECT_EQ(ErrorOf({"cistern.clip_nrom=1"}),
            "model.json: cistern.clip_nrom: unknown key; did you mean 'clip_norm'?");
  EXPECT_EQ(ErrorOf({"solvr.x=1"}), "model.json: solvr: unknown key; did you mean 'solver'?");
  EXPECT_THAT(ErrorOf({"layers.0.sparse.0.slot_nun=3"}),
              HasSubstr("layers[0].sparse[0].slot_nun: unknown key; did you mean 'slot_num'?"));
}

TEST(GrammarCheck, RejectsAKeyOfAnotherLayerType) {
  EXPECT_THAT(ErrorOf({"layers.relu1.rate=0.1"}), HasSubstr("layers[5].rate: unknown key"));
}

TEST(GrammarCheck, WrongTypeErrorGivesExpectedAndFoundType) {
  EXPECT_EQ(ErrorOf({"solver.batchsize=\"many\""}),
            "model.json: solver.batchsize: expected integer >= 1, found the string \"many\"");
  EXPECT_EQ(ErrorOf({"solver.batchsize=8.5"}),
            "model.json: solver.batchsize: expected integer >= 1, found the number 8.5");
  EXPECT_EQ(ErrorOf({"solver.batchsize=0"}),
            "model.json: solver.batchsize: expected integer >= 1, found the number 0");
  EXPECT_EQ(ErrorOf({"solver=[]"}), "model.json: solver: expected an object, found an array");
  EXPECT_EQ(ErrorOf({"layers={}"}),
            "model.json: layers: expected array of layers, found an object");
  EXPECT_EQ(ErrorOf({"layers.0.check=Summ"}),
            "model.json: layers[0].check: expected None | Sum, found 'Summ'; did you mean 'Sum'?");
  EXPECT_EQ(ErrorOf({"cistern.shuffle=1"}),
            "model.json: cistern.shuffle: expected true or false, found the number 1");
  EXPECT_THAT(
      ErrorOf({"optimizer.adam_hparam.beta1=1"}),
      HasSubstr("optimizer.adam_hparam.beta1: expected number >= 0 and < 1, found the number 1"));
}

TEST(GrammarCheck, MissingKeyErrorGivesItsPath) {
  EXPECT_EQ(ErrorOf({}, Replaced("\"batchsize\": 8,", "")),
            "model.json: solver.batchsize: missing; it must be integer >= 1");
  EXPECT_THAT(ErrorOf({}, Replaced("{\"num_output\": 5}", "{}")),
              StartsWith("model.json: layers[4].fc_param.num_output: missing; it must be integer"));
  EXPECT_EQ(ErrorOf({}, Replaced("\"type\": \"ReLU\",", "")),
            "model.json: layers[5].type: missing; it must be the layer type");
  EXPECT_THAT(ErrorOf({"optimizer.type=SGD"}),
              HasSubstr("optimizer.sgd_hparam: missing; type SGD needs it"));
  EXPECT_EQ(ErrorOf({}, "{}"), "model.json: solver: missing; it must be object");
}

TEST(GrammarCheck, UnknownLayerTypeErrorSuggestsTheNearestAndListsAll) {
  const std::string typo = ErrorOf({"layers.fc1.type=InerProduct"});
  EXPECT_THAT(typo, HasSubstr("layers[4].type: unknown layer type 'InerProduct'; did you mean "
                              "'InnerProduct'?"));
  EXPECT_THAT(typo, HasSubstr("MultiCross, Interaction, Cast, BinaryCrossEntropyLoss"));
}

TEST(GrammarCheck, AcceptsHalfPrecisionTypesAndNotesEachOnce) {
  const ModelConfig config =
      ParseOrDie({"layers.fc1.type=FusedInnerProduct", "layers.fc2.type=FusedInnerProduct"});
  EXPECT_EQ(std::count(config.notes.begin(), config.notes.end(),
                       "layers[4].type: FusedInnerProduct is InnerProduct followed by ReLU, of any "
                       "size and in any precision"),
            1);
}

TEST(GrammarCheck, ErrorGivesTheIndexOfAnInvalidNumberInAnArray) {
  const std::string weights = R"("type": "MultiCrossEntropyLoss", "target_weight": [1, "x"])";
  EXPECT_THAT(ErrorOf({}, Replaced(R"("type": "BinaryCrossEntropyLoss")", weights)),
              HasSubstr("layers[7].target_weight[1]: expected array of numbers >= 0"));
}

TEST(GrammarCheck, AcceptsAndNotesKeysWithoutEffect) {
  const ModelConfig config = ParseOrDie(
      {"solver.dense model_file=./d.model", "solver.mixed_precision=1024", "solver.seed=0",
       "layers.deep.plan_file=p.json", "layers.data.slot_size_array=[3]"});
  std::string notes;
  for (const std::string& note : config.notes) absl::StrAppend(&notes, note, "\n");
  for (const char* expected :
       {"solver.gpu: ignored", "solver.dense model_file: read as", "solver.seed: 0",
        "layers[1].plan_file: ignored", "layers[0].slot_size_array: ignored"}) {
    EXPECT_THAT(notes, HasSubstr(expected));
  }
  EXPECT_NE(config.solver.seed, 0u);
}

TEST(GrammarCheck, AcceptsHugeCtr3Keys) {
  const ModelConfig config =
      ParseOrDie({R"(layers.data.sparse=[{"top":"data1","slot_num":2,"is_fixed_length":false,)"
                  R"("nnz_per_slot":[3,4]}])",
                  R"(layers.deep.sparse_embedding_hparam={"workspace_size_per_gpu_in_mb":24,)"
                  R"("embedding_vec_size":4,"combiner":"mean"})",
                  "solver.max_eval_batches=7", "solver.enable_tf32_compute=true"});
  EXPECT_EQ(config.data.sparse[0].max_feature_num, 7u);
  EXPECT_EQ(config.embeddings[0].combiner, Combiner::kMean);
  EXPECT_EQ(config.solver.eval_batches, 7u);
  std::string notes;
  for (const std::string& note : config.notes) absl::StrAppend(&notes, note, "\n");
  EXPECT_THAT(notes, HasSubstr("layers[0].sparse[0].is_fixed_length: no effect"));
  EXPECT_THAT(notes, HasSubstr("workspace_size_per_gpu_in_mb: ignored"));
  const std::string one = R"(layers.data.sparse=[{"top":"data1","slot_num":2,"nnz_per_slot":)";
  EXPECT_EQ(ParseOrDie({one + "3}]"}).data.sparse[0].max_feature_num, 6u);
  EXPECT_THAT(ErrorOf({one + "[1,2,3]}]"}),
              HasSubstr("layers[0].sparse[0].nnz_per_slot: has 3 numbers, but the input has 2"));
  EXPECT_THAT(ErrorOf({one + "\"a\"}]"}), HasSubstr("nnz_per_slot: expected"));
  const ModelConfig samples = ParseOrDie(
      {"solver.batchsize_eval=100", "solver.auc_threshold=0.8", "solver.max_eval_samples=201",
       "solver.export_predictions_prefix=/tmp/p", "layers.deep.plan_file1=p.json"});
  EXPECT_EQ(samples.solver.eval_batches, 3u);
  EXPECT_EQ(samples.solver.auc_threshold, 0.8);
  EXPECT_THAT(ErrorOf({"solver.auc_threshold=0.8", R"(solver.eval_metrics=["AUC:0.7"])"}),
              HasSubstr("solver.auc_threshold: repeats the threshold in solver.eval_metrics"));
  EXPECT_THAT(ErrorOf({"solver.max_eval_samples=7", "solver.eval_batches=7"}),
              HasSubstr("solver.max_eval_samples: repeats solver.eval_batches"));
  EXPECT_THAT(ErrorOf({"solver.batchsize=1000000000000"}),
              HasSubstr("expected integer >= 1, at most 4294967295, found"));
  EXPECT_THAT(ErrorOf({"solver.max_eval_batches=7", "solver.eval_batches=7"}),
              HasSubstr("leave one of them out"));
}

TEST(GrammarCheck, FillsInDefaultsOfAbsentKeys) {
  Json root = Json::parse(SmallModelText());
  std::vector<std::string> notes;
  ASSERT_TRUE(CheckFile(LayerGrammars(), &root, &notes).ok());
  EXPECT_EQ(root["solver"]["eval_interval"], 0);
  EXPECT_EQ(root["solver"]["eval_metrics"], Json::parse("[\"AUC\"]"));
  EXPECT_EQ(root["cistern"]["init_scheme"], "hugectr");
  EXPECT_FALSE(root["layers"][4]["fc_param"].contains("weight_init"));
}

TEST(GrammarCheck, ChecksEachElementOfRangesAndCounts) {
  const std::string slice =
      R"(layers.relu1={"type":"Slice","bottom":"fc1","top":["relu1"],"ranges":)";
  EXPECT_THAT(ErrorOf({slice + "[[0,2],[3,3]]}"}),
              HasSubstr("layers[5].ranges[1]: expected [lo, hi] with 0 <= lo < hi, found [3,3]"));
  EXPECT_THAT(ErrorOf({slice + "[[0,2],5]}"}), HasSubstr("layers[5].ranges[1]"));
  EXPECT_THAT(
      ErrorOf({R"(layers.reshape1.selected=[0,-1])"}),
      HasSubstr("layers[2].selected[1]: expected array of integers >= 0, found the number -1"));
  EXPECT_THAT(ErrorOf({"solver.eval_metrics=[1]"}), HasSubstr("solver.eval_metrics[0]"));
}

}  // namespace
}  // namespace cistern::model
