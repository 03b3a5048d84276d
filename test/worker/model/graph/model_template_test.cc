// The templates of worker/model/config, as graphs: that folder does not know graphs.
#include "worker/model/config/model_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worker/model/config/model_config.h"
#include "worker/model/graph/model_summary.h"

namespace cistern {
namespace {

constexpr ModelKind kKinds[] = {ModelKind::kLr,     ModelKind::kFm,  ModelKind::kWdl,
                                ModelKind::kDeepFm, ModelKind::kDcn, ModelKind::kDcnV2,
                                ModelKind::kDlrm};

TemplateData Shape(uint32_t slots, uint32_t dense) {
  TemplateData data;
  data.source = "train.txt";
  data.eval_source = "test.txt";
  data.slot_num = slots;
  data.dense_dim = dense;
  return data;
}

TEST(ModelTemplate, EveryKindIsAModelForEveryShapeOfData) {
  for (const ModelKind kind : kKinds) {
    for (const auto& [slots, dense] : {std::pair(5, 3), {5, 0}, {1, 0}, {1, 1}, {2, 7}}) {
      for (const auto& [samples, keys] : {std::pair(1000, 5), {200000, 150000}, {50000000, 9}}) {
        const TemplateData data = Shape(slots, dense);
        const std::string text = ModelTemplateText(kind, data, SizesFor(kind, samples, keys));
        const auto config = ParseModelConfig(text, "model.json", {});
        ASSERT_TRUE(config.ok()) << Word(kind) << ": " << config.status() << text;
        EXPECT_TRUE(config->notes.empty()) << config->notes.front();
        const auto summary = Summarize(*config);
        ASSERT_TRUE(summary.ok()) << Word(kind) << ": " << summary.status() << text;
        for (const LayerSummary& layer : summary->layers) EXPECT_TRUE(layer.live) << layer.name;
      }
    }
  }
}

TEST(ModelTemplate, NamesTheDataAndStopsEarly) {
  const TemplateData data = Shape(5, 3);
  const auto config = ParseModelConfig(
      ModelTemplateText(ModelKind::kDeepFm, data, SizesFor(ModelKind::kDeepFm, 50000, 100)), "m",
      {});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->data.source, "train.txt");
  EXPECT_EQ(config->data.eval_source, "test.txt");
  EXPECT_EQ(config->data.dense_dim, 3u);
  EXPECT_EQ(config->data.sparse[0].slot_num, 5u);
  EXPECT_TRUE(config->solver.wide_keys);
  EXPECT_TRUE(config->cistern.eval_every_epoch);
  EXPECT_TRUE(config->cistern.keep_best);
  EXPECT_GT(config->cistern.patience, 0u);
}

TEST(ModelTemplate, TrainsWithoutEvaluationDataToo) {
  TemplateData data = Shape(5, 3);
  data.eval_source.clear();
  const auto config = ParseModelConfig(
      ModelTemplateText(ModelKind::kLr, data, SizesFor(ModelKind::kLr, 50000, 100)), "m", {});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_FALSE(config->cistern.keep_best);
}

TEST(ModelTemplate, GrowsWithTheData) {
  const TemplateSizes small = SizesFor(ModelKind::kDeepFm, 1000, 100);
  const TemplateSizes large = SizesFor(ModelKind::kDeepFm, 50000000, 100);
  EXPECT_LT(small.batch, large.batch);
  EXPECT_LT(small.hidden.front(), large.hidden.front());
  EXPECT_GE(1000 / small.batch, 10u);
}

TEST(ModelTemplate, LearnsRareKeysSlowly) {
  EXPECT_LT(SizesFor(ModelKind::kDeepFm, 60000, 150000).row_learning_rate,
            SizesFor(ModelKind::kDeepFm, 60000, 5000).row_learning_rate);
}

TEST(ModelKind, HasAWord) {
  EXPECT_EQ(ModelKindWords(), "lr|fm|wdl|deepfm|dcn|dcnv2|dlrm");
  for (const ModelKind kind : kKinds) EXPECT_EQ(ModelKindOf(Word(kind)), kind);
  EXPECT_FALSE(ModelKindOf("resnet").has_value());
}

}  // namespace
}  // namespace cistern
