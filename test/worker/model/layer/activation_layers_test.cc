#include "test/worker/model/model_bench.h"
#include "test/worker/model/model_error.h"
#include "test/worker/model/model_texts.h"

namespace cistern::model {
namespace {

// The DNN with additional dead readers, so that every tensor has several readers and nothing is
// fused.
std::string UnfusedDnnText() {
  std::string text = DnnText();
  for (const char* tensor : {"bn1", "relu1", "bn2", "relu2"}) {
    const std::string loss = R"({"type": "BinaryCrossEntropyLoss")";
    const std::string reader =
        Simple("ReduceSum", tensor, std::string(tensor) + "_reader", R"("axis": 1)") + ", ";
    text.insert(text.find(loss), reader);
  }
  return text;
}

TEST(Activation, FusedAndUnfusedLayersGiveTheSameBits) {
  ModelBench fused(DnnText(), {}, 12), alone(UnfusedDnnText(), {}, 12);
  for (uint64_t step = 1; step <= 4; ++step) {
    const data::HostBatch batch = fused.batch(16, static_cast<uint32_t>(step));
    EXPECT_EQ(fused.Train(batch, step).loss, alone.Train(batch, step).loss);
  }
  EXPECT_EQ(fused.Dense(0), alone.Dense(0));
  EXPECT_EQ(fused.Dense(1), alone.Dense(1));
  EXPECT_EQ(fused.Weights(0), alone.Weights(0));
}

std::string DropoutText(const std::string& rate) {
  return WithSgd(OneSparse(), Embedding("emb", "data1", 4, "0") + "," +
                                  Simple("Dropout", "emb", "drop", R"("rate": )" + rate) + "," +
                                  Simple("Reshape", "drop", "flat") + "," +
                                  FullyConnected("flat", "logit", 1));
}

TEST(Dropout, DrawsAgainInEachStepAndNotInPrediction) {
  ModelBench bench(DropoutText("0.5"), {"optimizer.sgd_hparam.learning_rate=0"}, 12);
  const data::HostBatch batch = bench.batch(16, 1);
  const double first = bench.Train(batch, 1).loss;
  EXPECT_NE(bench.Train(batch, 2).loss, first);
  EXPECT_EQ(bench.Train(batch, 1).loss, first);
  const std::vector<double> expected = bench.Reference().Predict(batch);
  const std::vector<float> predictions = bench.Predict(batch);
  for (size_t i = 0; i < batch.size; ++i) EXPECT_NEAR(predictions[i], expected[i], 1e-6);
}

TEST(Dropout, IsTheIdentityAtRateZero) {
  ModelBench bench(DropoutText("0"), {}, 12);
  const data::HostBatch batch = bench.batch(16, 1);
  EXPECT_NEAR(bench.Train(batch, 1).loss,
              ModelBench(DropoutText("0"), {}, 12).Reference().Loss(batch, 0), 1e-6);
}

}  // namespace
}  // namespace cistern::model
