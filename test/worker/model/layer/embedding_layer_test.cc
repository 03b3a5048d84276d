#include "worker/model/layer/embedding_layer.h"

#include "test/worker/model/model_bench.h"
#include "test/worker/model/model_texts.h"
#include "worker/data/source/batch_builder.h"

namespace cistern::model {
namespace {

std::string WideText(const std::string& combiner) {
  return WithSgd(OneSparse(), Embedding("emb", "data1", 2, combiner) + "," +
                                  Simple("Reshape", "emb", "flat") + "," +
                                  Simple("ReduceSum", "flat", "logit", R"("axis": 1)"));
}

TEST(EmbeddingLayer, LeavesRowsOutsideTheBatchUnchanged) {
  ModelBench bench(WideText("0"), {"cistern.embedding_l2=0.1"}, 40);
  const data::HostBatch batch = bench.batch(3, 2);
  const std::vector<double> before = bench.Weights(0);
  bench.Train(batch, 1);
  const std::vector<double> after = bench.Weights(0);
  const std::vector<Row>& touched = batch.sparse[0].segment_rows;
  ASSERT_LT(touched.size(), 40u);
  for (Row r = 0; r < 40; ++r) {
    const bool in_batch = std::count(touched.begin(), touched.end(), r) > 0;
    EXPECT_EQ(after[r * 2] != before[r * 2], in_batch) << r;
  }
}

// Two steps of Adam on one row against the formula in double.
TEST(EmbeddingLayer, AdamFollowsItsFormula) {
  const double lr = 0.01, beta1 = 0.9, beta2 = 0.999f, epsilon = 1e-7;
  ModelBench bench(WideText("1"),
                   {R"(optimizer={"type":"Adam","adam_hparam":{"learning_rate":0.01}})"}, 5);
  data::HostBatch batch = MakeHostBatch(bench.config.data, 1, 1, 0, 1);
  batch.label = {1};
  batch.sparse[0].rows = {3};
  batch.sparse[0].offsets = {0, 1, 1, 1, 1};
  batch.sparse[0].segment_rows.clear();
  batch.sparse[0].segment_outputs.clear();
  MakeSegments(&batch.sparse[0]);
  double w[2] = {bench.Weights(0)[6], bench.Weights(0)[7]}, m[2] = {0, 0}, v[2] = {0, 0};
  for (int t = 1; t <= 2; ++t) {
    bench.Train(batch, static_cast<uint64_t>(t));
    const double gradient = 1 / (1 + std::exp(-(w[0] + w[1]))) - 1;
    const double alpha = lr * std::sqrt(1 - std::pow(beta2, t)) / (1 - std::pow(beta1, t));
    for (int e = 0; e < 2; ++e) {
      m[e] = beta1 * m[e] + (1 - beta1) * gradient;
      v[e] = beta2 * v[e] + (1 - beta2) * gradient * gradient;
      w[e] -= alpha * m[e] / (std::sqrt(v[e]) + epsilon);
    }
  }
  const HostTable table = bench.Read(0);
  const float* row = table.row(3);
  const ValueLayout& layout = bench.tables[0]->layout();
  for (uint32_t e = 0; e < 2; ++e) {
    EXPECT_NEAR(row[e], w[e], 1e-7);
    EXPECT_NEAR(row[layout.state_index() + e], m[e], 1e-7);
    EXPECT_NEAR(row[layout.state_index() + 2 + e], v[e], 1e-9);
  }
}

// Two steps of SGD on weighted keys against the formula in double: the sum of weight * row, or that
// divided by the sum of the weights.
TEST(EmbeddingLayer, KeysCountByTheirWeights) {
  for (const bool mean : {false, true}) {
    SCOPED_TRACE(mean);
    ModelBench bench(WideText(mean ? "1" : "0"), {"cistern.key_weights=data1"}, 7);
    data::HostBatch batch = bench.batch(9, 4);
    data::HostSparseBatch& sparse = batch.sparse[0];
    std::mt19937 random(3);
    for (size_t k = 0; k < sparse.rows.size(); ++k) {
      sparse.weights.push_back(static_cast<float>(random() % 9) / 4 - 0.5f);
    }
    // Weights of one output that add up to 0.
    size_t pair = 0;
    while (sparse.offsets[pair + 1] - sparse.offsets[pair] != 2) ++pair;
    sparse.weights[sparse.offsets[pair]] = 2;
    sparse.weights[sparse.offsets[pair] + 1] = -2;
    sparse.shares = data::SharesOf(sparse.offsets, sparse.weights);
    data::SegmentBuilder().Build(&batch);
    std::vector<double> w = bench.Weights(0);
    for (int t = 1; t <= 2; ++t) {
      std::vector<double> gradient(w.size());
      for (size_t i = 0; i < batch.size; ++i) {
        std::vector<double> factors(sparse.rows.size());
        double logit = 0;
        for (size_t o = 4 * i; o < 4 * i + 4; ++o) {
          double total = 0;
          for (size_t k = sparse.offsets[o]; k < sparse.offsets[o + 1]; ++k) {
            total += double{sparse.weights[k]};
          }
          for (size_t k = sparse.offsets[o]; k < sparse.offsets[o + 1]; ++k) {
            factors[k] = double{sparse.weights[k]};
            if (mean) factors[k] = total == 0 ? 0 : factors[k] / total;
            logit += factors[k] * (w[2 * sparse.rows[k]] + w[2 * sparse.rows[k] + 1]);
          }
        }
        const double d = (1 / (1 + std::exp(-logit)) - double{batch.label[i]}) / 9;
        for (size_t k = sparse.offsets[4 * i]; k < sparse.offsets[4 * i + 4]; ++k) {
          for (size_t e = 0; e < 2; ++e) gradient[2 * sparse.rows[k] + e] += factors[k] * d;
        }
      }
      for (size_t i = 0; i < w.size(); ++i) w[i] -= gradient[i];
      bench.Train(batch, static_cast<uint64_t>(t));
      const std::vector<double> moved = bench.Weights(0);
      for (size_t i = 0; i < w.size(); ++i) EXPECT_NEAR(moved[i], w[i], 1e-6) << i;
    }
  }
}

}  // namespace
}  // namespace cistern::model
