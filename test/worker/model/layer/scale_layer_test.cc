#include "test/worker/model/model_bench.h"
#include "test/worker/model/model_error.h"
#include "test/worker/model/model_texts.h"
#include "worker/model/layer/layer_list.h"

namespace cistern::model {
namespace {

using ::testing::HasSubstr;

// A batch of one sample, with three dense features: the logit is the sum of what is repeated.
TEST(Scale, RepeatsValuesAlongAxis0AndRowsAlongAxis1) {
  const auto text = [](const std::string& more) {
    return WithSgd(OneSparse(), Embedding("emb", "data1", 3, "0") + "," +
                                    Simple("Reshape", "emb", "flat") + "," + more);
  };
  // Columns 1 and 2 of [a, a, b, b, c, c], and of [a, b, c] twice.
  for (const auto& [axis, reshaped] : {std::pair<int, std::string>(0, "6"), {1, "6"}}) {
    const std::string scale =
        R"("scale_param": {"axis": )" + std::to_string(axis) + R"(, "factor": 2})";
    ModelBench bench(text(Simple("Scale", "dense", "repeated", scale) + "," +
                          Simple("Reshape", "repeated", "row", R"("leading_dim": 6)") +
                          R"(,{"type": "Slice", "name": "s", "bottom": "row", "top": ["m"],
                              "ranges": [[1, 3]]},)" +
                          Simple("ReduceSum", "m", "logit", R"("axis": 1)")),
                     {}, 12);
    for (const size_t size : {1, 5}) {
      const data::HostBatch batch = bench.batch(size, 3);
      const std::vector<float> predictions = bench.Predict(batch);
      for (size_t i = 0; i < size; ++i) {
        const float* x = &batch.dense[3 * i];
        const double logit = axis == 0 ? double{x[0]} + double{x[1]} : double{x[1]} + double{x[2]};
        EXPECT_NEAR(predictions[i], 1 / (1 + std::exp(-logit)), 1e-6) << "axis " << axis;
      }
    }
  }
}

TEST(Scale, ChecksItsConstantsAndItsBottom) {
  EXPECT_THAT(BuildError({R"(layers.relu1={"name":"x","type":"Scale","bottom":"emb",
                              "top":"relu1","scale_param":{"axis":0,"factor":2}})"}),
              HasSubstr("it must have 2 dimensions: put a Reshape before it"));
  const auto parse_error = [](const std::string& constants) {
    return std::string(ParseModelConfig(SmallModelText(), "m",
                                        {InsteadOfRelu("Scale", R"("scale_param":)" + constants)},
                                        LayerGrammars())
                           .status()
                           .message());
  };
  EXPECT_THAT(parse_error(R"({"axis": 2, "factor": 2})"), HasSubstr("scale_param.axis"));
  EXPECT_THAT(parse_error(R"({"axis": 1, "factor": 0})"), HasSubstr("scale_param.factor"));
  EXPECT_THAT(parse_error(R"({"axis": 1})"), HasSubstr("scale_param.factor: missing"));
}

}  // namespace
}  // namespace cistern::model
