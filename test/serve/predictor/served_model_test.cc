// A served model: the same bits whatever the batch and the number of threads, and versions that
// replace each other as a whole while requests run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <random>
#include <thread>

#include "serve/predictor/open_predictor.h"
#include "test/serve/predictor/serving_example.h"
#include "test/worker/export/memory_model.h"
#include "worker/export/serving/serving_model.h"
#include "worker/model/layer/layer_list.h"

namespace cistern::serve {
namespace {

constexpr size_t kSlots = 6, kDim = 16, kDense = 5;

// Layers as wide as those of published models: a product library may sum in another order for other
// shapes.
std::string WideModel(int width) {
  return absl::StrCat(
      R"({"solver":{"lr_policy":"fixed","max_iter":1,"batchsize":64,"seed":1},
"optimizer":{"type":"Adam","update_type":"Local","adam_hparam":{"learning_rate":0.01}},
"layers":[{"name":"data","type":"Data","source":"none","eval_source":"none","check":"None",
"label":{"top":"label","label_dim":1},"dense":{"top":"dense","dense_dim":5},
"sparse":[{"top":"slots","type":"DistributedSlot","max_feature_num_per_sample":60,"slot_num":6}]},
{"name":"embedding","type":"DistributedSlotSparseEmbeddingHash","bottom":"slots","top":"rows",
"sparse_embedding_hparam":{"embedding_vec_size":16,"combiner":"mean"}},
{"type":"Reshape","bottom":"rows","top":"flat","leading_dim":96},
{"type":"Concat","bottom":["flat","dense"],"top":"all"},
{"type":"MultiCross","bottom":"all","top":"cross","mc_param":{"num_layers":3}},
{"type":"InnerProduct","bottom":"cross","top":"f1","fc_param":{"num_output":)",
      width, R"(}},{"type":"ReLU","bottom":"f1","top":"r1"},
{"type":"InnerProduct","bottom":"r1","top":"f2","fc_param":{"num_output":)",
      width, R"(}},{"type":"ReLU","bottom":"f2","top":"r2"},
{"type":"InnerProduct","bottom":"r2","top":"logit","fc_param":{"num_output":1}},
{"type":"BinaryCrossEntropyLoss","bottom":["logit","label"],"top":"loss"}]})");
}

// Random samples with 0 to 3 keys a slot, some of them unseen.
struct Samples {
  explicit Samples(size_t count) : size(count) {
    std::mt19937_64 random(3);
    for (size_t i = 0; i < count * kDense; ++i) {
      dense.push_back(static_cast<float>(random() % 1000) / 500.0f - 1.0f);
    }
    for (size_t i = 0; i < count * kSlots; ++i) {
      for (size_t n = random() % 4; n > 0; --n) keys.push_back(random() % 550);
      offsets.push_back(static_cast<uint32_t>(keys.size()));
    }
  }

  // Predicts samples [first, first + count).
  std::vector<float> Predict(Predictor& predictor, size_t first, size_t count,
                             ServedVersion* version) const {
    std::vector<uint32_t> local;
    for (size_t i = first * kSlots; i <= (first + count) * kSlots; ++i) {
      local.push_back(offsets[i] - offsets[first * kSlots]);
    }
    const auto some = absl::MakeConstSpan(keys).subspan(offsets[first * kSlots], local.back());
    std::vector<float> out(count);
    const absl::Status predicted =
        predictor.Predict({count,
                           absl::MakeConstSpan(dense).subspan(first * kDense, count * kDense),
                           {{some, local}}},
                          absl::MakeSpan(out), version, nullptr);
    EXPECT_TRUE(predicted.ok()) << predicted;
    return out;
  }

  size_t size;
  std::vector<float> dense;
  std::vector<Key> keys;
  std::vector<uint32_t> offsets = {0};
};

class ServedModel : public testing::Test {
 protected:
  ServedModel() {
    root_ = absl::StrCat(testing::TempDir(), "/served_model_test_", getpid(), "_",
                         testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(root_);
  }
  ~ServedModel() override { std::filesystem::remove_all(root_); }

  void Make(int width) {
    text_ = {"wide.json", WideModel(width), {}};
    config_ = model::ParseModelConfig(text_.text, "wide.json", {}, model::LayerGrammars()).value();
    model_ = std::make_unique<MemoryModel>(config_);
    SetRows(0);
    Export();
  }
  void SetRows(int version) {
    std::mt19937_64 random(static_cast<uint64_t>(version) + 1);
    std::normal_distribution<float> normal(0, 0.3f);
    for (Key key = 0; key < 500; ++key) {
      std::vector<float> row(kDim);
      for (float& w : row) w = normal(random);
      model_->Set(0, key, row);
    }
  }
  void Export() {
    LocalFileSystem files;
    const auto written =
        WriteServingModel(files, config_, text_, *model_, {root_, RowPrecision::kFloat32, 100});
    ASSERT_TRUE(written.ok()) << written.status();
  }

  std::string root_;
  ModelText text_;
  model::ModelConfig config_;
  std::unique_ptr<MemoryModel> model_;
};

TEST_F(ServedModel, PredictsTheSameBitsWhateverTheBatch) {
  for (const int width : {7, 400, 1024}) {
    Make(width);
    const Samples samples(1200);
    const auto predictor = OpenPredictor(root_, {.threads = 1, .poll_ms = 0}).value();
    ServedVersion version;
    const std::vector<float> all = samples.Predict(*predictor, 0, samples.size, &version);
    EXPECT_GT(*std::max_element(all.begin(), all.end()), all[0]);
    for (const size_t batch : {1, 7, 100, 513}) {
      std::vector<float> some;
      for (size_t first = 0; first < samples.size; first += batch) {
        const size_t count = std::min(batch, samples.size - first);
        const std::vector<float> part = samples.Predict(*predictor, first, count, &version);
        some.insert(some.end(), part.begin(), part.end());
      }
      EXPECT_EQ(some, all) << width << " wide, batches of " << batch;
    }
  }
}

// The reference is the training model's own Predict, over a pass table with optimizer state.
TEST_F(ServedModel, PredictsWhatTheTrainingModelPredicts) {
  Make(64);
  const Samples samples(300);
  DeviceContext device;
  const auto model = model::Model::Create(config_, device).value();
  ASSERT_TRUE(model->WriteDense(0, model_->dense(0)).ok());
  model::PassTable table(ValueLayout::Create(config_.embeddings[0].spec).value(), device);
  ASSERT_TRUE(table.Resize(550).ok());  // rows beyond 500 are zeros: unseen keys
  ASSERT_TRUE(model_
                  ->Scan(0,
                         [&](uint32_t, Key key, const float* value, bool) {
                           std::copy_n(value, table.stride(),
                                       table.values() + key * table.stride());
                           return absl::OkStatus();
                         })
                  .ok());
  data::HostBatch batch;
  batch.size = batch.all = samples.size;
  batch.label.assign(samples.size, 0);
  batch.dense = samples.dense;
  batch.sparse.resize(1);
  batch.sparse[0].slot_num = kSlots;
  batch.sparse[0].offsets = samples.offsets;
  batch.sparse[0].rows.assign(samples.keys.begin(), samples.keys.end());
  model::PassTable* const tables[] = {&table};
  std::vector<float> expected;
  ASSERT_TRUE(model->Predict(batch, tables, &expected, nullptr).ok());
  const auto predictor = OpenPredictor(root_).value();
  ServedVersion version;
  EXPECT_EQ(samples.Predict(*predictor, 0, samples.size, &version), expected);
}

TEST_F(ServedModel, EachAnswerIsThatOfOneVersion) {
  Make(32);
  constexpr int kVersions = 12;
  const Samples samples(40);
  std::map<uint64_t, std::vector<float>> expected;
  const auto predictor = OpenPredictor(root_, {.threads = 2, .poll_ms = 1}).value();
  std::atomic<bool> stop{false};
  struct Answer {
    uint64_t commit;
    std::vector<float> predictions;
  };
  std::vector<std::vector<Answer>> answers(3);
  std::vector<std::thread> clients;
  for (std::vector<Answer>& mine : answers) {
    clients.emplace_back([&] {
      uint64_t last = 0;
      while (!stop) {
        ServedVersion version;
        std::vector<float> out = samples.Predict(*predictor, 0, samples.size, &version);
        EXPECT_GE(version.commit, last);
        if (version.commit != last) mine.push_back({version.commit, out});
        last = version.commit;
      }
    });
  }
  for (int v = 1; v <= kVersions; ++v) {
    model_->Commit();
    SetRows(v);
    model_->dense(0)[3] += 0.25f;
    Export();
    const auto alone = OpenPredictor(root_, {.threads = 1, .poll_ms = 0}).value();
    ServedVersion version;
    std::vector<float> out = samples.Predict(*alone, 0, samples.size, &version);
    expected[version.commit] = std::move(out);
    while (predictor->version().commit != version.commit) std::this_thread::yield();
  }
  stop = true;
  for (std::thread& client : clients) client.join();
  size_t compared = 0;
  for (const std::vector<Answer>& mine : answers) {
    for (const Answer& answer : mine) {
      if (expected.count(answer.commit) == 0) continue;  // the first version
      EXPECT_EQ(answer.predictions, expected[answer.commit]) << answer.commit;
      ++compared;
    }
  }
  EXPECT_GT(compared, 3u);
}

TEST_F(ServedModel, ACtrTableServesEmbedWAndEmbedx) {
  const std::string text =
      absl::StrCat(WideModel(16).substr(0, WideModel(16).size() - 1),
                   R"(,"cistern":{"embeddings":{"embedding":{"accessor":"ctr"}}}})");
  text_ = {"ctr.json", text, {}};
  config_ = model::ParseModelConfig(text, "ctr.json", {}, model::LayerGrammars()).value();
  model_ = std::make_unique<MemoryModel>(config_);
  SetRows(0);
  Export();
  const auto with = OpenPredictor(root_, {.poll_ms = 0}).value();
  const Samples samples(100);
  ServedVersion version;
  const std::vector<float> before = samples.Predict(*with, 0, samples.size, &version);
  // A plain table with the same weights.
  const model::ModelConfig ctr = config_;
  std::filesystem::remove_all(root_);
  text_ = {"plain.json", WideModel(16), {}};
  config_ = model::ParseModelConfig(text_.text, "plain.json", {}, model::LayerGrammars()).value();
  auto plain = std::make_unique<MemoryModel>(config_);
  plain->dense(0) = model_->dense(0);
  model_ = std::move(plain);
  SetRows(0);
  Export();
  const auto without = OpenPredictor(root_, {.poll_ms = 0}).value();
  EXPECT_EQ(samples.Predict(*without, 0, samples.size, &version), before);
}

// Exports the example again, under this name.
void ExportAs(ServingExample& example, const std::string& name) {
  LocalFileSystem files;
  ServingOptions options = {example.root(), RowPrecision::kFloat32, 10};
  options.name = name;
  const auto written =
      WriteServingModel(files, example.config(), {"small.json", model::SmallModelText(), {}},
                        example.model(), options);
  ASSERT_TRUE(written.ok()) << written.status();
}

TEST(ServedModelName, IsThatOfTheServedVersionUnlessItIsGiven) {
  ServingExample example("names");
  const auto predictor = OpenPredictor(example.root(), {.threads = 1, .poll_ms = 0}).value();
  const auto fixed =
      OpenPredictor(example.root(), {.threads = 1, .poll_ms = 0, .name = "fixed"}).value();
  EXPECT_EQ(predictor->name(), "small");
  ExportAs(example, "large");
  testing::internal::CaptureStderr();
  EXPECT_TRUE(predictor->Follow().value());
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("has the model name 'large', not 'small'"));
  EXPECT_EQ(predictor->name(), "large");
  testing::internal::CaptureStderr();
  EXPECT_TRUE(fixed->Follow().value());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(fixed->name(), "fixed");
}

TEST(ServedModelFollowing, SaysThatTheFolderIsAwayUntilItIsBack) {
  ServingExample example("away");
  const auto predictor = OpenPredictor(example.root(), {.threads = 1, .poll_ms = 1}).value();
  EXPECT_FALSE(predictor->follow_state().failing);
  std::filesystem::rename(example.root(), example.root() + ".away");
  while (!predictor->follow_state().failing) std::this_thread::yield();
  EXPECT_GT(predictor->follow_state().failures, 0u);
  std::filesystem::rename(example.root() + ".away", example.root());
  while (predictor->follow_state().failing) std::this_thread::yield();
}

}  // namespace
}  // namespace cistern::serve
