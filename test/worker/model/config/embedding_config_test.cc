#include "worker/model/config/model_config.h"

#include "common/value/value_layout.h"
#include "test/worker/model/config/config_parsing.h"

namespace cistern::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(EmbeddingConfig, UsesTheTopLevelOptimizerOrItsOwn) {
  const ModelConfig plain = ParseOrDie();
  EXPECT_EQ(plain.embeddings[0].optimizer.rule.kind, RuleKind::kAdam);
  const ModelConfig own = ParseOrDie(
      {"optimizer.adam_hparam.warmup_steps=50",
       "layers.deep.optimizer={\"type\":\"SGD\",\"sgd_hparam\":{\"learning_rate\":0.5}}"});
  EXPECT_EQ(own.embeddings[0].optimizer.rule.kind, RuleKind::kSgd);
  EXPECT_EQ(own.embeddings[0].optimizer.schedule.base, 0.5);
  EXPECT_EQ(own.embeddings[0].optimizer.schedule.warmup_steps, 50u);  // inherited
  EXPECT_EQ(own.embeddings[0].spec.rule().kind(), v1::UpdateRule::SGD);
  EXPECT_EQ(own.optimizer.rule.kind, RuleKind::kAdam);
}

TEST(EmbeddingConfig, UsesTheSlotSizesOfTheDataLayerOrItsOwn) {
  const std::vector<std::string> own = {
      "layers.deep.type=LocalizedSlotSparseEmbeddingHash",
      "layers.deep.sparse_embedding_hparam.slot_size_array=[30, 20]"};
  EXPECT_TRUE(ParseOrDie().embeddings[0].key_space.sizes.empty());
  EXPECT_FALSE(ParseOrDie().embeddings[0].localized);
  EXPECT_TRUE(ParseOrDie(own).embeddings[0].localized);
  EXPECT_EQ(ParseOrDie(own).embeddings[0].key_space.sizes, (std::vector<uint64_t>{30, 20}));
  std::vector<std::string> both = own;
  for (const char* one : {"layers.data.format=Raw", "layers.data.check=None",
                          "layers.data.slot_size_array=[7, 30, 20]",
                          R"(layers.data.sparse=[{"top":"w","slot_num":1},
                                                 {"top":"data1","slot_num":2}])"}) {
    both.push_back(one);
  }
  const KeySpace space = ParseOrDie(both).embeddings[0].key_space;
  EXPECT_EQ(space.sizes, (std::vector<uint64_t>{7, 30, 20}));
  EXPECT_EQ(space.first, 1u);
  // The embedding's own sizes make its initial weights depend on the slot; the keys are offset by
  // the sizes of the Data layer.
  const v1::Initializer first = ParseOrDie(both).embeddings[0].spec.initializer();
  EXPECT_EQ(first.kind(), v1::Initializer::SLOT_UNIFORM);
  EXPECT_THAT(first.slot_sizes().sizes(), ElementsAre(7, 30, 20));
  EXPECT_FLOAT_EQ(first.range(), 0.05f);
  std::vector<std::string> only_data = both, named = own;
  only_data[1] = only_data[0];
  EXPECT_EQ(ParseOrDie(only_data).embeddings[0].spec.initializer().kind(),
            v1::Initializer::UNIFORM);
  named.push_back("cistern.embeddings.deep={\"initializer\":{\"type\":\"Normal\"}}");
  EXPECT_EQ(ParseOrDie(named).embeddings[0].spec.initializer().kind(), v1::Initializer::NORMAL);
  EXPECT_THAT(ErrorOf({own[0], "layers.deep.sparse_embedding_hparam.slot_size_array=[30]"}),
              HasSubstr("layers[1].sparse_embedding_hparam: slot_size_array has 1 sizes"));
  both[1] = "layers.deep.sparse_embedding_hparam.slot_size_array=[30, 21]";
  EXPECT_THAT(ErrorOf(both), HasSubstr("layers[1].sparse_embedding_hparam.slot_size_array[1]: is "
                                       "21, but layers[0].slot_size_array[2], the same slot, is "
                                       "20: make them agree"));
}

TEST(EmbeddingConfig, SlotsShareKeysByTheDataLayerOnly) {
  const std::string localized = "layers.deep.type=LocalizedSlotSparseEmbeddingHash";
  const std::string deep = "layers.deep.sparse_embedding_hparam.slot_size_array=[0, 20]";
  EXPECT_THAT(ErrorOf({localized, deep}),
              HasSubstr("layers[1].sparse_embedding_hparam.slot_size_array[0]: is 0"));
  const ModelConfig shared =
      ParseOrDie({localized, deep, "layers.data.format=Raw", "layers.data.check=None",
                  "layers.data.slot_size_array=[0, 20]"});
  EXPECT_THAT(shared.data.slot_sizes, ElementsAre(0, 20));
  EXPECT_THAT(shared.embeddings[0].spec.initializer().slot_sizes().sizes(), ElementsAre(20));
}

TEST(EmbeddingConfig, OneHotSlotSizesBoundTheKeysOfNormFiles) {
  const std::vector<std::string> own = {
      "layers.deep.type=LocalizedSlotSparseEmbeddingOneHot",
      "layers.deep.sparse_embedding_hparam.slot_size_array=[30, 20]"};
  const ModelConfig one_hot = ParseOrDie(own);
  EXPECT_THAT(DataSetOf(one_hot, "a").slot_starts[0], ElementsAre(0, 30, 50));
  // The other types use hash tables, which accept any key.
  const ModelConfig hash =
      ParseOrDie({"layers.deep.type=LocalizedSlotSparseEmbeddingHash", own[1]});
  EXPECT_TRUE(DataSetOf(hash, "a").slot_starts[0].empty());
}

TEST(EmbeddingConfig, ReadsTheSettingsOfTheCisternObject) {
  const ModelConfig config = ParseOrDie(
      {"cistern.embeddings.deep={\"initializer\":{\"type\":\"Normal\",\"range\":1e-4},"
       "\"optimizer\":{\"type\":\"AdaGradShared\",\"learning_rate\":0.05,\"initial_g2sum\":2},"
       "\"accessor\":\"ctr\",\"embedx_threshold\":5,\"nonclk_coeff\":0.2,\"click_coeff\":2,"
       "\"show_scale\":false}"});
  const v1::TableSpec& spec = config.embeddings[0].spec;
  EXPECT_EQ(spec.accessor(), v1::TableSpec::CTR);
  EXPECT_EQ(spec.dim(), 3u);  // embed_w is one of the four floats
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

// Its sum starts at 0: initial_g2sum is of other rules.
TEST(EmbeddingConfig, RowsCanHaveRowwiseAdagrad) {
  const ModelConfig config =
      ParseOrDie({"cistern.embeddings.deep={\"optimizer\":{\"type\":\"AdaGradRowwise\","
                  "\"learning_rate\":0.02,\"epsilon\":1e-8}}"});
  const v1::TableSpec& spec = config.embeddings[0].spec;
  EXPECT_EQ(spec.rule().kind(), v1::UpdateRule::ADAGRAD_ROWWISE);
  EXPECT_FLOAT_EQ(spec.rule().epsilon(), 1e-8f);
  EXPECT_EQ(spec.rule().initial_g2sum(), 0);
  EXPECT_EQ(config.embeddings[0].optimizer.schedule.base, 0.02);
}

TEST(EmbeddingConfig, GradientsAreSummedByDefaultForCtrTablesOnly) {
  const auto sums = [](const std::string& extras) {
    return ParseOrDie({"cistern.embeddings.deep=" + extras}).embeddings[0].sums_gradients;
  };
  EXPECT_FALSE(ParseOrDie().embeddings[0].sums_gradients);
  EXPECT_FALSE(sums(R"({"optimizer":{"type":"AdaGradShared"}})"));
  EXPECT_TRUE(sums(R"({"gradient":"sum"})"));
  EXPECT_TRUE(sums(R"({"accessor":"ctr"})"));
  EXPECT_FALSE(sums(R"({"accessor":"ctr","gradient":"mean"})"));
}

TEST(EmbeddingConfig, CopiesSaveAndShrinkRulesToTheTableSpec) {
  const v1::CtrRules unset =
      ParseOrDie({"cistern.embeddings.deep.accessor=ctr"}).embeddings[0].spec.ctr();
  EXPECT_FALSE(unset.has_base_threshold());  // an unset key leaves the schema hash unchanged
  EXPECT_FALSE(unset.has_day_id_decay());
  const ModelConfig config = ParseOrDie(
      {"cistern.embeddings.deep={\"accessor\":\"ctr\",\"base_threshold\":2.5,"
       "\"delta_threshold\":0.5,\"delta_keep_days\":7,\"show_click_decay_rate\":0.75,"
       "\"delete_threshold\":0.25,\"delete_after_unseen_days\":60,\"day_id_decay\":true}",
       "cistern.day=20778"});
  const v1::CtrRules& rules = config.embeddings[0].spec.ctr();
  EXPECT_EQ(rules.base_threshold(), 2.5f);
  EXPECT_EQ(rules.delta_threshold(), 0.5f);
  EXPECT_EQ(rules.delta_keep_days(), 7);
  EXPECT_EQ(rules.show_click_decay_rate(), 0.75f);
  EXPECT_EQ(rules.delete_threshold(), 0.25f);
  EXPECT_EQ(rules.delete_after_unseen_days(), 60);
  EXPECT_TRUE(rules.day_id_decay());
  EXPECT_EQ(config.embeddings[0].day, 20778u);
}

TEST(EmbeddingConfig, CopiesBoundsToTheTableSpec) {
  EXPECT_FALSE(ParseOrDie().embeddings[0].spec.has_bounds());  // the schema hash is unchanged
  const std::string deep = "cistern.embeddings.deep.";
  const v1::TableBounds capped =
      ParseOrDie({deep + "max_rows=5000000000"}).embeddings[0].spec.bounds();
  EXPECT_EQ(capped.max_rows(), 5000000000u);
  EXPECT_EQ(capped.evict_by(), v1::TableBounds::AGE);
  EXPECT_EQ(capped.expire_passes(), 0u);
  const v1::TableBounds both =
      ParseOrDie({deep + "max_rows=9", deep + "evict_by=norm", deep + "expire_passes=3"})
          .embeddings[0]
          .spec.bounds();
  EXPECT_EQ(both.evict_by(), v1::TableBounds::NORM);
  EXPECT_EQ(both.expire_passes(), 3u);
  EXPECT_FALSE(both.has_expire_days());  // the manifest's bytes are unchanged
  EXPECT_EQ(ParseOrDie({deep + "expire_days=30"}).embeddings[0].spec.bounds().expire_days(), 30u);
  EXPECT_THAT(ErrorOf({deep + "expire_days=0"}), HasSubstr("expire_days"));
  EXPECT_THAT(ErrorOf({deep + "evict_by=norm", deep + "expire_passes=3"}),
              HasSubstr("max_rows, which is not set"));
  EXPECT_THAT(ErrorOf({deep + "max_rows=9", deep + "evict_by=show"}),
              HasSubstr("evict by age, count or norm"));
  const v1::TableBounds admitting =
      ParseOrDie({deep + "admit_after=5"}).embeddings[0].spec.bounds();
  EXPECT_EQ(admitting.admit_after(), 5u);
  EXPECT_EQ(admitting.max_rows(), 0u);
  EXPECT_EQ(ParseOrDie({deep + "max_rows=9", deep + "evict_by=count"})
                .embeddings[0]
                .spec.bounds()
                .evict_by(),
            v1::TableBounds::COUNT);
  const std::string ctr = deep + "accessor=ctr";
  EXPECT_THAT(ErrorOf({ctr, deep + "admit_after=5"}), HasSubstr("embedx_threshold n"));
  EXPECT_THAT(ErrorOf({ctr, deep + "max_rows=9", deep + "evict_by=count"}),
              HasSubstr("use evict_by show"));
  EXPECT_THAT(ErrorOf({deep + "admit_after=5", "optimizer.update_type=Global"}),
              HasSubstr("admit_after needs update_type Local"));
  EXPECT_THAT(ErrorOf({deep + "admit_after=0"}), HasSubstr("admit_after"));
  EXPECT_THAT(ErrorOf({deep + "admit_after=16777217"}), HasSubstr("admit_after"));
  EXPECT_THAT(ErrorOf({deep + "max_rows=0"}), HasSubstr("max_rows"));
  EXPECT_THAT(ErrorOf({deep + "evict_by=random"}), HasSubstr("evict_by"));
}

TEST(EmbeddingConfig, DayIdDecayRequiresTheDay) {
  const std::string days = "cistern.embeddings.deep={\"accessor\":\"ctr\",\"day_id_decay\":true}";
  EXPECT_THAT(ErrorOf({days}), HasSubstr("cistern.day"));
  EXPECT_THAT(ErrorOf({days, "cistern.day=20"}), HasSubstr("above 32"));
  EXPECT_EQ(ParseOrDie({days, "cistern.day=20778"}).embeddings[0].day, 20778u);
}

TEST(EmbeddingConfig, TableSpecIsValidAndItsSeedDependsOnSeedAndName) {
  const v1::TableSpec a = ParseOrDie().embeddings[0].spec;
  EXPECT_TRUE(ValueLayout::Create(a).ok());
  EXPECT_EQ(a.initializer().kind(), v1::Initializer::UNIFORM);
  EXPECT_FLOAT_EQ(a.initializer().range(), 0.05f);
  EXPECT_EQ(a.seed(), ParseOrDie().embeddings[0].spec.seed());
  EXPECT_NE(a.seed(), ParseOrDie({"solver.seed=8"}).embeddings[0].spec.seed());
  EXPECT_NE(a.seed(), ParseOrDie({"layers.deep.name=wide"}).embeddings[0].spec.seed());
}

TEST(EmbeddingConfig, ChecksReferences) {
  EXPECT_EQ(ErrorOf({"layers.deep.bottom=dta1"}),
            "model.json: layers[1].bottom: the Data layer has no sparse input 'dta1'; did you mean "
            "'data1'?");
  EXPECT_THAT(ErrorOf({"cistern.embeddings.dep.accessor=ctr"}),
              HasSubstr("cistern.embeddings.dep: no embedding layer has this name; did you mean "
                        "'deep'?"));
  EXPECT_THAT(ErrorOf({"layers.deep.name=dense"}), HasSubstr("cannot be named 'dense'"));
  EXPECT_THAT(ErrorOf({"layers.data.dense.top=label"}), HasSubstr("two tops are named 'label'"));
  EXPECT_THAT(ErrorOf({"layers.deep.name=a/b"}), HasSubstr("layers[1].name"));
  EXPECT_THAT(ErrorOf({"layers.0.type=ReLU",
                       "layers.0={\"type\":\"ReLU\",\"bottom\":\"a\",\"top\":\"b\"}"}),
              HasSubstr("layers[0].type: the first layer must be Data"));
}

TEST(EmbeddingConfig, TwoEmbeddingsCanReadOneInput) {
  const std::string second =
      R"({"type": "LocalizedSlotSparseEmbeddingHash", "bottom": "data1", "top": "wide",
          "sparse_embedding_hparam": {"embedding_vec_size": 1, "combiner": "mean"}},
         {"name": "reshape1")";
  const ModelConfig config = ParseOrDie({}, Replaced(R"({"name": "reshape1")", second));
  ASSERT_EQ(config.embeddings.size(), 2u);
  EXPECT_EQ(config.embeddings[1].name, "wide");  // its top, because it has no name
  EXPECT_EQ(config.embeddings[1].input, 0u);
  EXPECT_EQ(config.embeddings[1].combiner, Combiner::kMean);
  EXPECT_THAT(ErrorOf({"layers.wide.top=deep"}, Replaced(R"({"name": "reshape1")", second)),
              HasSubstr("two embeddings are named 'deep'"));
}

TEST(EmbeddingConfig, RejectsTwoOptimizersForOneEmbedding) {
  EXPECT_THAT(ErrorOf({R"(layers.deep.optimizer={"type":"SGD","sgd_hparam":{"learning_rate":1}})",
                       R"(cistern.embeddings.deep.optimizer={"type":"SGD"})"}),
              HasSubstr("layers[1].optimizer: cistern.embeddings.deep.optimizer sets it too"));
}

TEST(EmbeddingConfig, CtrAccessorNeedsTwoFloats) {
  EXPECT_THAT(ErrorOf({"layers.deep.sparse_embedding_hparam.embedding_vec_size=1",
                       "cistern.embeddings.deep.accessor=ctr"}),
              HasSubstr("layers[1].sparse_embedding_hparam.embedding_vec_size: the ctr accessor"));
}

}  // namespace
}  // namespace cistern::model
