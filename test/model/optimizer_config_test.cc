#include "worker/config/model_config.h"

#include "test/model/config_parsing.h"

namespace cistern {
namespace {

using ::testing::HasSubstr;

TEST(OptimizerConfig, OptimizersOfOtherReleasesAreRefused) {
  EXPECT_EQ(
      ErrorOf({"optimizer.type=Nesterov"}),
      "model.json: optimizer.type: Nesterov is not an optimizer of this release; use Adam or SGD");
  EXPECT_THAT(ErrorOf({"optimizer.type=MomentumSGD"}), HasSubstr("use Adam or SGD"));
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

TEST(OptimizerConfig, AStrayObjectOfAnotherTypeIsNoted) {
  const ModelConfig config =
      ParseOrDie({"optimizer.sgd_hparam={\"learning_rate\":1}", "optimizer.global_update=true"});
  EXPECT_THAT(config.notes, ::testing::Contains("optimizer.sgd_hparam: ignored: the type is Adam"));
  EXPECT_THAT(config.notes, ::testing::Contains(HasSubstr("optimizer.global_update: treated as")));
}

}  // namespace
}  // namespace cistern
