#include "worker/model/config/model_config.h"

#include <optional>

#include "test/worker/model/config/config_parsing.h"
#include "worker/model/layer/layer_configs.h"

namespace cistern::model {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(SolverConfig, EpochsAndIterationsExcludeEachOther) {
  EXPECT_THAT(ErrorOf({"solver.num_epochs=2"}), HasSubstr("exclude each other"));
  EXPECT_EQ(ParseOrDie({"solver.max_iter=0"}).solver.num_epochs, 1u);
  EXPECT_EQ(ParseOrDie({"solver.max_iter=0", "solver.num_epochs=3"}).solver.num_epochs, 3u);
}

TEST(SolverConfig, AucCanHaveAThreshold) {
  EXPECT_EQ(ParseOrDie().solver.auc_threshold, 1.0);
  EXPECT_EQ(ParseOrDie({"solver.eval_metrics=AUC:0.8025"}).solver.auc_threshold, 0.8025);
  EXPECT_THAT(ErrorOf({"solver.eval_metrics=AUC:high"}),
              HasSubstr("solver.eval_metrics[0]: the threshold of 'AUC:high'"));
  EXPECT_THAT(ErrorOf({"solver.eval_metrics=AverageLos"}),
              HasSubstr("unknown metric 'AverageLos'; did you mean 'AverageLoss'?"));
}

TEST(SolverConfig, AcceptsEveryMetricByName) {
  const std::vector<std::string> names = {
      "AUC",       "AverageLoss",  "LogLoss", "NE",   "COPC",  "PCOC",    "BucketError",
      "ActualCTR", "PredictedCTR", "MAE",     "RMSE", "SMAPE", "HitRate", "NDCG"};
  for (const std::string& name : names) {
    EXPECT_EQ(ParseOrDie({"solver.eval_metrics=" + name}).solver.eval_metrics,
              std::vector<std::string>{name});
  }
  EXPECT_THAT(ErrorOf({"solver.eval_metrics=[\"AUC\",\"COCP\"]"}),
              HasSubstr("solver.eval_metrics[1]: unknown metric 'COCP'; did you mean 'COPC'?"));
}

TEST(SolverConfig, GaucRequiresAnExistingSlot) {
  const std::string metrics = "solver.eval_metrics=[\"AUC\",\"GAUC\"]";
  EXPECT_THAT(ErrorOf({metrics}), HasSubstr("solver.eval_metrics[1]: GAUC needs the slot"));
  EXPECT_THAT(ErrorOf({metrics}), HasSubstr("cistern.gauc_slot"));
  const auto slot = [](const std::string& input, int number) {
    return absl::StrCat("cistern.gauc_slot={\"input\":\"", input, "\",\"slot\":", number, "}");
  };
  const ModelConfig config = ParseOrDie({metrics, slot("data1", 1)});
  ASSERT_TRUE(config.cistern.gauc_slot.has_value());
  EXPECT_EQ(config.cistern.gauc_slot->input, 0u);
  EXPECT_EQ(config.cistern.gauc_slot->slot, 1u);
  EXPECT_THAT(ErrorOf({metrics, slot("data2", 0)}),
              HasSubstr("cistern.gauc_slot.input: no sparse input of layers[0] is named 'data2'; "
                        "did you mean 'data1'?"));
  EXPECT_THAT(ErrorOf({metrics, slot("data1", 1000)}), HasSubstr("cistern.gauc_slot.slot: input"));
  EXPECT_THAT(ErrorOf({metrics, "cistern.gauc_slot={\"input\":\"data1\"}"}), HasSubstr("slot"));
  // Without GAUC the slot has no effect: a note, not an error.
  const ModelConfig idle = ParseOrDie({slot("data1", 0)});
  EXPECT_FALSE(idle.cistern.gauc_slot.has_value());
  EXPECT_THAT(idle.notes, testing::Contains(HasSubstr("cistern.gauc_slot: no effect")));
}

TEST(SolverConfig, EachKeyIsStoredInItsMember) {
  const SolverConfig solver =
      ParseOrDie({"solver.display=11", "solver.max_iter=12", "solver.snapshot=13",
                  "solver.snapshot_prefix=a/b", "solver.batchsize=14", "solver.batchsize_eval=15",
                  "solver.eval_interval=16", "solver.eval_batches=17", "solver.seed=18",
                  "solver.enable_tf32_compute=true", "solver.cuda_graph=false"})
          .solver;
  EXPECT_EQ(solver.display, 11u);
  EXPECT_EQ(solver.max_iter, 12u);
  EXPECT_EQ(solver.num_epochs, 0u);
  EXPECT_EQ(solver.snapshot, 13u);
  EXPECT_EQ(solver.snapshot_prefix, "a/b");
  EXPECT_EQ(solver.batchsize, 14u);
  EXPECT_EQ(solver.batchsize_eval, 15u);
  EXPECT_EQ(solver.eval_interval, 16u);
  EXPECT_EQ(solver.eval_batches, 17u);
  EXPECT_EQ(solver.seed, 18u);
  EXPECT_TRUE(solver.enable_tf32);
  EXPECT_FALSE(solver.cuda_graph);
  EXPECT_FALSE(solver.wide_keys);
}

TEST(CisternConfig, EachKeyIsStoredInItsMember) {
  const CisternConfig cistern =
      ParseOrDie({R"(cistern={"embedding_l2": 0.1, "clip_norm": 0.2, "not_finite": "skip",
                              "eval_every_epoch": true, "plateau_factor": 0.3,
                              "plateau_min_lr": 0.4, "plateau_min_gain": 0.5,
                              "monitor": "LogLoss", "patience": 6, "keep_best": true,
                              "calibrate": 0.25, "calibrate_exact": true,
                              "shuffle": true, "shuffle_files": true,
                              "shuffle_buffer": 7, "streams": 8, "sample_weights": true,
                              "key_weights": ["data1"], "positive_weight": 9,
                              "negative_rate": 0.75, "eval_negative_rate": 0.875,
                              "on_bad_data": "skip",
                              "pass_memory_mb": 10, "device_memory_mb": 11, "commit_every": 12,
                              "snapshot_form": "v3", "gpu_products": "tf32",
                              "init_scheme": "exact", "day": 13,
                              "columns": {"label": "l", "dense": ["d"], "slots": ["s", "t"],
                                          "weights": "w"}})"})
          .cistern;
  EXPECT_EQ(cistern.embedding_l2, 0.1);
  EXPECT_EQ(cistern.clip_norm, 0.2);
  EXPECT_TRUE(cistern.skips_not_finite);
  EXPECT_TRUE(cistern.eval_every_epoch);
  EXPECT_EQ(cistern.plateau_factor, 0.3);
  EXPECT_EQ(cistern.plateau_min_lr, 0.4);
  EXPECT_EQ(cistern.plateau_min_gain, 0.5);
  EXPECT_TRUE(cistern.watches_log_loss);
  EXPECT_EQ(cistern.patience, 6u);
  EXPECT_TRUE(cistern.keep_best);
  EXPECT_EQ(cistern.calibrate, 0.25f);
  EXPECT_TRUE(cistern.calibrate_exact);
  EXPECT_TRUE(cistern.shuffle);
  EXPECT_TRUE(cistern.shuffle_files);
  EXPECT_EQ(cistern.shuffle_buffer, 7u);
  EXPECT_EQ(cistern.streams, 8u);
  EXPECT_FALSE(cistern.stream.has_value());
  EXPECT_TRUE(cistern.sample_weights);
  EXPECT_EQ(cistern.key_weights, std::vector<std::string>{"data1"});
  EXPECT_EQ(cistern.positive_weight, 9);
  EXPECT_EQ(cistern.negative_rate, 0.75);
  EXPECT_EQ(cistern.eval_negative_rate, 0.875);
  EXPECT_TRUE(cistern.skips_bad_data);
  EXPECT_EQ(cistern.pass_memory_mb, 10u);
  EXPECT_EQ(cistern.device_memory_mb, 11u);
  EXPECT_EQ(cistern.commit_every, 12u);
  EXPECT_EQ(cistern.snapshot_form, "v3");
  EXPECT_EQ(cistern.gpu_products, "tf32");
  EXPECT_EQ(cistern.init_scheme, "exact");
  EXPECT_EQ(cistern.day, 13u);
  EXPECT_EQ(cistern.columns, (data::TarColumns{{"l"}, {"d"}, {"s", "t"}, {"w"}}));
}

// The values of absent keys, as docs/configuration.md has them.
TEST(CisternConfig, AbsentKeysHaveTheirDefaults) {
  const CisternConfig cistern = ParseOrDie({"cistern.stream={\"source\":\"a\"}"}).cistern;
  EXPECT_FALSE(cistern.skips_not_finite);
  EXPECT_EQ(cistern.plateau_min_gain, 1e-6);
  EXPECT_FALSE(cistern.watches_log_loss);
  EXPECT_FALSE(cistern.shuffle_files);
  EXPECT_EQ(cistern.shuffle_buffer, 0u);
  EXPECT_EQ(cistern.streams, 1u);
  EXPECT_EQ(cistern.positive_weight, 1);
  EXPECT_EQ(cistern.negative_rate, 1);
  EXPECT_FALSE(cistern.skips_bad_data);
  EXPECT_EQ(cistern.columns, data::TarColumns());
  EXPECT_EQ(cistern.device_memory_mb, 0u);
  EXPECT_EQ(cistern.snapshot_form, "v2");
  EXPECT_EQ(cistern.gpu_products, "");
  EXPECT_EQ(cistern.init_scheme, "hugectr");
  ASSERT_TRUE(cistern.stream.has_value());
  EXPECT_EQ(cistern.stream->source, "a");
  EXPECT_EQ(cistern.stream->seconds, 10);
  EXPECT_EQ(cistern.stream->samples, 0u);
  EXPECT_EQ(cistern.stream->complete, "name");
  EXPECT_EQ(cistern.stream->age_seconds, 60);
  EXPECT_FALSE(cistern.stream->skips_lost);
  EXPECT_TRUE(cistern.stream->scores);
  EXPECT_EQ(cistern.stream->score_samples, 65536u);
  EXPECT_FALSE(cistern.stream->ends_when_empty);
}

TEST(StreamConfig, EachKeyIsStoredInItsMember) {
  const std::optional<StreamConfig> stream =
      ParseOrDie({R"(cistern.stream={"source": "kafka://h/t", "seconds": 1.5, "samples": 2,
                                     "recipe": "r", "complete": "age", "age_seconds": 3,
                                     "properties": "p", "on_lost": "skip", "score": false,
                                     "score_samples": 4, "until": "empty"})"})
          .cistern.stream;
  ASSERT_TRUE(stream.has_value());
  EXPECT_EQ(stream->source, "kafka://h/t");
  EXPECT_EQ(stream->seconds, 1.5);
  EXPECT_EQ(stream->samples, 2u);
  EXPECT_EQ(stream->recipe, "r");
  EXPECT_EQ(stream->complete, "age");
  EXPECT_EQ(stream->age_seconds, 3);
  EXPECT_EQ(stream->properties, "p");
  EXPECT_TRUE(stream->skips_lost);
  EXPECT_FALSE(stream->scores);
  EXPECT_EQ(stream->score_samples, 4u);
  EXPECT_TRUE(stream->ends_when_empty);
}

TEST(SolverConfig, ReadsKeyTypeAndEvaluationBatchSize) {
  const SolverConfig solver =
      ParseOrDie({"solver.input_key_type=I64", "solver.batchsize_eval=100"}).solver;
  EXPECT_TRUE(solver.wide_keys);
  EXPECT_EQ(solver.batchsize_eval, 100u);
}

TEST(SolverConfig, ReadsTheModelFilesThatARunStartsFrom) {
  const SolverConfig none = ParseOrDie().solver;
  EXPECT_EQ(none.dense_model_file, "");
  EXPECT_TRUE(none.sparse_model_files.empty());
  const SolverConfig one = ParseOrDie({"solver.dense model_file=a", "solver.sparse_model_file=b",
                                       "solver.dense_opt_states_file=c"})
                               .solver;
  EXPECT_EQ(one.dense_model_file, "a");
  EXPECT_EQ(one.sparse_model_files, std::vector<std::string>{"b"});
  EXPECT_EQ(one.dense_opt_states_file, "c");
  EXPECT_THAT(ErrorOf({"solver.dense_model_file=a", "solver.dense model_file=b"}),
              HasSubstr("solver.dense model_file: repeats solver.dense_model_file"));
  EXPECT_THAT(ErrorOf({R"(solver.dense_model_file=["a","b"])"}), HasSubstr("takes one file"));
  EXPECT_THAT(ErrorOf({"solver.dense_opt_states_file=c"}), HasSubstr("solver.dense_model_file"));
  EXPECT_THAT(ErrorOf({R"(solver.sparse_model_file=["a","b"])"}),
              HasSubstr("names 2 files, but the model has 1 embeddings"));
  EXPECT_THAT(ErrorOf({"solver.sparse_model_file=a", "cistern.embeddings.deep.accessor=ctr"}),
              HasSubstr("solver.sparse_model_file[0]: embedding 'deep' has the accessor ctr"));
}

TEST(SolverConfig, NotesASnapshotThatHugeCtrsFilesCannotHold) {
  const auto notes = [](const char* snapshot) {
    std::string text;
    const ModelConfig config = ParseOrDie(
        {absl::StrCat("solver.snapshot=", snapshot), "cistern.embeddings.deep.accessor=ctr"});
    for (const std::string& note : config.notes) {
      absl::StrAppend(&text, note, "\n");
    }
    return text;
  };
  EXPECT_THAT(notes("100"), HasSubstr("solver.snapshot: writes OUT/snapshot-N but no files"));
  EXPECT_THAT(notes("101"), Not(HasSubstr("solver.snapshot")));  // after the last iteration
}

TEST(SolverConfig, ReadsPrecisionFromSolverOrCistern) {
  const auto precision = [](const std::vector<std::string>& overrides) {
    return ParseOrDie(overrides).precision;
  };
  EXPECT_EQ(precision({}).activations, Activations::kFloat32);
  EXPECT_EQ(precision({"solver.mixed_precision=512"}).activations, Activations::kFloat16);
  EXPECT_EQ(precision({"solver.mixed_precision=512"}).loss_scale, 512);
  EXPECT_EQ(precision({"cistern.activations=float16"}).activations, Activations::kFloat16);
  EXPECT_EQ(precision({"cistern.activations=float16"}).loss_scale, 0);  // dynamic
  EXPECT_EQ(precision({"cistern.activations=float16", "cistern.loss_scale=dynamic"}).loss_scale, 0);
  EXPECT_EQ(precision({"cistern.activations=float16", "cistern.loss_scale=65536"}).loss_scale,
            65536);
  EXPECT_EQ(precision({"cistern.activations=bfloat16"}).activations, Activations::kBfloat16);
  EXPECT_EQ(precision({"solver.mixed_precision=128", "cistern.activations=float16"}).loss_scale,
            128);
  EXPECT_THAT(ErrorOf({"solver.mixed_precision=512", "cistern.activations=bfloat16"}),
              HasSubstr("cistern.activations: solver.mixed_precision requires float16"));
  EXPECT_THAT(ErrorOf({"solver.mixed_precision=512", "cistern.loss_scale=dynamic"}),
              HasSubstr("cistern.loss_scale: solver.mixed_precision sets the loss scale too"));
  EXPECT_THAT(ErrorOf({"cistern.activations=bfloat16", "cistern.loss_scale=128"}),
              HasSubstr("cistern.loss_scale: requires float16 in cistern.activations"));
  EXPECT_THAT(ErrorOf({"cistern.loss_scale=128"}),
              HasSubstr("cistern.loss_scale: requires float16"));
}

TEST(SolverConfig, ReadsTheSettingsOfTheFrappeRecipe) {
  const ModelConfig config = ParseOrDie(
      {"solver.max_iter=0", "solver.num_epochs=100", "cistern.embedding_l2=0.05",
       "cistern.clip_norm=10", "cistern.eval_every_epoch=true", "cistern.plateau_factor=0.1",
       "cistern.plateau_min_lr=1e-6", "cistern.patience=2", "cistern.keep_best=true",
       "cistern.shuffle=true", "cistern.init_scheme=exact", "cistern.gpu_products=bfloat16",
       "solver.enable_tf32_compute=true",
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
  EXPECT_EQ(config.cistern.gpu_products, "bfloat16");
  EXPECT_TRUE(config.solver.enable_tf32);
  EXPECT_EQ(config.layers[2].own<FullyConnectedConfig>().bias_init, InitKind::kZero);
}

}  // namespace
}  // namespace cistern::model
