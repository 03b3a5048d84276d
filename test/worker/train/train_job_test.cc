// End-to-end tests of the jobs, on servers in this process.
#include <gmock/gmock.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "common/base/thread_limit.h"
#include "common/saved_model/model_folder.h"
#include "test/worker/train/job_fixture.h"
#include "worker/train/model_study.h"

namespace cistern {
namespace {

using testing::HasSubstr;

class TrainJob : public JobFixture {};

TEST_F(TrainJob, LearnsARuleThatKeysDetermine) {
  EmbeddedFleet fleet(2);
  auto client = Connect(fleet);
  const auto summary = Train(Config({"solver.num_epochs=12"}), *client, Options("learn"));
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_GT(*summary->score.auc, 0.9);
  EXPECT_EQ(summary->samples, 12u * 4000u);
  EXPECT_EQ(summary->iterations, 12u * 16u);  // 4000 = 15 * 256 + 160
  EXPECT_EQ(summary->stopped_by, report::StopReason::kEpochs);
  EXPECT_EQ(Metrics("learn", "final").size(), 1u);
  EXPECT_FALSE(Metrics("learn", "train").empty());
}

// The process may be somebody else's, such as a Python program with loops of its own.
TEST_F(TrainJob, LeavesTheCallersNumberOfThreadsAsItWas) {
#ifndef _OPENMP
  GTEST_SKIP() << "built for one thread, as under the thread sanitizer";
#endif
  const ThreadLimit own(3);
  EmbeddedFleet fleet(1);
  auto client = Connect(fleet);
  const model::ModelConfig config = Config({"solver.num_epochs=1"});
  JobOptions options = Options("threads");
  options.threads = 1;
  ASSERT_EQ(Train(config, *client, options).status(), absl::OkStatus());
  EXPECT_EQ(omp_get_max_threads(), 3);
  const std::vector<std::string> files = {folder_ + "/train.norm"};
  ASSERT_EQ(Evaluate(config, *client, files, options).status(), absl::OkStatus());
  EXPECT_EQ(omp_get_max_threads(), 3);
  ASSERT_EQ(Predict(config, *client, files, folder_ + "/p.txt", options).status(),
            absl::OkStatus());
  EXPECT_EQ(omp_get_max_threads(), 3);
  ASSERT_EQ(StudyModel(config, *client, files, 100, options).status(), absl::OkStatus());
  EXPECT_EQ(omp_get_max_threads(), 3);
}

TEST_F(TrainJob, TheNumberOfServersDoesNotChangeABit) {
  const model::ModelConfig config = Config();
  const std::string one = TrainAndPredict(config, 1, "one");
  EXPECT_EQ(std::count(one.begin(), one.end(), '\n'), 1000);
  EXPECT_EQ(one, TrainAndPredict(config, 2, "two"));
  EXPECT_EQ(one, TrainAndPredict(config, 3, "three"));
}

TEST_F(TrainJob, TheNumberOfServersDoesNotChangeABitOfABoundedTable) {
  WriteSamples(folder_ + "/train.norm", 40000, 30000, 3);
  std::set<std::string> predictions = {
      TrainAndPredict(Config({"cistern.pass_memory_mb=2"}), 1, "whole")};
  for (const std::string bound : {"max_rows=9000", "expire_passes=2", "admit_after=3"}) {
    const model::ModelConfig config =
        Config({"cistern.pass_memory_mb=2", "cistern.embeddings.deep." + bound});
    const std::string one = TrainAndPredict(config, 1, bound + "-1");
    EXPECT_TRUE(predictions.insert(one).second) << bound << " changes nothing";
    EXPECT_EQ(one, TrainAndPredict(config, 2, bound + "-2"));
    EXPECT_EQ(one, TrainAndPredict(config, 3, bound + "-3"));
  }
}

TEST_F(TrainJob, PassesCountTheRowsThatTheirCommitsRemove) {
  WriteSamples(folder_ + "/train.norm", 40000, 30000, 3);
  for (const std::string bound : {"max_rows", "expire_passes"}) {
    const model::ModelConfig config =
        Config({"cistern.pass_memory_mb=2", "solver.num_epochs=1",
                "cistern.embeddings.deep." + bound + (bound == "max_rows" ? "=9000" : "=2")});
    EmbeddedFleet fleet(2);
    auto client = Connect(fleet);
    ASSERT_TRUE(Train(config, *client, Options(bound)).ok());
    uint64_t of_servers = 0, removed = 0;
    for (const nlohmann::json& pass : Metrics(bound, "pass")) {
      const std::string field = bound == "max_rows" ? "evicted_rows" : "expired_rows";
      ASSERT_TRUE(pass.contains(field)) << pass;
      EXPECT_FALSE(pass.contains(bound == "max_rows" ? "expired_rows" : "evicted_rows")) << pass;
      removed += pass[field].get<uint64_t>();
    }
    for (size_t rank = 0; rank < 2; ++rank) {
      v1::StatsRequest request;
      *request.mutable_identity() = client->identity();
      v1::StatsReply stats;
      ASSERT_EQ(fleet.Links()[rank].control->Stats(request, &stats), absl::OkStatus());
      of_servers += stats.tables(0).evicted_rows() + stats.tables(0).expired_rows();
    }
    EXPECT_GT(removed, 10000u) << bound;
    EXPECT_EQ(removed, of_servers) << bound;
  }
}

TEST_F(TrainJob, PassesOfOneDayExpireNoRowByDay) {
  EmbeddedFleet fleet(1);
  ClientOptions options;
  options.today = [] { return 20000; };
  auto client = Connect(fleet, options);
  ASSERT_TRUE(
      Train(Config({"cistern.embeddings.deep.expire_days=1"}), *client, Options("days")).ok());
  for (const nlohmann::json& pass : Metrics("days", "pass")) EXPECT_EQ(pass["expired_rows"], 0);
}

// A row counts its occurrences exactly, over epochs and passes, and has weights once it has enough.
TEST_F(TrainJob, RowsHaveWeightsOnceTheyOccurredOftenEnough) {
  WriteSamples(folder_ + "/train.norm", 4000, 3000, 5);
  std::map<Key, uint32_t> seen;
  std::mt19937 random(5);
  for (size_t i = 0; i < 4000; ++i) {
    for (uint32_t slot = 0; slot < kSlots; ++slot) seen[slot * 3000 + random() % 3000] += 2;
  }
  const model::ModelConfig config = Config(
      {"cistern.pass_memory_mb=1", "solver.num_epochs=2", "cistern.embeddings.deep.admit_after=4"});
  EmbeddedFleet fleet(2);
  auto client = Connect(fleet);
  ASSERT_TRUE(Train(config, *client, Options("counts")).ok());
  const ValueLayout& layout = client->layout(0);
  size_t rows = 0, admitted = 0;
  ASSERT_EQ(client->Scan(0,
                         [&](uint32_t, Key key, const float* value, bool has_embedx) {
                           EXPECT_EQ(value[layout.count_field()->first],
                                     static_cast<float>(seen.at(key)));
                           EXPECT_EQ(has_embedx, seen.at(key) >= 4);
                           const float* weights = value + layout.weight_index();
                           if (!has_embedx) {
                             EXPECT_TRUE(std::all_of(weights, weights + layout.dim(),
                                                     [](float w) { return w == 0; }));
                           }
                           admitted += has_embedx ? 1 : 0;
                           ++rows;
                           return absl::OkStatus();
                         }),
            absl::OkStatus());
  EXPECT_EQ(rows, seen.size());
  EXPECT_GT(admitted, rows / 10);
  EXPECT_LT(admitted, rows * 9 / 10);
}

TEST_F(TrainJob, CuttingPassesSmallerDoesNotChangeABit) {
  model::ModelConfig config = Config();
  EmbeddedFleet fleet(1);
  auto client = Connect(fleet);
  const auto whole = Train(config, *client, Options("whole"));
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->passes, 3u);  // one per epoch
  const std::string expected = Predictions(config, *client, "whole");

  WriteSamples(folder_ + "/train.norm", 40000, 30000, 3);
  const std::string large = TrainAndPredict(config, 2, "large");
  config.cistern.pass_memory_mb = 2;
  EmbeddedFleet others(2);
  auto other_client = Connect(others);
  const auto cut = Train(config, *other_client, Options("cut"));
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_GT(cut->passes, 6u);
  EXPECT_EQ(large, Predictions(config, *other_client, "cut"));
  EXPECT_NE(large, expected);
}

TEST_F(TrainJob, DeferredUpdatesContinueInASecondRun) {
  const model::ModelConfig config =
      Config({"optimizer.update_type=Global", "solver.num_epochs=0", "solver.max_iter=20"});
  EmbeddedFleet fleet(2);
  for (const uint64_t steps : {20u, 40u}) {
    auto client = Connect(fleet);  // like a new process: reads the clock from the servers
    const auto summary = Train(config, *client, Options("run"));
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_EQ(summary->iterations, 20u);
    EXPECT_EQ(client->clock().step(), steps);
  }
  auto client = Connect(fleet);
  EXPECT_EQ(client->clock().step(), 40u);
}

TEST_F(TrainJob, ASavedModelPredictsTheSameOnAnotherNumberOfServers) {
  for (const char* update_type : {"Local", "Global", "LazyGlobal"}) {
    SCOPED_TRACE(update_type);
    const model::ModelConfig config = Config({absl::StrCat("optimizer.update_type=", update_type)});
    const std::string trained = TrainAndPredict(config, 2, "saved");
    EmbeddedFleet fleet(3);
    auto client = Connect(fleet);
    ASSERT_TRUE(LoadModel(Disk(), config, *client, folder_ + "/saved/model").ok());
    EXPECT_EQ(client->committed_pass(), 3u);
    EXPECT_EQ(trained, Predictions(config, *client, "loaded"));
  }
}

TEST_F(TrainJob, AModelOfAnotherShapeIsRefusedWithTheDifference) {
  TrainAndPredict(Config(), 1, "small");
  EmbeddedFleet fleet(1);
  auto client = Connect(fleet);
  const model::ModelConfig other =
      Config({"layers.deep.sparse_embedding_hparam.embedding_vec_size=4",
              "layers.reshape1.leading_dim=16"});
  const absl::Status status = LoadModel(Disk(), other, *client, folder_ + "/small/model");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find("dim"), std::string::npos) << status;
}

// Changes the lines of a file of a saved model, and updates sizes and hashes to match.
using Lines = std::vector<std::string>;
absl::Status Rewrite(const std::string& model, const std::function<void(Lines*)>& change) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<ModelPart> parts, ReadParts(Disk(), model));
  ModelPart part = parts[0];
  for (ModelFile& file : part.files) {
    if (file.name != "deep/part-000-00007") continue;
    Lines lines;
    CISTERN_RETURN_IF_ERROR(ReadModelFile(Disk(), model, file, [&](absl::string_view line) {
      lines.emplace_back(line);
      return absl::OkStatus();
    }));
    change(&lines);
    CISTERN_ASSIGN_OR_RETURN(const auto writer, ModelFileWriter::Create(Disk(), model, file.name));
    for (const std::string& line : lines)
      CISTERN_RETURN_IF_ERROR(writer->Append(absl::StrCat(line, "\n"), 1));
    CISTERN_ASSIGN_OR_RETURN(file, writer->Close());
  }
  CISTERN_RETURN_IF_ERROR(Disk().Remove(absl::StrCat(model, "/", PartJsonName(0, 1))));
  return WritePart(Disk(), model, part);
}

TEST_F(TrainJob, AWrongRowInASavedModelIsNamed) {
  TrainAndPredict(Config(), 1, "saved");
  const std::string model = folder_ + "/saved/model";
  std::string key;
  const auto refusal = [&](const std::function<void(Lines*)>& change) {
    EXPECT_EQ(Rewrite(model, change), absl::OkStatus());
    EmbeddedFleet fleet(2);
    const absl::Status status = LoadModel(Disk(), Config(), *Connect(fleet), model);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    return std::string(status.message());
  };
  const std::string twice = refusal([&](Lines* lines) {
    key = lines->front().substr(0, lines->front().find(' '));
    lines->push_back(lines->front());
  });
  EXPECT_THAT(twice, HasSubstr(absl::StrCat(model, "/deep/part-000-00007: line ")));
  EXPECT_THAT(twice, HasSubstr(absl::StrCat("key ", key, " occurs for the second time")));
  const std::string elsewhere = refusal([](Lines* lines) {
    lines->pop_back();
    lines->front() = absl::StrCat("8", lines->front().substr(lines->front().find(' ')));
  });
  EXPECT_THAT(elsewhere, HasSubstr("line 1: key 8 belongs to shard 8, not to shard 7"));
}

TEST_F(TrainJob, AModelOfAnotherRuleIsUpgradedOnRequest) {
  const std::string trained = TrainAndPredict(Config(), 2, "adam");
  EmbeddedFleet fleet(1);
  auto client = Connect(fleet);
  const model::ModelConfig other =
      Config({R"(cistern.embeddings.deep={"optimizer":{"type":"SGD"}})"});
  const std::string model = folder_ + "/adam/model";
  EXPECT_NE(
      std::string(LoadModel(Disk(), other, *client, model).message()).find("load with upgrade"),
      std::string::npos);
  const absl::Status loaded = LoadModel(Disk(), other, *client, model, {/*upgrade=*/true, {}});
  ASSERT_TRUE(loaded.ok()) << loaded;
  EXPECT_EQ(trained, Predictions(other, *client, "sgd"));
}

// The first dense layer depends on dim, so the dense parameters of the files do not fit.
TEST_F(TrainJob, AModelOfAnotherDimKeepsItsRowsAndResetsItsDenseParameters) {
  TrainAndPredict(Config(), 2, "narrow");
  const std::string model = folder_ + "/narrow/model";
  const model::ModelConfig wide =
      Config({"layers.deep.sparse_embedding_hparam.embedding_vec_size=4",
              "layers.reshape1.leading_dim=16"});
  EmbeddedFleet fleet(2);
  auto client = Connect(fleet);
  std::vector<v1::TableLeftOut> left_out;
  const absl::Status loaded = LoadModel(Disk(), wide, *client, model, {true, {}}, &left_out);
  ASSERT_TRUE(loaded.ok()) << loaded;
  ASSERT_EQ(left_out.size(), 1u);
  EXPECT_EQ(left_out[0].name(), "dense");
  std::vector<float> dense(client->schema().dense_tables(0).rows() *
                           static_cast<size_t>(client->schema().dense_tables(0).columns_size()));
  EXPECT_EQ(client->PullDense(0, dense.data()).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(client->committed_pass(), 3u);
  ASSERT_TRUE(Train(wide, *client, Options("wide")).ok());
  EXPECT_TRUE(client->PullDense(0, dense.data()).ok());
}

TEST_F(TrainJob, EvaluationDuringAPassSeesTheRowsInTraining) {
  EmbeddedFleet fleet(1);
  auto client = Connect(fleet);
  const model::ModelConfig config =
      Config({"solver.num_epochs=6", "solver.eval_interval=48", "solver.display=0"});
  ASSERT_TRUE(Train(config, *client, Options("middle")).ok());
  const auto evals = Metrics("middle", "eval");
  ASSERT_EQ(evals.size(), 2u);
  EXPECT_GT(evals[1]["auc"].get<double>(), evals[0]["auc"].get<double>());
  EXPECT_NEAR(evals[1]["auc"].get<double>(), Metrics("middle", "final")[0]["auc"].get<double>(),
              1e-12);
}

// Evaluation data of several passes; the test removes the file after the first evaluation.
TEST_F(TrainJob, CachedEvaluationDataIsReadOnce) {
  WriteSamples(folder_ + "/large.norm", 6000, 5000, 3);
  for (const bool cached : {false, true}) {
    const std::string eval = folder_ + "/eval.norm";
    std::filesystem::copy_file(folder_ + "/large.norm", eval);
    EmbeddedFleet fleet(1);
    auto client = Connect(fleet);
    const model::ModelConfig config =
        Config({"cistern.eval_every_epoch=true", "cistern.pass_memory_mb=1",
                "solver.batchsize_eval=100", "layers.data.eval_source=" + eval,
                absl::StrCat("layers.data.cache_eval_data=", cached ? "true" : "30")});
    JobOptions options = Options(cached ? "cached" : "read");
    options.progress = [&](const Progress& progress) {
      if (progress.event == report::RunEvent::kEval) std::filesystem::remove(eval);
    };
    const auto summary = Train(config, *client, options);
    std::filesystem::remove(eval);
    EXPECT_EQ(summary.ok(), cached) << summary.status();
  }
}

TEST_F(TrainJob, AFewCachedBatchesChangeNoScore) {
  WriteSamples(folder_ + "/large.norm", 6000, 5000, 3);
  std::vector<std::vector<double>> scores;
  for (const char* cache : {"false", "7", "true"}) {
    EmbeddedFleet fleet(1);
    auto client = Connect(fleet);
    const model::ModelConfig config =
        Config({"cistern.eval_every_epoch=true", "cistern.pass_memory_mb=1",
                "solver.batchsize_eval=100", "layers.data.eval_source=" + folder_ + "/large.norm",
                absl::StrCat("layers.data.cache_eval_data=", cache)});
    ASSERT_TRUE(Train(config, *client, Options(cache)).ok());
    auto& seen = scores.emplace_back();
    for (const auto& eval : Metrics(cache, "eval")) {
      seen.push_back(eval["auc"]);
      seen.push_back(eval["logloss"]);
    }
  }
  EXPECT_EQ(scores[0].size(), 6u);
  EXPECT_EQ(scores[1], scores[0]);
  EXPECT_EQ(scores[2], scores[0]);
}

TEST_F(TrainJob, UntrainedKeysReadTheDefaultRowAndAreCounted) {
  EmbeddedFleet fleet(2);
  auto client = Connect(fleet);
  const model::ModelConfig config = Config();
  ASSERT_TRUE(Train(config, *client, Options("unseen")).ok());
  WriteSamples(folder_ + "/strange.norm", 50, 1u << 20, 9);
  const auto summary = Evaluate(config, *client, {folder_ + "/strange.norm"}, JobOptions());
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_GT(summary->unseen_keys, 150u);
  EXPECT_EQ(summary->samples, 50u);
}

TEST_F(TrainJob, KeepsTheBestEpoch) {
  EmbeddedFleet fleet(2);
  auto client = Connect(fleet);
  // A far too large learning rate makes later epochs worse than an earlier one.
  const model::ModelConfig config =
      Config({"solver.num_epochs=40", "optimizer.adam_hparam.learning_rate=0.05",
              "cistern.eval_every_epoch=true", "cistern.keep_best=true", "cistern.patience=2"});
  const auto summary = Train(config, *client, Options("best"));
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->stopped_by, report::StopReason::kPatience);
  double best = 0;
  for (const auto& eval : Metrics("best", "eval")) best = std::max(best, eval["auc"].get<double>());
  EXPECT_EQ(*summary->score.auc, best);
  const auto again = Evaluate(config, *client, {}, JobOptions());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again->auc, best);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/best/best"));
}

// Of 1000 test samples, about 690 are positive (even >= 2 of 4: 11/16), which is far from either
// share, so the mean is that of the samples, unless calibrate is exact.
TEST_F(TrainJob, CalibratesTheBiasAtTheEndOfEachEpoch) {
  const std::vector<std::string> bias = {"layers.fc2.fc_param.bias_value=0",
                                         "cistern.eval_every_epoch=true"};
  const auto train = [&](const std::string& name, const std::vector<std::string>& more) {
    EmbeddedFleet fleet(2);
    auto client = Connect(fleet);
    std::vector<std::string> overrides = bias;
    overrides.insert(overrides.end(), more.begin(), more.end());
    const model::ModelConfig config = Config(overrides);
    EXPECT_EQ(Train(config, *client, Options(name)).status(), absl::OkStatus());
    std::istringstream lines(Predictions(config, *client, name));
    double sum = 0, positives = 0, label = 0, prediction = 0;
    for (; lines >> label >> prediction; sum += prediction) positives += label;
    return std::pair(sum / 1000, positives / 1000);
  };
  const auto log_odds = [](double p) { return std::log(p / (1 - p)); };
  for (const double share : {0.2, 0.9}) {
    // 10/11 of the way (kPriorSamples), from wherever the epoch ended.
    const std::string calibrate = absl::StrCat("cistern.calibrate=", share);
    const auto [mean, positives] = train(absl::StrCat("at", share), {calibrate});
    EXPECT_NEAR(log_odds(mean), log_odds(positives), 0.06) << share;
    const auto [exact, same] =
        train(absl::StrCat("exactly", share), {calibrate, "cistern.calibrate_exact=true"});
    EXPECT_EQ(same, positives);
    // The shift of all log-odds, 10/11 of what is needed, moves those of the mean less than itself.
    const double way =
        (log_odds(exact) - log_odds(positives)) / (log_odds(share) - log_odds(positives));
    EXPECT_GT(way, 0.7) << share;
    EXPECT_LT(way, 1.05) << share;
  }
  EmbeddedFleet fleet(1);
  auto client = Connect(fleet);
  const absl::Status status =
      Train(Config({"cistern.calibrate=0.5"}), *client, Options("none")).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("needs an InnerProduct layer"));
}

TEST_F(TrainJob, AnInterruptCommitsTheTrainingSoFar) {
  EmbeddedFleet fleet(1);
  auto client = Connect(fleet);
  std::atomic<bool> interrupted{false};
  JobOptions options = Options("interrupt");
  options.interrupted = &interrupted;
  options.progress = [&](const Progress& p) { interrupted = interrupted || p.iter >= 10; };
  const auto summary = Train(Config({"solver.num_epochs=1000"}), *client, options);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_TRUE(summary->interrupted());
  EXPECT_EQ(client->committed_pass(), summary->passes);
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/interrupt/model"));
}

// On a CPU the training thread computes the steps, so it is busy, idle, or does other work: here it
// lets at least 50 us pass before each step, of which the clock of steps must not know.
TEST_F(TrainJob, BusyTimeIsThatOfStepsAlone) {
  EmbeddedFleet fleet(1);
  auto client = Connect(fleet);
  JobOptions options = Options("busy");
  double outside = 0, idle = 0, busy = 0, shown = 0;
  std::optional<SteadyTime> begin;
  options.before_step = [&](uint64_t, double) {
    const SteadyTime asked = std::chrono::steady_clock::now();
    if (!begin) begin = asked;
    while (SecondsBetween(asked, std::chrono::steady_clock::now()) < 5e-5) continue;
    outside += SecondsBetween(asked, std::chrono::steady_clock::now());
    return StepOrder{};
  };
  options.progress = [&](const Progress& p) {
    if (p.idle_seconds) idle += p.idle_seconds->total();
    if (p.event == report::RunEvent::kPass) shown += p.busy.value().seconds;
  };
  const auto summary = Train(Config(), *client, options);
  ASSERT_TRUE(summary.ok()) << summary.status();
  const double all = SecondsBetween(*begin, std::chrono::steady_clock::now());
  busy = summary->busy.seconds;
  EXPECT_GT(busy, 0);
  EXPECT_LE(busy, all - outside);
  EXPECT_LE(busy + idle, summary->seconds);
  EXPECT_NEAR(shown, busy, 1e-9);  // the passes' sum
  EXPECT_GT(summary->passes, 1u);
  EXPECT_LE(summary->busy.share + summary->idle.total(), 1);
  for (const nlohmann::json& pass : Metrics("busy", "pass")) {
    EXPECT_GT(pass["busy"]["seconds"], 0);
    EXPECT_LE(pass["busy"]["share"].get<double>() + pass["idle"]["share"].get<double>(), 1);
  }
  EXPECT_EQ(Metrics("busy", "final").at(0)["busy"]["seconds"], busy);
}

TEST_F(TrainJob, MaxIterRepeatsTheDataAndAucStops) {
  EmbeddedFleet fleet(1);
  auto client = Connect(fleet);
  const auto summary =
      Train(Config({"solver.num_epochs=0", "solver.max_iter=37"}), *client, Options("iter"));
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->iterations, 37u);
  EXPECT_EQ(summary->samples, 37u * 256u);
  const auto stopped =
      Train(Config({"solver.num_epochs=0", "solver.max_iter=5000", "solver.eval_interval=20",
                    "solver.eval_metrics=[\"AUC:0.8\"]"}),
            *client, Options("auc"));
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_EQ(stopped->stopped_by, report::StopReason::kAuc);
  EXPECT_GE(*stopped->score.auc, 0.8);
}

TEST_F(TrainJob, ASecondRunFencesTheFirst) {
  EmbeddedFleet fleet(1);
  auto first = Connect(fleet);
  ASSERT_TRUE(Train(Config({"solver.num_epochs=1"}), *first, Options("first")).ok());
  auto second = Connect(fleet);
  ASSERT_TRUE(Train(Config({"solver.num_epochs=1"}), *second, Options("second")).ok());
  const absl::Status status = first->BeginPass();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(std::string(status.message()).find("fenced"), std::string::npos) << status;
}

}  // namespace
}  // namespace cistern
