#include "worker/config/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "common/schema.h"
#include "common/value_layout.h"
#include "test/model/config_text.h"

namespace cistern {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

absl::StatusOr<ModelConfig> Parse(const std::vector<std::string>& overrides = {},
                                  const std::string& text = SmallModelText()) {
  return ParseModelConfig(text, "model.json", overrides);
}

ModelConfig ParseOrDie(const std::vector<std::string>& overrides = {}) {
  absl::StatusOr<ModelConfig> config = Parse(overrides);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *config : ModelConfig();
}

// The message of the error that `overrides` cause; its code must be kInvalidArgument.
std::string ErrorOf(const std::vector<std::string>& overrides,
                    const std::string& text = SmallModelText()) {
  const absl::StatusOr<ModelConfig> config = Parse(overrides, text);
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument) << config.status();
  return std::string(config.status().message());
}

std::string Replaced(const std::string& from, const std::string& to) {
  EXPECT_THAT(SmallModelText(), HasSubstr(from));
  return absl::StrReplaceAll(SmallModelText(), {{from, to}});
}

TEST(ModelConfig, ReadsWhatTheFileSays) {
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
  EXPECT_EQ(config.data.check, NormCheck::kSum);
  ASSERT_EQ(config.data.sparse.size(), 1u);
  EXPECT_EQ(config.data.sparse[0].max_feature_num, 30u);
  EXPECT_EQ(ShapeOf(config.data), (SampleShape{1, 3, {2}, {30}}));
  ASSERT_EQ(config.embeddings.size(), 1u);
  EXPECT_EQ(config.embeddings[0].name, "deep");
  EXPECT_EQ(config.embeddings[0].combiner, Combiner::kSum);
  ASSERT_EQ(config.layers.size(), 6u);
  EXPECT_EQ(config.layers[2].path, "layers[4]");
  EXPECT_EQ(config.layers[2].num_output, 5u);
  EXPECT_THAT(config.layers[1].bottoms, ElementsAre("reshape1", "dense"));
  EXPECT_EQ(config.cistern.pass_memory_mb, 1024u);
}

TEST(ModelConfig, UnknownKeyIsNamedWithItsPathAndTheNearestOne) {
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

TEST(ModelConfig, AKeyOfAnotherLayerTypeIsUnknown) {
  EXPECT_THAT(ErrorOf({"layers.relu1.rate=0.1"}), HasSubstr("layers[5].rate: unknown key"));
}

TEST(ModelConfig, WrongTypeSaysExpectedAndFound) {
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

TEST(ModelConfig, MissingKeySaysItsPath) {
  EXPECT_EQ(ErrorOf({}, Replaced("\"batchsize\": 8,", "")),
            "model.json: solver.batchsize: missing; it must be integer >= 1");
  EXPECT_THAT(ErrorOf({}, Replaced("{\"num_output\": 5}", "{}")),
              StartsWith("model.json: layers[4].fc_param.num_output: missing; it must be integer"));
  EXPECT_EQ(ErrorOf({}, Replaced("\"type\": \"ReLU\",", "")),
            "model.json: layers[5].type: missing; it must be the type of the layer");
  EXPECT_THAT(ErrorOf({"optimizer.type=SGD"}),
              HasSubstr("optimizer.sgd_hparam: missing; type SGD needs it"));
  EXPECT_EQ(ErrorOf({}, "{}"), "model.json: solver: missing; it must be object");
}

TEST(ModelConfig, SyntaxErrorsSayLineAndColumn) {
  EXPECT_THAT(ErrorOf({}, "{\n  \"solver\": {,}\n}"), HasSubstr("model.json: line 2, column 14"));
  EXPECT_THAT(ErrorOf({}, ""), HasSubstr("model.json: line 1, column 1"));
}

TEST(ModelConfig, AKeyTwiceInOneObjectIsAnError) {
  EXPECT_EQ(ErrorOf({}, Replaced("\"seed\": 7", "\"seed\": 7, \"batchsize\": 9")),
            "model.json: key 'batchsize' occurs twice in one object");
}

TEST(ModelConfig, AnotherLayerTypeListsThoseOfThisRelease) {
  const std::string typo = ErrorOf({"layers.fc1.type=InerProduct"});
  EXPECT_THAT(typo, HasSubstr("layers[4].type: unknown type of layer 'InerProduct'; did you mean "
                              "'InnerProduct'?"));
  EXPECT_THAT(typo, HasSubstr("FmOrder2, ReduceSum, Add, BinaryCrossEntropyLoss"));
  EXPECT_THAT(ErrorOf({"layers.fc1.type=MultiCross"}),
              HasSubstr("layers[4].type: HugeCTR's MultiCross is not a layer of this release; its "
                        "layers: Data, Dist"));
}

TEST(ModelConfig, OptimizersOfOtherReleasesAreRefused) {
  EXPECT_EQ(
      ErrorOf({"optimizer.type=Nesterov"}),
      "model.json: optimizer.type: Nesterov is not an optimizer of this release; use Adam or SGD");
  EXPECT_THAT(ErrorOf({"optimizer.type=MomentumSGD"}), HasSubstr("use Adam or SGD"));
}

TEST(ModelConfig, OtherFormatsAreRefused) {
  EXPECT_THAT(ErrorOf({"layers.data.format=Raw"}),
              HasSubstr("layers[0].format: Raw is not a format of this release"));
}

TEST(ModelConfig, ReferencesAreChecked) {
  EXPECT_EQ(
      ErrorOf({"layers.deep.bottom=dta1"}),
      "model.json: layers[1].bottom: 'dta1' is no sparse input of the Data layer; did you mean "
      "'data1'?");
  EXPECT_THAT(ErrorOf({"cistern.embeddings.dep.accessor=ctr"}),
              HasSubstr("cistern.embeddings.dep: no embedding layer has this name; did you mean "
                        "'deep'?"));
  EXPECT_THAT(ErrorOf({"layers.deep.name=dense"}), HasSubstr("cannot be called 'dense'"));
  EXPECT_THAT(ErrorOf({"layers.data.dense.top=label"}), HasSubstr("two tops are called 'label'"));
  EXPECT_THAT(ErrorOf({"layers.deep.name=a/b"}), HasSubstr("layers[1].name"));
  EXPECT_THAT(ErrorOf({"layers.0.type=ReLU",
                       "layers.0={\"type\":\"ReLU\",\"bottom\":\"a\",\"top\":\"b\"}"}),
              HasSubstr("layers[0].type: the first layer must be Data"));
}

TEST(ModelConfig, ALossWithRegularizerNeedsLambda) {
  EXPECT_EQ(ErrorOf({"layers.loss.regularizer=L2"}),
            "model.json: layers[7].lambda: missing; regularizer L2 needs it");
  const ModelConfig config = ParseOrDie({"layers.loss.regularizer=L1", "layers.loss.lambda=0.01"});
  EXPECT_EQ(config.layers.back().regularizer, "L1");
  EXPECT_EQ(config.layers.back().lambda, 0.01);
}

TEST(ModelConfig, OverridesReachObjectsArraysAndNamedLayers) {
  const ModelConfig config = ParseOrDie(
      {"solver.batchsize=4096", "solver.max_iter=1e5", "layers.fc1.fc_param.num_output=200",
       "layers.5={\"type\":\"Dropout\",\"bottom\":\"fc1\",\"top\":\"relu1\",\"rate\":0.1}",
       "cistern.clip_norm=10", "layers.data.source=other.txt",
       "solver.eval_metrics=[\"AUC:0.75\",\"AverageLoss\"]"});
  EXPECT_EQ(config.solver.batchsize, 4096u);
  EXPECT_EQ(config.solver.max_iter, 100000u);
  EXPECT_EQ(config.layers[2].num_output, 200u);
  EXPECT_EQ(config.layers[3].type, "Dropout");
  EXPECT_EQ(config.layers[3].rate, 0.1);
  EXPECT_EQ(config.cistern.clip_norm, 10);
  EXPECT_EQ(config.data.source, "other.txt");
  EXPECT_EQ(config.solver.auc_threshold, 0.75);
  EXPECT_THAT(config.solver.eval_metrics, ElementsAre("AUC", "AverageLoss"));
}

TEST(ModelConfig, OverridesThatLeadNowhereAreErrors) {
  EXPECT_THAT(ErrorOf({"solver.batchsize"}), HasSubstr("write path=value"));
  EXPECT_THAT(ErrorOf({"layers.fc9.name=x"}), HasSubstr("layers has no element 'fc9'"));
  EXPECT_THAT(ErrorOf({"layers.99.name=x"}), HasSubstr("layers has no element '99'"));
  EXPECT_THAT(ErrorOf({"solver.batchsize.x=1"}),
              HasSubstr("solver.batchsize is the number 8, which holds no 'x'"));
}

TEST(ModelConfig, EpochsAndIterationsExcludeEachOther) {
  EXPECT_THAT(ErrorOf({"solver.num_epochs=2"}), HasSubstr("exclude each other"));
  EXPECT_EQ(ParseOrDie({"solver.max_iter=0"}).solver.num_epochs, 1u);
  EXPECT_EQ(ParseOrDie({"solver.max_iter=0", "solver.num_epochs=3"}).solver.num_epochs, 3u);
}

TEST(ModelConfig, OdditiesAreAcceptedAndNoted) {
  const ModelConfig config =
      ParseOrDie({"solver.dense model_file=./d.model", "solver.mixed_precision=1024",
                  "solver.seed=0", "optimizer.update_type=Global", "layers.deep.plan_file=p.json",
                  "layers.data.cache_eval_data=true"});
  std::string notes;
  for (const std::string& note : config.notes) absl::StrAppend(&notes, note, "\n");
  for (const char* expected :
       {"solver.gpu: ignored", "solver.dense model_file: not read", "solver.mixed_precision: half",
        "solver.seed: 0", "optimizer.update_type: Global is treated as Local",
        "layers[1].plan_file: ignored", "layers[0].cache_eval_data: ignored"}) {
    EXPECT_THAT(notes, HasSubstr(expected));
  }
  EXPECT_NE(config.solver.seed, 0u);
}

TEST(ModelConfig, CheckOfDataIsOptional) {
  const absl::StatusOr<ModelConfig> config = Parse({}, Replaced("\"check\": \"Sum\",", ""));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->data.check, NormCheck::kNone);
}

TEST(ModelConfig, MaxNnzBoundsASampleToo) {
  EXPECT_EQ(ParseOrDie({"layers.data.sparse.0.max_nnz=1"}).data.sparse[0].max_feature_num, 2u);
}

TEST(ModelConfig, EmbeddingsTakeTheTopLevelOptimizerOrTheirOwn) {
  const ModelConfig plain = ParseOrDie();
  EXPECT_EQ(plain.embeddings[0].optimizer.rule.kind, RuleKind::kAdam);
  const ModelConfig own = ParseOrDie(
      {"optimizer.adam_hparam.warmup_steps=50",
       "layers.deep.optimizer={\"type\":\"SGD\",\"sgd_hparam\":{\"learning_rate\":0.5}}"});
  EXPECT_EQ(own.embeddings[0].optimizer.rule.kind, RuleKind::kSgd);
  EXPECT_EQ(own.embeddings[0].optimizer.schedule.base, 0.5);
  EXPECT_EQ(own.embeddings[0].optimizer.schedule.warmup_steps, 50u);  // the shape is inherited
  EXPECT_EQ(own.embeddings[0].spec.rule().kind(), v1::UpdateRule::SGD);
  EXPECT_EQ(own.optimizer.rule.kind, RuleKind::kAdam);
}

TEST(ModelConfig, CisternSaysWhatHugeCtrHasNoWordFor) {
  const ModelConfig config = ParseOrDie(
      {"cistern.embeddings.deep={\"initializer\":{\"type\":\"Normal\",\"range\":1e-4},"
       "\"optimizer\":{\"type\":\"AdaGradShared\",\"learning_rate\":0.05,\"initial_g2sum\":2},"
       "\"accessor\":\"ctr\",\"embedx_threshold\":5,\"nonclk_coeff\":0.2,\"click_coeff\":2,"
       "\"show_scale\":false}"});
  const v1::TableSpec& spec = config.embeddings[0].spec;
  EXPECT_EQ(spec.accessor(), v1::TableSpec::CTR);
  EXPECT_EQ(spec.dim(), 3u);  // of four floats, one is embed_w
  EXPECT_EQ(spec.initializer().kind(), v1::Initializer::NORMAL);
  EXPECT_FLOAT_EQ(spec.initializer().range(), 1e-4f);
  EXPECT_EQ(spec.rule().kind(), v1::UpdateRule::ADAGRAD_SHARED);
  EXPECT_EQ(spec.rule().initial_g2sum(), 2);
  EXPECT_EQ(spec.ctr().embedx_threshold(), 5);
  EXPECT_FLOAT_EQ(spec.ctr().nonclk_coeff(), 0.2f);
  EXPECT_EQ(spec.ctr().click_coeff(), 2);
  EXPECT_FALSE(spec.ctr().show_scale());
  EXPECT_EQ(config.embeddings[0].optimizer.schedule.base, 0.05);
}

TEST(ModelConfig, TableSpecsAreUsableAndSeedsDependOnSeedAndName) {
  const v1::TableSpec a = ParseOrDie().embeddings[0].spec;
  EXPECT_TRUE(ValueLayout::Create(a).ok());
  EXPECT_EQ(a.initializer().kind(), v1::Initializer::UNIFORM);
  EXPECT_FLOAT_EQ(a.initializer().range(), 0.05f);
  EXPECT_EQ(a.seed(), ParseOrDie().embeddings[0].spec.seed());
  EXPECT_NE(a.seed(), ParseOrDie({"solver.seed=8"}).embeddings[0].spec.seed());
  EXPECT_NE(a.seed(), ParseOrDie({"layers.deep.name=wide"}).embeddings[0].spec.seed());
}

TEST(LearningRateSchedule, WarmsUpHoldsAndDecays) {
  LearningRateSchedule schedule;
  schedule.base = 24;
  schedule.warmup_steps = 8000;
  schedule.decay_start = 48000;
  schedule.decay_steps = 24000;
  EXPECT_DOUBLE_EQ(schedule.At(1), 24.0 / 8000);
  EXPECT_DOUBLE_EQ(schedule.At(4000), 12);
  EXPECT_DOUBLE_EQ(schedule.At(8000), 24);
  EXPECT_DOUBLE_EQ(schedule.At(48000), 24);
  EXPECT_DOUBLE_EQ(schedule.At(60000), 24 * 0.25);  // half the way, squared
  EXPECT_DOUBLE_EQ(schedule.At(72000), 0);
  EXPECT_DOUBLE_EQ(schedule.At(100000), 0);
  schedule.end = 3;
  EXPECT_DOUBLE_EQ(schedule.At(71999), 3);
}

TEST(LearningRateSchedule, DefaultIsConstant) {
  LearningRateSchedule schedule;
  schedule.base = 0.1;
  EXPECT_DOUBLE_EQ(schedule.At(1), 0.1);
  EXPECT_DOUBLE_EQ(schedule.At(1000000), 0.1);
}

}  // namespace
}  // namespace cistern
