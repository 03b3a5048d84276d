#include "worker/model/layer/ctr_embedding_layer.h"

#include "common/value/accessor/ctr_accessor.h"
#include "test/common/value/accessor/update_ctr_value.h"
#include "test/worker/model/model_bench.h"
#include "test/worker/model/model_texts.h"

namespace cistern::model {
namespace {

// A model with two slots, whose rows have embed_w and two floats of embedx. The logit is the sum of
// the two slot vectors. A key gets embedx once its score, here shows + 3 * clicks, reaches 4.
struct CtrBench : ModelBench {
  explicit CtrBench(const char* day = "0", const char* more = "")
      : ModelBench(
            WithSgd(R"("sparse": [{"top": "data1", "slot_num": 2}])",
                    Embedding("emb", "data1", 3, "0") + "," + Simple("Reshape", "emb", "flat") +
                        "," + Simple("ReduceSum", "flat", "logit", R"("axis": 1)")),
            {absl::StrCat(R"(cistern.embeddings.emb={"accessor":"ctr","embedx_threshold":4,
                        "nonclk_coeff":1,"click_coeff":4,"show_scale":false,)",
                          more, R"("optimizer":{"type":"SGD","learning_rate":0.5}})"),
             absl::StrCat("cistern.day=", day)},
            4) {}
  // One sample, label 1: row 2 twice in slot 1, row 0 once in slot 0.
  static data::HostBatch OneSample() {
    data::HostBatch batch;
    batch.size = 1;
    batch.label = {1};
    data::HostSparseBatch& in = batch.sparse.emplace_back();
    in.slot_num = 2;
    in.offsets = {0, 1, 3};
    in.rows = {0, 2, 2};
    MakeSegments(&in);
    return batch;
  }
  const ValueLayout& layout() const { return tables[0]->layout(); }
};

TEST(CtrEmbeddingLayer, CountsShowsAndClicksAndUpdatesEmbedW) {
  CtrBench bench;
  bench.Train(CtrBench::OneSample(), 1);
  const HostTable table = bench.Read(0);
  EXPECT_EQ(LoadDouble(table.row(2) + CtrCells::kShow), 2);
  EXPECT_EQ(LoadDouble(table.row(2) + CtrCells::kClick), 2);
  EXPECT_EQ(table.row(2)[SlotIndex(bench.layout())], 1);
  EXPECT_EQ(LoadDouble(table.row(0) + CtrCells::kShow), 1);
  EXPECT_EQ(table.row(0)[SlotIndex(bench.layout())], 0);
  EXPECT_EQ(LoadDouble(table.row(1) + CtrCells::kShow), 0);
  // All weights are zero, so the derivative by the logit is 1/2 - 1; row 2 occurs twice.
  EXPECT_FLOAT_EQ(table.row(0)[CtrCells::kEmbedW], 0.5f * 0.5f);
  EXPECT_FLOAT_EQ(table.row(2)[CtrCells::kEmbedW], 0.5f * 1.0f);
}

TEST(CtrEmbeddingLayer, CreatesEmbedxAtTheThresholdAndReadsItAfterwards) {
  CtrBench bench;
  const data::HostBatch batch = CtrBench::OneSample();
  EXPECT_EQ(bench.Read(0).has_embedx, std::vector<uint8_t>(4, 0));
  bench.Train(batch, 1);
  const HostTable table = bench.Read(0);
  // Scores: row 2 (2 - 2) + 2 * 4 = 8, row 0 (1 - 1) + 4 = 4, row 1 none.
  EXPECT_EQ(table.has_embedx[2], 1);
  EXPECT_EQ(table.has_embedx[0], 1);
  EXPECT_EQ(table.has_embedx[1], 0);
  double logit = 0;
  for (Row r : {0, 2, 2}) {
    logit += table.row(r)[CtrCells::kEmbedW];
    for (uint32_t e = 0; e < 2; ++e) logit += table.row(r)[bench.layout().weight_index() + e];
  }
  EXPECT_NE(table.row(2)[bench.layout().weight_index()], 0);
  EXPECT_NEAR(bench.Predict(batch)[0], 1 / (1 + std::exp(-logit)), 1e-6);

  // Now embedx has a gradient too: twice the derivative by the logit.
  const float before = table.row(2)[bench.layout().weight_index()];
  bench.Train(batch, 2);
  const double gradient = 2 * (1 / (1 + std::exp(-logit)) - 1);
  EXPECT_NEAR(bench.Read(0).row(2)[bench.layout().weight_index()], before - 0.5 * gradient, 1e-6);
}

TEST(CtrEmbeddingLayer, UpdatedRowsStoreTheCurrentDay) {
  CtrBench bench("20778", R"("day_id_decay":true,)");
  HostTable table = bench.Read(0);
  table.row(2)[CtrCells::kUnseenDays] = 20776;
  StoreDouble(table.row(2) + CtrCells::kShow, 100);
  bench.Write(0, table);
  bench.Train(CtrBench::OneSample(), 1);
  table = bench.Read(0);
  EXPECT_EQ(table.row(2)[CtrCells::kUnseenDays], 20778);
  EXPECT_NEAR(LoadDouble(table.row(2) + CtrCells::kShow), 100 * 0.98 * 0.98 + 2, 1e-5);
  EXPECT_EQ(table.row(0)[CtrCells::kUnseenDays], 20778);
  bench.Train(CtrBench::OneSample(), 2);  // on the same day
  EXPECT_NEAR(LoadDouble(bench.Read(0).row(2) + CtrCells::kShow), 100 * 0.98 * 0.98 + 4, 1e-5);
}

// The layer updates a row to the same bits as the accessor updates a value.
TEST(CtrEmbeddingLayer, UpdatesARowAsTheAccessorUpdatesAValue) {
  CtrBench bench;
  const data::HostBatch batch = CtrBench::OneSample();
  bench.Train(batch, 1);
  const HostTable table = bench.Read(0);
  const absl::Span<const Key> keys = bench.tables[0]->keys();
  for (const Row r : {0u, 2u}) {
    const double show = r == 2 ? 2 : 1;
    std::vector<float> value(bench.layout().full_floats());
    bool has_embedx = bench.layout().Initialize(keys[r], value.data());
    const std::vector<float> embedx_grad(2);
    CtrPush push;
    push.slot = r == 2 ? 1 : 0;
    push.show = push.click = static_cast<float>(show);
    push.embed_grad = static_cast<float>(-0.5 * show);
    push.embedx_grad = embedx_grad.data();
    has_embedx = UpdateCtrValue(bench.layout(), 0.5f, keys[r], push, value.data(), has_embedx);
    EXPECT_TRUE(has_embedx);
    EXPECT_EQ(value, std::vector<float>(table.row(r), table.row(r) + value.size())) << r;
  }
}

// Four samples with label 1, each with row 0 in slot 0. All weights are zero, so the derivative of
// each loss by its logit, and by embed_w, is -1/2.
data::HostBatch FourSamples() {
  data::HostBatch batch;
  batch.size = 4;
  batch.label = {1, 1, 1, 1};
  data::HostSparseBatch& in = batch.sparse.emplace_back();
  in.slot_num = 2;
  in.offsets = {0, 1, 1, 2, 2, 3, 3, 4, 4};
  in.rows = {0, 0, 0, 0};
  MakeSegments(&in);
  return batch;
}

TEST(CtrEmbeddingLayer, RowsMoveByTheGradientOfTheSumUnlessMeanIsChosen) {
  CtrBench sum, mean("0", R"("gradient":"mean",)");
  EXPECT_NEAR(sum.Train(FourSamples(), 1).grad_norm, 0.5, 1e-6);  // of the mean, in both
  EXPECT_NEAR(mean.Train(FourSamples(), 1).grad_norm, 0.5, 1e-6);
  EXPECT_FLOAT_EQ(sum.Read(0).row(0)[CtrCells::kEmbedW], 0.5f * 4 * 0.5f);
  EXPECT_FLOAT_EQ(mean.Read(0).row(0)[CtrCells::kEmbedW], 0.5f * 0.5f);
}

// PSLib: scaled = g / show, w -= lr * scaled * sqrt(G0 / (G0 + G)), then G += scaled^2, where G is
// 0 at first and g is the gradient of the sum. Here scaled is -1/2 in step 1.
TEST(CtrEmbeddingLayer, StepsAsPslibDoesWithItsDefaults) {
  ModelBench bench(
      WithSgd(R"("sparse": [{"top": "data1", "slot_num": 2}])",
              Embedding("emb", "data1", 3, "0") + "," + Simple("Reshape", "emb", "flat") + "," +
                  Simple("ReduceSum", "flat", "logit", R"("axis": 1)")),
      {R"(cistern.embeddings.emb={"accessor":"ctr","embedx_threshold":100,
          "optimizer":{"type":"AdaGradShared","learning_rate":0.05}})"},
      4);
  bench.Train(FourSamples(), 1);
  const double first = 0.05 * 0.5;
  EXPECT_NEAR(bench.Read(0).row(0)[CtrCells::kEmbedW], first, 1e-7);
  bench.Train(FourSamples(), 2);
  const double scaled = 1 / (1 + std::exp(-first)) - 1;
  const double second = first - 0.05 * scaled * std::sqrt(3 / (3 + 0.25));
  EXPECT_NEAR(bench.Read(0).row(0)[CtrCells::kEmbedW], second, 1e-7);
}

TEST(CtrEmbeddingLayer, NormExcludesTheGradientOfAbsentEmbedx) {
  CtrBench bench;
  EXPECT_NEAR(bench.Train(CtrBench::OneSample(), 1).grad_norm, std::sqrt(0.25 + 1.0), 1e-6);
}

}  // namespace
}  // namespace cistern::model
