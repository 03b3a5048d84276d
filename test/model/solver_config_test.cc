#include "worker/config/model_config.h"

#include "test/model/config_parsing.h"

namespace cistern {
namespace {

using ::testing::HasSubstr;

TEST(SolverConfig, EpochsAndIterationsExcludeEachOther) {
  EXPECT_THAT(ErrorOf({"solver.num_epochs=2"}), HasSubstr("exclude each other"));
  EXPECT_EQ(ParseOrDie({"solver.max_iter=0"}).solver.num_epochs, 1u);
  EXPECT_EQ(ParseOrDie({"solver.max_iter=0", "solver.num_epochs=3"}).solver.num_epochs, 3u);
}

TEST(SolverConfig, MetricsMayCarryAThreshold) {
  EXPECT_EQ(ParseOrDie().solver.auc_threshold, 1.0);
  EXPECT_EQ(ParseOrDie({"solver.eval_metrics=AUC:0.8025"}).solver.auc_threshold, 0.8025);
  EXPECT_THAT(ErrorOf({"solver.eval_metrics=AUC:high"}),
              HasSubstr("solver.eval_metrics[0]: the threshold of 'AUC:high'"));
  EXPECT_THAT(ErrorOf({"solver.eval_metrics=AverageLos"}),
              HasSubstr("unknown metric 'AverageLos'; did you mean 'AverageLoss'?"));
}

TEST(SolverConfig, EveryMetricHasAName) {
  const std::vector<std::string> names = {"AUC",          "AverageLoss", "LogLoss",     "NE",
                                          "COPC",         "PCOC",        "BucketError", "ActualCTR",
                                          "PredictedCTR", "MAE",         "RMSE"};
  for (const std::string& name : names) {
    EXPECT_EQ(ParseOrDie({"solver.eval_metrics=" + name}).solver.eval_metrics,
              std::vector<std::string>{name});
  }
  EXPECT_THAT(ErrorOf({"solver.eval_metrics=[\"AUC\",\"COCP\"]"}),
              HasSubstr("solver.eval_metrics[1]: unknown metric 'COCP'; did you mean 'COPC'?"));
}

TEST(SolverConfig, GaucNeedsASlotThatExists) {
  const std::string metrics = "solver.eval_metrics=[\"AUC\",\"GAUC\"]";
  EXPECT_THAT(ErrorOf({metrics}), HasSubstr("solver.eval_metrics[1]: GAUC is of the groups"));
  EXPECT_THAT(ErrorOf({metrics}), HasSubstr("cistern.gauc_slot"));
  const auto slot = [](const std::string& input, int number) {
    return absl::StrCat("cistern.gauc_slot={\"input\":\"", input, "\",\"slot\":", number, "}");
  };
  const ModelConfig config = ParseOrDie({metrics, slot("data1", 1)});
  ASSERT_TRUE(config.cistern.gauc_slot.has_value());
  EXPECT_EQ(config.cistern.gauc_slot->input, 0u);
  EXPECT_EQ(config.cistern.gauc_slot->slot, 1u);
  EXPECT_THAT(ErrorOf({metrics, slot("data2", 0)}),
              HasSubstr("cistern.gauc_slot.input: no sparse input of layers[0] is called 'data2'; "
                        "did you mean 'data1'?"));
  EXPECT_THAT(ErrorOf({metrics, slot("data1", 1000)}), HasSubstr("cistern.gauc_slot.slot: input"));
  EXPECT_THAT(ErrorOf({metrics, "cistern.gauc_slot={\"input\":\"data1\"}"}), HasSubstr("slot"));
  // Nothing asks for it: said, and not an error.
  const ModelConfig idle = ParseOrDie({slot("data1", 0)});
  EXPECT_FALSE(idle.cistern.gauc_slot.has_value());
  EXPECT_THAT(idle.notes, testing::Contains(HasSubstr("cistern.gauc_slot: no effect")));
}

TEST(SolverConfig, ReadsKeyTypeAndEvaluationBatch) {
  const SolverConfig solver =
      ParseOrDie({"solver.input_key_type=I64", "solver.batchsize_eval=100"}).solver;
  EXPECT_TRUE(solver.wide_keys);
  EXPECT_EQ(solver.batchsize_eval, 100u);
}

TEST(SolverConfig, TheFrappeRecipeIsExpressible) {
  const ModelConfig config = ParseOrDie(
      {"solver.max_iter=0", "solver.num_epochs=100", "cistern.embedding_l2=0.05",
       "cistern.clip_norm=10", "cistern.eval_every_epoch=true", "cistern.plateau_factor=0.1",
       "cistern.plateau_min_lr=1e-6", "cistern.patience=2", "cistern.keep_best=true",
       "cistern.shuffle=true", "cistern.init_scheme=exact",
       "cistern.embeddings.deep.initializer={\"type\":\"Normal\",\"range\":1e-4}",
       "layers.fc1.fc_param.weight_init=XavierNorm", "layers.fc1.fc_param.bias_init=Zero"});
  EXPECT_EQ(config.cistern.embedding_l2, 0.05);
  EXPECT_EQ(config.cistern.clip_norm, 10);
  EXPECT_TRUE(config.cistern.eval_every_epoch);
  EXPECT_EQ(config.cistern.plateau_factor, 0.1);
  EXPECT_EQ(config.cistern.plateau_min_lr, 1e-6);
  EXPECT_EQ(config.cistern.plateau_min_gain, 1e-6);
  EXPECT_EQ(config.cistern.patience, 2u);
  EXPECT_TRUE(config.cistern.keep_best);
  EXPECT_TRUE(config.cistern.shuffle);
  EXPECT_EQ(config.cistern.init_scheme, "exact");
  EXPECT_EQ(config.layers[2].bias_init, InitKind::kZero);
}

}  // namespace
}  // namespace cistern
