// The fixture of job tests: a synthetic data set, a small model with all kinds of randomness and
// state (dropout, batch normalization, Adam), and servers in this process.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "test/support/temp_folder.h"
#include "test/worker/client/embedded_fleet.h"
#include "worker/data/format/norm_writer.h"
#include "worker/model/layer/layer_list.h"
#include "worker/train/jobs.h"

namespace cistern {

inline constexpr uint32_t kSlots = 4;

// Writes synthetic samples that a model can learn: even keys click.
inline void WriteSamples(const std::string& path, size_t samples, uint64_t key_range,
                         unsigned seed) {
  data::NormWriterOptions options;
  options.shape.slot_nums = {kSlots};
  options.shape.max_keys = {kSlots};
  auto writer = data::NormWriter::Create(Disk(), path, options);
  ASSERT_TRUE(writer.ok()) << writer.status();
  std::mt19937 random(seed);
  data::SampleBlock block;
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

template <class Fleet>
std::unique_ptr<ParameterClient> Connect(Fleet& fleet, const ClientOptions& options = {}) {
  auto client = ParameterClient::Connect(fleet.Links(), options);
  EXPECT_TRUE(client.ok()) << client.status();
  return client.ok() ? std::move(*client) : nullptr;
}

class JobFixture : public testing::Test {
 protected:
  void SetUp() override {
    WriteSamples(folder_ + "/train.norm", 4000, 300, 1);
    WriteSamples(folder_ + "/test.norm", 1000, 300, 2);
  }

  // The model file, as text.
  std::string ModelText() const {
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
    return filled;
  }

  model::ModelConfig Config(const std::vector<std::string>& overrides = {}) {
    auto config =
        model::ParseModelConfig(ModelText(), "model.json", overrides, model::LayerGrammars());
    EXPECT_TRUE(config.ok()) << config.status();
    return *config;
  }

  JobOptions Options(const std::string& name) {
    JobOptions options;
    options.out_dir = folder_ + "/" + name;
    options.threads = 2;
    return options;
  }

  std::string Predictions(const model::ModelConfig& config, ParameterClient& client,
                          const std::string& name) {
    const std::string output = folder_ + "/" + name + ".predictions";
    auto summary = Predict(config, client, {folder_ + "/test.norm"}, output, JobOptions());
    EXPECT_TRUE(summary.ok()) << summary.status();
    std::ifstream file(output);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  // Trains on `servers` new servers and returns the predictions for the test file.
  std::string TrainAndPredict(const model::ModelConfig& config, uint32_t servers,
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

  const TempFolder temp_folder_;
  const std::string folder_ = temp_folder_.path();
};

}  // namespace cistern
