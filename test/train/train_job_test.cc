// The jobs end to end, on servers in this process.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "test/client/embedded_fleet.h"
#include "test/common/temp_folder.h"
#include "worker/data/norm_writer.h"
#include "worker/train/jobs.h"

namespace cistern {
namespace {

constexpr uint32_t kSlots = 4;

// A key says by itself whether it clicks, so that a model can learn it: even keys do.
void WriteSamples(const std::string& path, size_t samples, uint64_t key_range, unsigned seed) {
  NormWriterOptions options;
  options.shape.slot_nums = {kSlots};
  options.shape.max_keys = {kSlots};
  auto writer = NormWriter::Create(path, options);
  ASSERT_TRUE(writer.ok()) << writer.status();
  std::mt19937 random(seed);
  SampleBlock block;
  block.Reset(1);
  for (size_t i = 0; i < samples; ++i) {
    int even = 0;
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      const Key key = slot * key_range + random() % key_range;
      even += key % 2 == 0 ? 1 : 0;
      block.sparse[0].keys.push_back(key);
      block.sparse[0].offsets.push_back(static_cast<uint32_t>(block.sparse[0].keys.size()));
    }
    block.label.push_back(even >= 2 ? 1.0f : 0.0f);
    ++block.size;
  }
  ASSERT_TRUE((*writer)->Append(block).ok());
  ASSERT_TRUE((*writer)->Close().ok());
}

std::unique_ptr<ParameterClient> Connect(EmbeddedFleet& fleet) {
  auto client = ParameterClient::Connect(fleet.Links(), ClientOptions());
  EXPECT_TRUE(client.ok()) << client.status();
  return client.ok() ? std::move(*client) : nullptr;
}

class TrainJob : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/train_job_" +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    WriteSamples(folder_ + "/train.norm", 4000, 300, 1);
    WriteSamples(folder_ + "/test.norm", 1000, 300, 2);
  }

  ModelConfig Config(const std::vector<std::string>& overrides = {}) {
    const std::string text = R"({
      "solver": {"lr_policy": "fixed", "display": 5, "num_epochs": 3, "batchsize": 256,
                 "snapshot": 0, "snapshot_prefix": "./", "gpu": [0], "seed": 7},
      "optimizer": {"type": "Adam", "update_type": "Local",
                    "adam_hparam": {"learning_rate": 0.01, "beta1": 0.9, "beta2": 0.999,
                                    "epsilon": 1e-8}},
      "layers": [
        {"name": "data", "type": "Data", "source": "TRAIN", "eval_source": "TEST", "check": "None",
         "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 0},
         "sparse": [{"top": "data1", "type": "DistributedSlot",
                     "max_feature_num_per_sample": 4, "slot_num": 4}]},
        {"name": "deep", "type": "DistributedSlotSparseEmbeddingHash", "bottom": "data1",
         "top": "embedding",
         "sparse_embedding_hparam": {"max_vocabulary_size_per_gpu": 10000,
                                     "embedding_vec_size": 8, "combiner": 0}},
        {"name": "reshape1", "type": "Reshape", "bottom": "embedding", "top": "reshape1",
         "leading_dim": 32},
        {"name": "fc1", "type": "InnerProduct", "bottom": "reshape1", "top": "fc1",
         "fc_param": {"num_output": 16}},
        {"name": "bn1", "type": "BatchNorm", "bottom": "fc1", "top": "bn1",
         "bn_param": {"factor": 0.1, "eps": 1e-5}},
        {"name": "relu1", "type": "ReLU", "bottom": "bn1", "top": "relu1"},
        {"name": "dropout1", "type": "Dropout", "rate": 0.1, "bottom": "relu1", "top": "dropout1"},
        {"name": "fc2", "type": "InnerProduct", "bottom": "dropout1", "top": "fc2",
         "fc_param": {"num_output": 1}},
        {"name": "loss", "type": "BinaryCrossEntropyLoss", "bottom": ["fc2", "label"],
         "top": "loss"}],
      "cistern": {}
    })";
    std::string filled = text;
    filled.replace(filled.find("TRAIN"), 5, folder_ + "/train.norm");
    filled.replace(filled.find("TEST"), 4, folder_ + "/test.norm");
    auto config = ParseModelConfig(filled, "model.json", overrides);
    EXPECT_TRUE(config.ok()) << config.status();
    return *config;
  }

  JobOptions Options(const std::string& name) {
    JobOptions options;
    options.out_dir = folder_ + "/" + name;
    options.threads = 2;
    return options;
  }

  std::string Predictions(const ModelConfig& config, ParameterClient& client,
                          const std::string& name) {
    const std::string output = folder_ + "/" + name + ".predictions";
    auto summary = Predict(config, client, {folder_ + "/test.norm"}, output, JobOptions());
    EXPECT_TRUE(summary.ok()) << summary.status();
    std::ifstream file(output);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  // Trains on `servers` fresh servers and returns the predictions of the test file.
  std::string TrainAndPredict(const ModelConfig& config, uint32_t servers,
                              const std::string& name) {
    EmbeddedFleet fleet(servers);
    auto client = Connect(fleet);
    auto summary = Train(config, *client, Options(name));
    EXPECT_TRUE(summary.ok()) << summary.status();
    return Predictions(config, *client, name);
  }

  std::vector<nlohmann::json> Metrics(const std::string& name, const std::string& event) {
    std::vector<nlohmann::json> found;
    std::ifstream file(folder_ + "/" + name + "/metrics.jsonl");
    for (std::string line; std::getline(file, line);) {
      auto parsed = nlohmann::json::parse(line);
      if (parsed["event"] == event) found.push_back(parsed);
    }
    return found;
  }

  std::string folder_;
};

TEST_F(TrainJob, LearnsARuleThatTheKeysTell) {
  EmbeddedFleet fleet(2);
  auto client = Connect(fleet);
  const auto summary = Train(Config({"solver.num_epochs=12"}), *client, Options("learn"));
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_GT(*summary->auc, 0.9);
  EXPECT_EQ(summary->samples, 12u * 4000u);
  EXPECT_EQ(summary->iterations, 12u * 16u);  // 4000 = 15 * 256 + 160
  EXPECT_EQ(summary->stopped_by, "epochs");
  EXPECT_EQ(Metrics("learn", "final").size(), 1u);
  EXPECT_FALSE(Metrics("learn", "train").empty());
}

TEST_F(TrainJob, TheNumberOfServersDoesNotChangeABit) {
  const ModelConfig config = Config();
  const std::string one = TrainAndPredict(config, 1, "one");
  EXPECT_EQ(std::count(one.begin(), one.end(), '\n'), 1000);
  EXPECT_EQ(one, TrainAndPredict(config, 2, "two"));
  EXPECT_EQ(one, TrainAndPredict(config, 3, "three"));
}

TEST_F(TrainJob, CuttingPassesSmallerDoesNotChangeABit) {
  ModelConfig config = Config();
  EmbeddedFleet fleet(1);
  auto client = Connect(fleet);
  const auto whole = Train(config, *client, Options("whole"));
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->passes, 3u);  // one an epoch
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

TEST_F(TrainJob, ASavedModelPredictsTheSameOnAnotherNumberOfServers) {
  const ModelConfig config = Config();
  const std::string trained = TrainAndPredict(config, 2, "saved");
  EmbeddedFleet fleet(3);
  auto client = Connect(fleet);
  ASSERT_TRUE(LoadModel(Disk(), config, *client, folder_ + "/saved/model").ok());
  EXPECT_EQ(client->committed_pass(), 3u);
  EXPECT_EQ(trained, Predictions(config, *client, "loaded"));
}

TEST_F(TrainJob, AModelOfAnotherShapeIsRefusedByName) {
  TrainAndPredict(Config(), 1, "small");
  EmbeddedFleet fleet(1);
  auto client = Connect(fleet);
  const ModelConfig other = Config({"layers.deep.sparse_embedding_hparam.embedding_vec_size=4",
                                    "layers.reshape1.leading_dim=16"});
  const absl::Status status = LoadModel(Disk(), other, *client, folder_ + "/small/model");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find("dim"), std::string::npos) << status;
}

TEST_F(TrainJob, AModelOfAnotherRuleIsUpgradedWhereThatIsAskedFor) {
  const std::string trained = TrainAndPredict(Config(), 2, "adam");
  EmbeddedFleet fleet(1);
  auto client = Connect(fleet);
  const ModelConfig other = Config({R"(cistern.embeddings.deep={"optimizer":{"type":"SGD"}})"});
  const std::string model = folder_ + "/adam/model";
  EXPECT_NE(std::string(LoadModel(Disk(), other, *client, model).message()).find("--upgrade"),
            std::string::npos);
  const absl::Status loaded =
      LoadModel(Disk(), other, *client, model, /*worker_state=*/"", /*upgrade=*/true);
  ASSERT_TRUE(loaded.ok()) << loaded;
  EXPECT_EQ(trained, Predictions(other, *client, "sgd"));
}

TEST_F(TrainJob, EvaluationInTheMiddleOfAPassSeesTheRowsInTraining) {
  EmbeddedFleet fleet(1);
  auto client = Connect(fleet);
  const ModelConfig config =
      Config({"solver.num_epochs=6", "solver.eval_interval=48", "solver.display=0"});
  ASSERT_TRUE(Train(config, *client, Options("middle")).ok());
  const auto evals = Metrics("middle", "eval");
  ASSERT_EQ(evals.size(), 2u);
  EXPECT_GT(evals[1]["auc"].get<double>(), evals[0]["auc"].get<double>());
  EXPECT_NEAR(evals[1]["auc"].get<double>(), Metrics("middle", "final")[0]["auc"].get<double>(),
              1e-12);
}

TEST_F(TrainJob, KeysThatNobodyTrainedReadTheDefaultRowAndAreCounted) {
  EmbeddedFleet fleet(2);
  auto client = Connect(fleet);
  const ModelConfig config = Config();
  ASSERT_TRUE(Train(config, *client, Options("unseen")).ok());
  WriteSamples(folder_ + "/strange.norm", 50, 1u << 20, 9);
  const auto summary = Evaluate(config, *client, {folder_ + "/strange.norm"}, JobOptions());
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_GT(summary->unseen_keys, 150u);
  EXPECT_EQ(summary->samples, 50u);
}

TEST_F(TrainJob, TheBestEpochIsWhatStays) {
  EmbeddedFleet fleet(2);
  auto client = Connect(fleet);
  // A learning rate that is far too large makes later epochs worse than some earlier one.
  const ModelConfig config =
      Config({"solver.num_epochs=40", "optimizer.adam_hparam.learning_rate=0.05",
              "cistern.eval_every_epoch=true", "cistern.keep_best=true", "cistern.patience=2"});
  const auto summary = Train(config, *client, Options("best"));
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->stopped_by, "patience");
  double best = 0;
  for (const auto& eval : Metrics("best", "eval")) best = std::max(best, eval["auc"].get<double>());
  EXPECT_EQ(*summary->auc, best);
  const auto again = Evaluate(config, *client, {}, JobOptions());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again->auc, best);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/best/best"));
}

TEST_F(TrainJob, AnInterruptCommitsWhatWasTrained) {
  EmbeddedFleet fleet(1);
  auto client = Connect(fleet);
  std::atomic<bool> interrupted{false};
  JobOptions options = Options("interrupt");
  options.interrupted = &interrupted;
  options.progress = [&](const Progress& p) { interrupted = interrupted || p.iter >= 10; };
  const auto summary = Train(Config({"solver.num_epochs=1000"}), *client, options);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_TRUE(summary->interrupted);
  EXPECT_EQ(client->committed_pass(), summary->passes);
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/interrupt/model"));
}

TEST_F(TrainJob, MaxIterGoesAroundTheDataAndAucStops) {
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
  EXPECT_EQ(stopped->stopped_by, "auc");
  EXPECT_GE(*stopped->auc, 0.8);
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
