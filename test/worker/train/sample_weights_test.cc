// Weights of samples, from files to the loss and to the metrics.
#include <cmath>
#include <functional>

#include "test/worker/train/job_fixture.h"
#include "worker/model/layer/layer_list.h"

namespace cistern {
namespace {

// A sample has four keys and a weight.
struct Weighted {
  Key keys[kSlots];
  float label, weight;
};

std::vector<Weighted> Draw(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Weighted> samples(count);
  for (Weighted& sample : samples) {
    int even = 0;
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      sample.keys[slot] = slot * 20 + random() % 20;
      even += sample.keys[slot] % 2 == 0 ? 1 : 0;
    }
    sample.label = even >= 2 ? 1 : 0;
    sample.weight = 1;
  }
  return samples;
}

class SampleWeights : public JobFixture {
 protected:
  // Writes the weights as the last labels, or leaves them out.
  std::string Write(const std::string& name, const std::vector<Weighted>& samples,
                    bool weighted = true) {
    data::NormWriterOptions options;
    options.shape.label_dim = weighted ? 2 : 1;
    options.shape.slot_nums = {kSlots};
    options.shape.max_keys = {kSlots};
    const std::string path = folder_ + "/" + name + ".norm";
    auto writer = data::NormWriter::Create(Disk(), path, options);
    EXPECT_TRUE(writer.ok()) << writer.status();
    data::SampleBlock block;
    block.Reset(1);
    for (const Weighted& sample : samples) {
      for (const Key key : sample.keys) {
        block.sparse[0].keys.push_back(key);
        block.sparse[0].offsets.push_back(static_cast<uint32_t>(block.sparse[0].keys.size()));
      }
      block.label.push_back(sample.label);
      if (weighted) block.label.push_back(sample.weight);
      ++block.size;
    }
    EXPECT_TRUE((*writer)->Append(block).ok());
    EXPECT_TRUE((*writer)->Close().ok());
    return path;
  }

  // A logistic regression on all samples at once, by plain gradient descent.
  model::ModelConfig Linear(const std::string& train, size_t samples) {
    const std::string text = R"({
      "solver": {"lr_policy": "fixed", "display": 1, "max_iter": 8, "batchsize": SAMPLES,
                 "batchsize_eval": 64, "snapshot": 0, "snapshot_prefix": "./", "gpu": [0],
                 "seed": 7},
      "optimizer": {"type": "SGD", "update_type": "Global",
                    "sgd_hparam": {"learning_rate": 2.0, "atomic_update": false}},
      "layers": [
        {"name": "data", "type": "Data", "source": "TRAIN", "check": "None",
         "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 0},
         "sparse": [{"top": "data1", "type": "DistributedSlot",
                     "max_feature_num_per_sample": 4, "slot_num": 4}]},
        {"name": "deep", "type": "DistributedSlotSparseEmbeddingHash", "bottom": "data1",
         "top": "embedding",
         "sparse_embedding_hparam": {"embedding_vec_size": 1, "combiner": 0}},
        {"name": "reshape1", "type": "Reshape", "bottom": "embedding", "top": "reshape1",
         "leading_dim": 4},
        {"name": "fc1", "type": "InnerProduct", "bottom": "reshape1", "top": "fc1",
         "fc_param": {"num_output": 1}},
        {"name": "loss", "type": "BinaryCrossEntropyLoss", "bottom": ["fc1", "label"],
         "top": "loss"}],
      "cistern": {"sample_weights": true}
    })";
    std::string filled = text;
    filled.replace(filled.find("TRAIN"), 5, train);
    filled.replace(filled.find("SAMPLES"), 7, std::to_string(samples));
    auto config = model::ParseModelConfig(filled, "model.json", {}, model::LayerGrammars());
    EXPECT_TRUE(config.ok()) << config.status();
    return *config;
  }

  // Trains and returns the predictions for `test`.
  std::vector<double> Fit(const model::ModelConfig& config, const std::string& test,
                          const std::string& name) {
    EmbeddedFleet fleet(2);
    auto client = Connect(fleet);
    const auto summary = Train(config, *client, Options(name));
    EXPECT_TRUE(summary.ok()) << summary.status();
    return PredictionsOf(config, *client, test);
  }
  std::vector<double> PredictionsOf(const model::ModelConfig& config, ParameterClient& client,
                                    const std::string& data) {
    const std::string output = folder_ + "/predictions";
    const auto summary = Predict(config, client, {data}, output, JobOptions());
    EXPECT_TRUE(summary.ok()) << summary.status();
    std::ifstream file(output);
    std::vector<double> predictions;
    for (double label = 0, prediction = 0; file >> label >> prediction;) {
      predictions.push_back(prediction);
    }
    return predictions;
  }
  static void ExpectNear(const std::vector<double>& a, const std::vector<double>& b) {
    ASSERT_EQ(a.size(), b.size());
    ASSERT_GT(a.size(), 0u);
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 2e-6) << i;
  }
};

TEST_F(SampleWeights, AWholeWeightIsThatNumberOfSamples) {
  std::vector<Weighted> weighted = Draw(200, 1), repeated;
  for (size_t i = 0; i < weighted.size(); ++i) {
    weighted[i].weight = static_cast<float>(i % 3);
    for (size_t k = 0; k < i % 3; ++k) {
      repeated.push_back(weighted[i]);
      repeated.back().weight = 1;
    }
  }
  const std::string test = Write("test", Draw(100, 2));
  const auto of_weights = Fit(Linear(Write("weighted", weighted), weighted.size()), test, "a");
  const auto of_copies = Fit(Linear(Write("repeated", repeated), repeated.size()), test, "b");
  ExpectNear(of_weights, of_copies);
  // The loss of the first step is that of the first weights.
  EXPECT_NEAR(Metrics("a", "train")[0]["loss"], Metrics("b", "train")[0]["loss"], 1e-6);
  // The weights matter: without them the model differs.
  for (Weighted& sample : weighted) sample.weight = 1;
  const auto plain = Fit(Linear(Write("plain", weighted), weighted.size()), test, "c");
  double most = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    most = std::max(most, std::abs(plain[i] - of_weights[i]));
  }
  EXPECT_GT(most, 1e-3);
}

TEST_F(SampleWeights, EqualWeightsDoNotChangeABit) {
  std::vector<Weighted> train = Draw(1000, 3), test = Draw(200, 4);
  const auto predictions = [&](bool weighted, float weight) {
    for (Weighted& sample : train) sample.weight = weight;
    model::ModelConfig config =
        Config({"layers.data.source=" + Write("train", train, weighted),
                "layers.data.eval_source=" + Write("test", test, weighted),
                "cistern.eval_every_epoch=true",
                weighted ? "cistern.sample_weights=true" : "cistern.sample_weights=false"});
    return TrainAndPredict(config, 1, "bits");
  };
  const std::string plain = predictions(false, 1);
  EXPECT_EQ(std::count(plain.begin(), plain.end(), '\n'), 200);
  const auto plain_eval = Metrics("bits", "eval");
  EXPECT_EQ(plain, predictions(true, 1));
  const auto eval = Metrics("bits", "eval");
  ASSERT_EQ(eval.size(), plain_eval.size());
  for (size_t i = 0; i < eval.size(); ++i) {
    EXPECT_EQ(eval[i]["auc"], plain_eval[i]["auc"]);
    EXPECT_EQ(eval[i]["logloss"], plain_eval[i]["logloss"]);
  }
  EXPECT_EQ(plain, predictions(true, 0.1f));
}

TEST_F(SampleWeights, EvaluationIsWeighted) {
  const std::vector<Weighted> train = Draw(200, 5);
  std::vector<Weighted> test = Draw(300, 6);
  for (size_t i = 0; i < test.size(); ++i) {
    test[i].weight = static_cast<float>(i % 5) / 2;
    if (i % 7 == 0) test[i].label = 1 - test[i].label;
  }
  const std::string data = Write("test", test);
  const model::ModelConfig config = Linear(Write("train", train), train.size());
  EmbeddedFleet fleet(1);
  auto client = Connect(fleet);
  ASSERT_TRUE(Train(config, *client, Options("eval")).ok());
  const std::vector<double> p = PredictionsOf(config, *client, data);
  const auto scores = Evaluate(config, *client, {data}, JobOptions());
  ASSERT_TRUE(scores.ok()) << scores.status();
  double loss = 0, weights = 0, pairs = 0, right = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double weight = test[i].weight;
    weights += weight;
    loss -= weight * std::log(test[i].label > 0 ? p[i] : 1 - p[i]);
    for (size_t k = 0; k < p.size(); ++k) {
      if (test[i].label < 1 || test[k].label > 0) continue;
      const double both = weight * test[k].weight;
      pairs += both;
      right += p[i] > p[k] ? both : p[i] == p[k] ? both / 2 : 0;
    }
  }
  EXPECT_NEAR(scores->logloss, loss / weights, 1e-6);
  EXPECT_NEAR(*scores->auc, right / pairs, 1e-9);
}

TEST_F(SampleWeights, ABatchWithoutWeightTeachesNothing) {
  std::vector<Weighted> none = Draw(100, 7);
  for (Weighted& sample : none) sample.weight = 0;
  const std::string test = Write("test", Draw(50, 8));
  model::ModelConfig config = Linear(Write("none", none), none.size());
  const auto after = Fit(config, test, "after");
  config.solver.max_iter = 1;
  ExpectNear(after, Fit(config, test, "once"));
  EXPECT_EQ(Metrics("after", "train")[0]["loss"], 0);
}

TEST_F(SampleWeights, NumbersThatAreNoWeightsAreRefused) {
  for (const float bad : {-1.0f, 2e9f}) {  // the writer refuses numbers that are not finite
    std::vector<Weighted> train = Draw(100, 9);
    train[42].weight = bad;
    const std::string data = Write("bad", train);
    EmbeddedFleet fleet(1);
    auto client = Connect(fleet);
    const auto trained = Train(Linear(data, 100), *client, Options("bad"));
    EXPECT_FALSE(trained.ok()) << bad;
    EXPECT_NE(trained.status().message().find("bad.norm: record 42"), std::string::npos)
        << trained.status();
  }
  // Data without weights.
  EmbeddedFleet fleet(1);
  auto client = Connect(fleet);
  const std::string data = Write("none", Draw(100, 9), /*weighted=*/false);
  const auto trained = Train(Linear(data, 100), *client, Options("none"));
  EXPECT_NE(trained.status().message().find("cistern.sample_weights"), std::string::npos)
      << trained.status();
}

}  // namespace
}  // namespace cistern
