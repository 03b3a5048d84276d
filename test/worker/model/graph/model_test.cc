#include "worker/model/graph/model.h"

#include <limits>

#include "cuda/core/device.h"
#include "test/worker/model/model_bench.h"
#include "test/worker/model/model_error.h"
#include "test/worker/model/model_texts.h"

namespace cistern::model {
namespace {

using ::testing::HasSubstr;

constexpr char kAdam[] =
    R"(optimizer={"type":"Adam","adam_hparam":{"learning_rate":0.01,"warmup_steps":3}})";

TEST(Model, TwoModelsWithTheSameSeedGiveTheSameBits) {
  ModelBench a(TangledText(), {kAdam, "cistern.clip_norm=0.05"}, 12);
  ModelBench b(TangledText(), {kAdam, "cistern.clip_norm=0.05"}, 12);
  for (uint64_t step = 1; step <= 10; ++step) {
    const data::HostBatch batch = a.batch(16, static_cast<uint32_t>(step));
    EXPECT_EQ(a.Train(batch, step).loss, b.Train(batch, step).loss);
  }
  EXPECT_EQ(a.Dense(0), b.Dense(0));
  EXPECT_EQ(a.Dense(1), b.Dense(1));
  EXPECT_EQ(a.Weights(0), b.Weights(0));
  const data::HostBatch batch = a.batch(16, 77);
  EXPECT_EQ(a.Predict(batch), b.Predict(batch));
}

// Five steps of Adam with warm-up against the formula, with gradients derived from the loss in
// double.
TEST(Model, AdamFollowsItsFormula) {
  const std::string text =
      WithSgd(R"("dense": {"top": "dense", "dense_dim": 3}, "sparse": [])",
              FullyConnected("dense", "fc", 4) + "," + Simple("ReLU", "fc", "relu") + "," +
                  FullyConnected("relu", "logit", 1));
  ModelBench bench(text, {kAdam}, 0);
  ReferenceModel reference = bench.Reference();
  const size_t n = reference.weights.size();
  std::vector<double> m(n), v(n);
  for (int t = 1; t <= 5; ++t) {
    const data::HostBatch batch = bench.batch(16, static_cast<uint32_t>(t));
    bench.Train(batch, static_cast<uint64_t>(t));
    const double lr = 0.01 * std::min(1.0, t / 3.0);
    const double alpha = lr * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
    std::vector<double> gradient(n);
    for (size_t i = 0; i < n; ++i) {
      gradient[i] = reference.Derivative(batch, static_cast<uint64_t>(t), &reference.weights[i]);
    }
    for (size_t i = 0; i < n; ++i) {
      m[i] = 0.9 * m[i] + 0.1 * gradient[i];
      v[i] = 0.999 * v[i] + 0.001 * gradient[i] * gradient[i];
      reference.weights[i] -= alpha * m[i] / (std::sqrt(v[i]) + 1e-7);
    }
  }
  const std::vector<double> weights = bench.DenseColumn(0), ms = bench.DenseColumn(1);
  for (size_t i = 0; i < n; ++i) {
    EXPECT_NEAR(weights[i], reference.weights[i], 2e-6) << i;
    EXPECT_NEAR(ms[i], m[i], 1e-6) << i;
  }
}

TEST(Model, LrScaleMultipliesTheLearningRate) {
  ModelBench whole(DnnText(), {}, 12),
      half(DnnText(), {"optimizer.sgd_hparam.learning_rate=2"}, 12);
  const data::HostBatch batch = whole.batch(16, 1);
  whole.Train(batch, 1);
  ASSERT_TRUE(half.model->Train(batch, half.pointers, 1, 0.5).ok());
  EXPECT_EQ(whole.Dense(0), half.Dense(0));
  EXPECT_EQ(whole.Weights(0), half.Weights(0));
}

// The squared distance of two sets of weights. With SGD and learning rate 1 the weights move by the
// gradient, so that this is the squared gradient norm.
double Moved(const std::vector<double>& a, const std::vector<double>& b) {
  double squares = 0;
  for (size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  return squares;
}

TEST(Model, ClipsGradientsByTheirGlobalNorm) {
  ModelBench free(DnnText(), {"cistern.embedding_l2=0.2"}, 12);
  const std::vector<double> dense = free.DenseColumn(0), rows = free.Weights(0);
  const data::HostBatch batch = free.batch(16, 1);
  const double norm = free.Train(batch, 1).grad_norm;
  EXPECT_NEAR(std::sqrt(Moved(dense, free.DenseColumn(0)) + Moved(rows, free.Weights(0))), norm,
              1e-5 * norm);

  const std::string clip = absl::StrCat("cistern.clip_norm=", norm / 4);
  ModelBench clipped(DnnText(), {"cistern.embedding_l2=0.2", clip}, 12);
  EXPECT_NEAR(clipped.Train(batch, 1).grad_norm, norm, 1e-6 * norm);
  EXPECT_NEAR(std::sqrt(Moved(dense, clipped.DenseColumn(0)) + Moved(rows, clipped.Weights(0))),
              norm / 4, 1e-5 * norm);

  ModelBench loose(DnnText(), {"cistern.embedding_l2=0.2", "cistern.clip_norm=1000"}, 12);
  loose.Train(batch, 1);
  EXPECT_EQ(loose.Dense(0), free.Dense(0));
}

// Affects a GPU only; the CPU always computes in float32.
TEST(Model, RoundsProductsOnlyAsFarAsTheModelFileAllows) {
  ModelBench exact(DnnText(), {}, 12);
  const data::HostBatch batch = exact.batch(16, 1);
  const double loss = exact.Train(batch, 1).loss;
  for (const char* allowed : {"solver.enable_tf32_compute=true", "cistern.gpu_products=tf32",
                              "cistern.gpu_products=bfloat16"}) {
    ModelBench rounded(DnnText(), {allowed}, 12);
    EXPECT_NEAR(rounded.Train(batch, 1).loss, loss, 1e-2 * loss) << allowed;
    if (TestDevice().kind() == DeviceKind::kCpu) {
      EXPECT_EQ(rounded.Dense(0), exact.Dense(0)) << allowed;
    } else if (DescribeCudaBuild().find("emulated") != std::string::npos) {
      EXPECT_NE(rounded.Dense(0), exact.Dense(0)) << allowed;  // a real GPU may not round
    }
  }
  ModelBench strict(DnnText(), {"solver.enable_tf32_compute=true", "cistern.gpu_products=float32"},
                    12);
  strict.Train(batch, 1);
  EXPECT_EQ(strict.Dense(0), exact.Dense(0));
}

// Affects a GPU only; a CPU has no CUDA graphs.
TEST(Model, StepsAsCudaGraphsGiveTheSameBits) {
  ModelBench one_by_one(DeepFmText(), {"solver.cuda_graph=false", "cistern.clip_norm=0.1"}, 12),
      as_graph(DeepFmText(), {"cistern.clip_norm=0.1"}, 12);
  uint64_t step = 0;
  for (const size_t size : {16, 16, 7, 16, 16, 1}) {
    const data::HostBatch batch = as_graph.batch(size, static_cast<uint32_t>(++step));
    EXPECT_EQ(as_graph.Train(batch, step).loss, one_by_one.Train(batch, step).loss) << step;
  }
  EXPECT_EQ(as_graph.Dense(0), one_by_one.Dense(0));
  EXPECT_EQ(as_graph.Weights(0), one_by_one.Weights(0));
}

TEST(Model, PredictsBatchesOfAnySize) {
  ModelBench bench(DeepFmText(), {"solver.batchsize_eval=5"}, 12);  // planned for 16
  const data::HostBatch large = bench.batch(53, 3);
  const std::vector<double> expected = bench.Reference().Predict(large);
  std::vector<float> logits;
  const std::vector<float> predictions = bench.Predict(large, &logits);
  ASSERT_EQ(predictions.size(), 53u);
  ASSERT_EQ(logits.size(), 53u);
  for (size_t i = 0; i < 53; ++i) {
    EXPECT_NEAR(predictions[i], expected[i], 1e-6) << i;
    EXPECT_NEAR(1 / (1 + std::exp(-logits[i])), predictions[i], 1e-6) << i;
  }
  EXPECT_TRUE(bench.Predict(bench.batch(0, 1)).empty());
}

TEST(Model, PredictionDoesNotChangeTheModel) {
  ModelBench bench(DnnText(), {}, 12);
  bench.Train(bench.batch(16, 1), 1);
  const std::vector<float> dense = bench.Dense(0), state = bench.Dense(1);
  const std::vector<double> rows = bench.Weights(0);
  const data::HostBatch batch = bench.batch(16, 2);
  EXPECT_EQ(bench.Predict(batch), bench.Predict(batch));
  EXPECT_EQ(bench.Dense(0), dense);
  EXPECT_EQ(bench.Dense(1), state);
  EXPECT_EQ(bench.Weights(0), rows);
}

std::string BatchNormText() {
  return WithSgd(OneSparse(),
                 Embedding("emb", "data1", 2, "0") + "," + Simple("Reshape", "emb", "flat") +
                     R"(,{"type":"Concat","name":"c","bottom":["flat","dense"],"top":"c"},)" +
                     Simple("BatchNorm", "c", "bn") + "," + FullyConnected("bn", "logit", 1));
}

TEST(Model, ANonFiniteLossUpdatesNothing) {
  ModelBench bench(BatchNormText(), {}, 12);
  const std::vector<float> dense = bench.Dense(0), state = bench.Dense(1);
  const std::vector<double> rows = bench.Weights(0);
  data::HostBatch batch = bench.batch(8, 1);
  batch.dense[4] = std::numeric_limits<float>::quiet_NaN();
  const absl::StatusOr<StepResult> result = bench.model->Train(batch, bench.pointers, 9, 1.0);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("model.json: the loss of step 9 is not a finite number, so nothing was"));
  EXPECT_EQ(bench.Dense(0), dense);
  EXPECT_EQ(bench.Dense(1), state);
  EXPECT_EQ(bench.Weights(0), rows);
  bench.Train(bench.batch(8, 2), 10);  // the next step succeeds
}

// The second step is launched before the first one is finished, and must not update anything.
TEST(Model, AStepLaunchedAfterAFailedStepUpdatesNothing) {
  ModelBench bench(BatchNormText(), {}, 12);
  const std::vector<float> dense = bench.Dense(0), state = bench.Dense(1);
  const std::vector<double> rows = bench.Weights(0);
  const data::HostBatch good = bench.batch(8, 2);
  data::HostBatch bad = bench.batch(8, 1);
  bad.dense[4] = std::numeric_limits<float>::infinity();
  ASSERT_TRUE(bench.model->Launch(bad, bench.pointers, 1, 1.0, {&good}).ok());
  ASSERT_TRUE(bench.model->Launch(good, bench.pointers, 2, 1.0).ok());
  EXPECT_EQ(bench.model->Finish().status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(bench.Dense(0), dense);
  EXPECT_EQ(bench.Dense(1), state);
  EXPECT_EQ(bench.Weights(0), rows);
  bench.Train(good, 1);
  EXPECT_NE(bench.Weights(0), rows);
}

TEST(Model, ASkippedStepHasNoEffect) {
  const std::vector<std::string> skip = {R"(cistern.not_finite="skip")"};
  ModelBench with(BatchNormText(), skip, 12), without(BatchNormText(), skip, 12);
  data::HostBatch bad = with.batch(8, 1);
  bad.dense[4] = std::numeric_limits<float>::infinity();
  const data::HostBatch first = with.batch(8, 2), second = with.batch(8, 3);
  EXPECT_FALSE(with.Train(first, 1).skipped);
  EXPECT_TRUE(with.Train(bad, 2).skipped);
  without.Train(first, 1);
  EXPECT_EQ(with.Dense(0), without.Dense(0));
  EXPECT_EQ(with.Dense(1), without.Dense(1));
  EXPECT_EQ(with.Weights(0), without.Weights(0));
  EXPECT_EQ(with.Train(second, 3).loss, without.Train(second, 3).loss);
  EXPECT_EQ(with.Weights(0), without.Weights(0));
}

TEST(Model, TwoStepsInFlightGiveTheSameBitsAsOneAtATime) {
  ModelBench together(DnnText(), {kAdam, "cistern.clip_norm=0.1"}, 12),
      alone(DnnText(), {kAdam, "cistern.clip_norm=0.1"}, 12);
  std::vector<data::HostBatch> batches;
  for (uint32_t i = 0; i < 5; ++i) batches.push_back(alone.batch(16, i));
  std::vector<double> losses;
  for (size_t i = 0; i < batches.size(); ++i) {
    std::vector<const data::HostBatch*> next;
    for (size_t k = i + 1; k < std::min(i + 3, batches.size()); ++k) next.push_back(&batches[k]);
    ASSERT_TRUE(together.model->Launch(batches[i], together.pointers, i + 1, 1.0, next).ok());
    if (i > 0) losses.push_back(together.model->Finish()->loss);
  }
  losses.push_back(together.model->Finish()->loss);
  for (size_t i = 0; i < batches.size(); ++i) {
    EXPECT_EQ(alone.Train(batches[i], i + 1).loss, losses[i]) << i;
  }
  EXPECT_EQ(together.Dense(0), alone.Dense(0));
  EXPECT_EQ(together.Weights(0), alone.Weights(0));
}

TEST(Model, RejectsBatchesOfTheWrongShape) {
  ModelBench bench(DnnText(), {}, 12);
  EXPECT_THAT(
      std::string(
          bench.model->Train(bench.batch(17, 1), bench.pointers, 1, 1.0).status().message()),
      HasSubstr("a training batch has 17 samples; solver.batchsize is 16"));
  data::HostBatch batch = bench.batch(4, 1);
  batch.dense.pop_back();
  std::vector<float> predictions;
  EXPECT_EQ(bench.model->Predict(batch, bench.pointers, &predictions, nullptr).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Model, SchemaListsEmbeddingsAndDenseTables) {
  ModelBench bench(TangledText(), {kAdam}, 12);
  const v1::Schema& schema = bench.model->schema();
  ASSERT_EQ(schema.tables_size(), 2);
  EXPECT_EQ(schema.tables(0).name(), "deep");
  EXPECT_EQ(schema.tables(1).name(), "wide");
  ASSERT_EQ(schema.dense_tables_size(), 2);
  EXPECT_EQ(schema.dense_tables(0).columns_size(), 3);
  EXPECT_EQ(schema.dense_tables(1).rows(), 14u);  // mean and variance of seven columns
}

// A restored model has the same bits, optimizer state and running statistics included.
TEST(Model, DenseTablesContainTheWholeState) {
  ModelBench first(DnnText(), {kAdam}, 12), second(DnnText(), {kAdam, "solver.seed=9"}, 12);
  for (uint64_t step = 1; step <= 3; ++step) first.Train(first.batch(16, 1), step);
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(second.model->WriteDense(i, first.Dense(i)).ok());
  }
  second.Write(0, first.Read(0));
  const data::HostBatch batch = first.batch(16, 5);
  EXPECT_EQ(first.Predict(batch), second.Predict(batch));
}

TEST(Model, RejectsABatchSizeThatExceedsTheMemory) {
  const ModelConfig config =
      ParseOrDie({"solver.batchsize=4294967295", "layers.fc1.fc_param.num_output=1048576"});
  const absl::Status status = Model::Create(config, TestDevice()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr("model.json: a step of 4294967295 samples needs "));
}

}  // namespace
}  // namespace cistern::model
