#include "worker/model/layer/loss.h"

#include "test/worker/model/model_bench.h"
#include "test/worker/model/model_error.h"

namespace cistern::model {
namespace {

std::string WithLossOf(const std::string& type) {
  return Replaced(R"("type": "BinaryCrossEntropyLoss")", type);
}

TEST(Loss, TwoClassesNeedTwoLogitsAndOneLabel) {
  EXPECT_EQ(BuildError({}, WithLossOf(R"("type": "CrossEntropyLoss")")),
            "model.json: layer 'loss' (layers[7], CrossEntropyLoss): logit 'fc2' is [b, 1] and "
            "label 'label' is [b, 1]; two classes need [b, 2] and [b, 1]: for a single logit use "
            "BinaryCrossEntropyLoss");
}

TEST(Loss, LogitsAndLabelsMustHaveTheSameShape) {
  EXPECT_EQ(BuildError({"layers.data.label.label_dim=3"}),
            "model.json: layer 'loss' (layers[7], BinaryCrossEntropyLoss): logit 'fc2' is [b, 1] "
            "and label 'label' is [b, 3]; they must have the same shape");
  EXPECT_THAT(BuildError({"layers.fc1.bottom=emb"}),
              testing::HasSubstr("logit 'fc2' is [b, 2, 1] and label 'label' is [b, 1]; they must "
                                 "have the same shape: put a Reshape to two dimensions before"));
}

TEST(Loss, EveryLabelNeedsAWeight) {
  const std::string text =
      WithLossOf(R"("type": "MultiCrossEntropyLoss", "target_weight": [1, 2])");
  EXPECT_EQ(BuildError({"layers.data.label.label_dim=3", "layers.fc2.fc_param.num_output=3"}, text),
            "model.json: layer 'loss' (layers[7], MultiCrossEntropyLoss): target_weight has 2 "
            "numbers and label 'label' is [b, 3]; it must have one for each label");
}

// The loss is not the mean over the unmasked labels only.
TEST(Loss, MaskedLabelsCountInTheDivisorButGiveNoGradient) {
  const std::string text = WithLossOf(R"("type": "MultiCrossEntropyLoss", "target_weight": [2])");
  ModelBench all(text, {}, 10), half(text, {}, 10);
  data::HostBatch batch = all.batch(8, 1);
  for (float& label : batch.label) label = 1;
  data::HostBatch masked = batch;
  for (size_t i = 0; i < 8; ++i) masked.label[i] = -1;
  EXPECT_EQ(half.Train(masked, 1).loss, 0);
  EXPECT_EQ(half.DenseColumn(0), all.DenseColumn(0));
  EXPECT_GT(all.Train(batch, 1).loss, 0);
}

}  // namespace
}  // namespace cistern::model
