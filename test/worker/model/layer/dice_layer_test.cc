#include "test/worker/model/model_bench.h"
#include "test/worker/model/model_error.h"
#include "test/worker/model/model_texts.h"
#include "worker/model/layer/layer_list.h"

namespace cistern::model {
namespace {

using ::testing::HasSubstr;

// Predicting three samples together or one by one gives the same numbers.
TEST(PReluDice, APredictionDoesNotDependOnTheSamplesBesideIt) {
  ModelBench bench(DiceText(), {}, 12);
  for (uint32_t step = 1; step <= 3; ++step) bench.Train(bench.batch(16, step), step);
  const data::HostBatch three = bench.batch(3, 9);
  const std::vector<float> together = bench.Predict(three);
  const data::HostSparseBatch& in = three.sparse[0];
  for (size_t i = 0; i < 3; ++i) {
    data::HostBatch one;
    one.size = 1;
    one.label = {three.label[i]};
    one.dense.assign(three.dense.begin() + 3 * i, three.dense.begin() + 3 * (i + 1));
    data::HostSparseBatch& sparse = one.sparse.emplace_back();
    sparse.slot_num = in.slot_num;
    const uint32_t first = in.offsets[i * in.slot_num];
    for (size_t s = 0; s <= in.slot_num; ++s) {
      sparse.offsets.push_back(in.offsets[i * in.slot_num + s] - first);
    }
    sparse.rows.assign(in.rows.begin() + first,
                       in.rows.begin() + in.offsets[(i + 1) * in.slot_num]);
    MakeSegments(&sparse);
    EXPECT_NEAR(bench.Predict(one)[0], together[i], 1e-6);
  }
}

TEST(PReluDice, ChecksItsBottomAndItsConstants) {
  EXPECT_THAT(BuildError({R"(layers.reshape1={"name":"x","type":"PReLU_Dice","bottom":"emb",
                              "top":"reshape1","prelu_dice_param":{"alpha":0.2}})"}),
              HasSubstr("it must have 2 dimensions: put a Reshape before it"));
  const absl::Status status =
      ParseModelConfig(SmallModelText(), "m",
                       {InsteadOfRelu("PReLU_Dice", R"("prelu_dice_param":{"eps":1e-8})")},
                       LayerGrammars())
          .status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("prelu_dice_param.alpha: missing"));
}

}  // namespace
}  // namespace cistern::model
