#include "worker/model/config/model_config.h"

#include "test/worker/model/config/config_parsing.h"

namespace cistern::model {
namespace {

using ::testing::HasSubstr;

TEST(OptimizerConfig, EachTypeReadsItsOwnObject) {
  const OptimizerConfig momentum =
      ParseOrDie({"optimizer.type=MomentumSGD",
                  "optimizer.momentum_sgd_hparam={\"learning_rate\":0.5,\"momentum_factor\":0.9}"})
          .optimizer;
  EXPECT_EQ(momentum.rule.kind, RuleKind::kMomentum);
  EXPECT_FLOAT_EQ(momentum.rule.beta1, 0.9f);
  EXPECT_EQ(momentum.schedule.base, 0.5);
  const OptimizerConfig nesterov =
      ParseOrDie({"optimizer.type=Nesterov",
                  "optimizer.nesterov_hparam={\"learning_rate\":0.5,\"warmup_steps\":3}"})
          .optimizer;
  EXPECT_EQ(nesterov.rule.kind, RuleKind::kNesterov);
  EXPECT_EQ(nesterov.rule.beta1, 0.0f);
  EXPECT_EQ(nesterov.schedule.warmup_steps, 3u);
  const OptimizerConfig adagrad =
      ParseOrDie({"optimizer.type=AdaGrad",
                  "optimizer.adagrad_hparam={\"learning_rate\":0.5,\"initial_accu_value\":0.25}"})
          .optimizer;
  EXPECT_EQ(adagrad.rule.kind, RuleKind::kAdagrad);
  EXPECT_EQ(adagrad.rule.initial_g2sum, 0.25f);
  const OptimizerConfig ftrl =
      ParseOrDie({"optimizer.type=Ftrl",
                  "optimizer.ftrl_hparam={\"learning_rate\":0.5,\"lambda1\":0.125}"})
          .optimizer;
  EXPECT_EQ(ftrl.rule.kind, RuleKind::kFtrl);
  EXPECT_EQ(ftrl.rule.lambda1, 0.125f);
  EXPECT_EQ(ftrl.rule.ftrl_beta, 1.0f);
}

TEST(OptimizerConfig, AdamWHasADecayAndNoLazyForm) {
  const std::string hparam = "optimizer.adamw_hparam={\"learning_rate\":0.5}";
  const ModelConfig config = ParseOrDie({"optimizer.type=AdamW", hparam});
  EXPECT_EQ(config.optimizer.rule.weight_decay, 0.01f);
  EXPECT_EQ(config.optimizer.rule.epsilon, 1e-8f);
  EXPECT_EQ(config.embeddings.at(0).spec.rule().kind(), v1::UpdateRule::ADAMW);
  EXPECT_EQ(config.embeddings.at(0).spec.rule().weight_decay(), 0.01f);
  EXPECT_THAT(ErrorOf({"optimizer.type=AdamW", hparam, "optimizer.update_type=LazyGlobal"}),
              HasSubstr("optimizer.update_type: LazyGlobal is HugeCTR's formula for Adam"));
  EXPECT_THAT(ErrorOf({"optimizer.type=AdamW",
                       "optimizer.adamw_hparam={\"learning_rate\":0.5,\"weight_decay\":-1}"}),
              HasSubstr("weight_decay"));
}

TEST(OptimizerConfig, ConstantsReachTheRuleOfTheRows) {
  const ModelConfig config =
      ParseOrDie({"optimizer.type=Ftrl",
                  "optimizer.ftrl_hparam={\"learning_rate\":0.5,\"beta\":2,\"lambda1\":3,"
                  "\"lambda2\":4}"});
  const v1::UpdateRule& rule = config.embeddings.at(0).spec.rule();
  EXPECT_EQ(rule.kind(), v1::UpdateRule::FTRL);
  EXPECT_EQ(rule.ftrl_beta(), 2.0f);
  EXPECT_EQ(rule.lambda1(), 3.0f);
  EXPECT_EQ(rule.lambda2(), 4.0f);
}

TEST(OptimizerConfig, RejectsATypeWithoutItsObject) {
  EXPECT_EQ(ErrorOf({"optimizer.type=Nesterov"}),
            "model.json: optimizer.nesterov_hparam: missing; type Nesterov needs it");
  EXPECT_THAT(ErrorOf({"optimizer.type=MomentumSGD",
                       "optimizer.momentum_sgd_hparam={\"learning_rate\":1,"
                       "\"momentum_factor\":1}"}),
              HasSubstr("optimizer.momentum_sgd_hparam.momentum_factor"));
}

TEST(OptimizerConfig, ReadsConstantsAndSchedule) {
  const OptimizerConfig optimizer =
      ParseOrDie({"optimizer.adam_hparam.beta1=0.8", "optimizer.adam_hparam.decay_start=100",
                  "optimizer.adam_hparam.end_lr=1e-5"})
          .optimizer;
  EXPECT_FLOAT_EQ(optimizer.rule.beta1, 0.8f);
  EXPECT_FLOAT_EQ(optimizer.rule.beta2, 0.999f);
  EXPECT_EQ(optimizer.schedule.base, 0.001);
  EXPECT_EQ(optimizer.schedule.decay_start, 100u);
  EXPECT_EQ(optimizer.schedule.end, 1e-5);
}

TEST(OptimizerConfig, UpdateTypeSelectsTheUpdateOfRowsOutsideTheBatch) {
  const auto missed = [](const std::vector<std::string>& overrides) {
    return ParseOrDie(overrides).embeddings[0].spec.rule().missed();
  };
  EXPECT_EQ(missed({}), v1::UpdateRule::LOCAL);
  EXPECT_EQ(missed({"optimizer.update_type=Global"}), v1::UpdateRule::GLOBAL);
  EXPECT_EQ(missed({"optimizer.global_update=true"}), v1::UpdateRule::GLOBAL);
  EXPECT_EQ(missed({"optimizer.update_type=LazyGlobal"}), v1::UpdateRule::LAZY_GLOBAL);
}

TEST(OptimizerConfig, RulesWithoutMomentumAreLocalForEveryUpdateType) {
  const ModelConfig config =
      ParseOrDie({"optimizer.type=SGD", "optimizer.sgd_hparam={\"learning_rate\":1}",
                  "optimizer.update_type=Global"});
  EXPECT_EQ(config.embeddings[0].spec.rule().missed(), v1::UpdateRule::LOCAL);
}

TEST(OptimizerConfig, NotesTheObjectOfAnotherType) {
  const ModelConfig config = ParseOrDie({"optimizer.sgd_hparam={\"learning_rate\":1}"});
  EXPECT_THAT(config.notes, ::testing::Contains("optimizer.sgd_hparam: ignored: the type is Adam"));
}

}  // namespace
}  // namespace cistern::model
