// Compares update_type Global with a model that updates every row of its table in every step.
#include "test/worker/model/model_bench.h"
#include "test/worker/model/model_texts.h"

namespace cistern::model {
namespace {

std::string Optimizer(const std::string& type, const std::string& hparam,
                      const std::string& update_type) {
  return R"(optimizer={"type":")" + type + R"(","update_type":")" + update_type + R"(",)" + hparam +
         "}";
}

// Adds all rows of the table to the segments; rows without occurrences get a gradient of zero. They
// are placed first, because the op assumes that the last row occurs and would leave out empty
// segments at the end.
void TouchEveryRow(size_t rows, data::HostSparseBatch* batch) {
  std::vector<Row> all;
  for (Row row = 0; row < rows; ++row) {
    const auto& touched = batch->segment_rows;
    if (!std::binary_search(touched.begin(), touched.end(), row)) all.push_back(row);
  }
  std::vector<uint32_t> offsets(all.size(), 0);
  offsets.insert(offsets.end(), batch->segment_offsets.begin(), batch->segment_offsets.end());
  all.insert(all.end(), batch->segment_rows.begin(), batch->segment_rows.end());
  batch->segment_rows = all;
  batch->segment_offsets = offsets;
}

constexpr size_t kTableRows = 60;

// Trains `steps` steps of both models. Batches have few keys, so that rows are absent for many
// steps.
void TrainBoth(ModelBench& sparse, ModelBench& dense, uint64_t steps) {
  for (uint64_t step = 1; step <= steps; ++step) {
    data::HostBatch batch = sparse.batch(2, static_cast<uint32_t>(step), /*max_nnz=*/1);
    const double scale = step < 40 ? 1.0 : 0.25;  // like a plateau
    const auto loss = sparse.model->Train(batch, sparse.pointers, step, scale);
    for (data::HostSparseBatch& input : batch.sparse) TouchEveryRow(kTableRows, &input);
    const auto dense_loss = dense.model->Train(batch, dense.pointers, step, scale);
    ASSERT_TRUE(loss.ok() && dense_loss.ok()) << loss.status() << dense_loss.status();
    ASSERT_EQ(loss->loss, dense_loss->loss) << "step " << step;
  }
}

constexpr char kAdamHparam[] =
    R"("adam_hparam":{"learning_rate":0.02,"warmup_steps":5,"decay_start":20,"decay_steps":100})";

constexpr char kAdamWHparam[] = R"("adamw_hparam":{"learning_rate":0.02,"weight_decay":0.5,)"
                                R"("warmup_steps":5,"decay_start":20,"decay_steps":100})";

TEST(GlobalUpdates, OfAdamWEqualStepsOverEveryRow) {
  ModelBench sparse(DnnText(), {Optimizer("AdamW", kAdamWHparam, "Global")}, kTableRows);
  ModelBench dense(DnnText(), {Optimizer("AdamW", kAdamWHparam, "Local")}, kTableRows);
  // The first step touches all rows: a row begins to decay with its first step.
  data::HostBatch first = sparse.batch(2, 1, 1);
  for (data::HostSparseBatch& input : first.sparse) TouchEveryRow(kTableRows, &input);
  ASSERT_TRUE(sparse.model->Train(first, sparse.pointers, 1, 1.0).ok());
  ASSERT_TRUE(dense.model->Train(first, dense.pointers, 1, 1.0).ok());
  for (uint64_t step = 2; step <= 80; ++step) {
    data::HostBatch batch = sparse.batch(2, static_cast<uint32_t>(step), 1);
    const double loss = sparse.Train(batch, step).loss;
    for (data::HostSparseBatch& input : batch.sparse) TouchEveryRow(kTableRows, &input);
    ASSERT_EQ(dense.Train(batch, step).loss, loss) << step;
  }
  EXPECT_NE(sparse.Weights(0), dense.Weights(0));
  ASSERT_TRUE(sparse.model->BringUp(sparse.pointers).ok());
  EXPECT_EQ(sparse.Weights(0), dense.Weights(0));
  EXPECT_EQ(sparse.Dense(0), dense.Dense(0));
}

TEST(GlobalUpdates, EqualStepsOverEveryRow) {
  ModelBench sparse(DnnText(), {Optimizer("Adam", kAdamHparam, "Global")}, kTableRows);
  ModelBench dense(DnnText(), {Optimizer("Adam", kAdamHparam, "Local")}, kTableRows);
  ModelBench local(DnnText(), {Optimizer("Adam", kAdamHparam, "Local")}, kTableRows);
  TrainBoth(sparse, dense, 80);
  EXPECT_NE(sparse.Weights(0), dense.Weights(0));  // some rows have deferred updates
  ASSERT_TRUE(sparse.model->BringUp(sparse.pointers).ok());
  EXPECT_EQ(sparse.Weights(0), dense.Weights(0));
  EXPECT_EQ(sparse.Dense(0), dense.Dense(0));
  for (uint64_t step = 1; step <= 80; ++step) {
    local.Train(local.batch(2, static_cast<uint32_t>(step), 1), step);
  }
  EXPECT_NE(local.Weights(0), dense.Weights(0));
}

class GlobalUpdatesOf : public testing::TestWithParam<std::pair<const char*, const char*>> {};

INSTANTIATE_TEST_SUITE_P(Rules, GlobalUpdatesOf,
                         testing::Values(std::pair("Adam", kAdamHparam),
                                         std::pair("AdamW", kAdamWHparam)));

TEST_P(GlobalUpdatesOf, ResumeFromTheClock) {
  const auto [type, hparam] = GetParam();
  const std::vector<std::string> overrides = {Optimizer(type, hparam, "Global")};
  ModelBench whole(DnnText(), overrides, kTableRows), first(DnnText(), overrides, kTableRows),
      second(DnnText(), overrides, kTableRows);
  for (uint64_t step = 1; step <= 30; ++step) {
    const data::HostBatch batch = whole.batch(2, static_cast<uint32_t>(step), 1);
    whole.Train(batch, step);
    (step <= 17 ? first : second).Train(batch, step);
    if (step != 17) continue;
    second.model->SetClock(first.model->clock());
    second.Write(0, first.Read(0));
    for (size_t i = 0; i < 2; ++i) {
      ASSERT_TRUE(second.model->WriteDense(i, first.Dense(i)).ok());
    }
  }
  EXPECT_EQ(second.Weights(0), whole.Weights(0));
  EXPECT_EQ(second.model->clock().SerializeAsString(), whole.model->clock().SerializeAsString());
}

TEST(GlobalUpdates, OfMomentumEqualStepsOverEveryRow) {
  for (const char* type : {"MomentumSGD", "Nesterov"}) {
    const std::string key = type == std::string("Nesterov") ? "nesterov" : "momentum_sgd";
    const std::string hparam =
        "\"" + key + R"(_hparam":{"learning_rate":0.01,"momentum_factor":0.8})";
    ModelBench sparse(DeepFmText(), {Optimizer(type, hparam, "Global")}, kTableRows);
    ModelBench dense(DeepFmText(), {Optimizer(type, hparam, "Local")}, kTableRows);
    for (uint64_t step = 1; step <= 40; ++step) {
      data::HostBatch batch = sparse.batch(2, static_cast<uint32_t>(step), 1);
      const double loss = sparse.Train(batch, step).loss;
      for (data::HostSparseBatch& input : batch.sparse) TouchEveryRow(kTableRows, &input);
      ASSERT_NEAR(dense.Train(batch, step).loss, loss, 1e-5) << type << step;
    }
    ASSERT_TRUE(sparse.model->BringUp(sparse.pointers).ok());
    const std::vector<double> expected = dense.Weights(0), found = sparse.Weights(0);
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(found[i], expected[i], 1e-5) << type << i;
    }
  }
}

TEST(GlobalUpdates, ALocalModelHasNoClock) {
  ModelBench bench(DnnText(), {}, kTableRows);
  bench.Train(bench.batch(2, 1), 1);
  EXPECT_EQ(bench.model->clock().ByteSizeLong(), 0u);
}

}  // namespace
}  // namespace cistern::model
